import { createHash, randomBytes } from 'node:crypto';
import type { SecretsKey } from '../../core/config/secrets-keys.ts';
import { canonicalPath } from '../../core/values/path.ts';
import { seal, unseal } from '../acme/sealed.ts';
import { loginCookie, loginCountCookie, signInCookie } from './login-cookies.ts';
import type { LoginKey, LoginSessions } from './stored-sessions.ts';

/** How long a key seals cookies of started sign-ins; it opens them for as long again. */
const sealingKeyMs = 86_400_000;

/** Characters of a way back, which is in a cookie; a longer one leads to the front page. */
const wayBackCharactersMax = 1_500;

/** Cookies of one name that are read: another page of the domain may have set a second one. */
const cookiesTriedMax = 4;

/*
 * The cookies of a sign-in. Over TLS their names begin with `__Host-`: a browser then takes them
 * from this host only, and no other host of the domain can plant one (RFC 6265bis §4.1.3.2).
 */

/** The names of the cookies at an origin. */
interface CookieNames {
  /** The session. */
  readonly session: string;
  /** How often the browser has come back from the provider in the last minute. */
  readonly count: string;
  /** A sign-in that has begun, by its state. */
  started(state: string): string;
  /** The beginning of the names of all such sign-ins. */
  readonly startedPrefix: string;
}

function namesWith(prefix: string): CookieNames {
  const startedPrefix = prefix + signInCookie;
  return {
    session: prefix + loginCookie,
    count: prefix + loginCountCookie,
    started: (state) => startedPrefix + state.slice(0, 8),
    startedPrefix,
  };
}

const [secure, plain] = [namesWith('__Host-'), namesWith('')];

/** The names of the cookies at an origin, or at all origins with a scheme. */
export function cookieNames(origin: string): CookieNames {
  return origin.startsWith('https:') ? secure : plain;
}

/** The value of a Set-Cookie that the browser keeps for some seconds; 0 removes the cookie. */
export function setCookie(
  origin: string,
  { name, value, seconds }: { readonly name: string; readonly value: string; seconds: number },
): string {
  const flags = origin.startsWith('https:') ? '; Secure' : '';
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${flags}`;
}

/** The values of the cookies with a name in a field `Cookie`, a few at most. */
export function cookieValues(cookie: string | undefined, name: string): readonly string[] {
  if (cookie?.includes(name) !== true) return [];
  const begin = `${name}=`;
  return pairsOf(cookie)
    .filter((pair) => pair.startsWith(begin))
    .slice(0, cookiesTriedMax)
    .map((pair) => pair.slice(begin.length));
}

/** The names of the cookies in a field `Cookie` that begin with a text. */
export function cookieNamesWith(cookie: string | undefined, prefix: string): readonly string[] {
  if (cookie?.includes(prefix) !== true) return [];
  return pairsOf(cookie)
    .filter((pair) => pair.startsWith(prefix))
    .map((pair) => pair.slice(0, Math.max(0, pair.indexOf('='))));
}

function pairsOf(cookie: string): readonly string[] {
  return cookie.split(';').map((pair) => pair.trim());
}

/**
 * The path and query to which a browser returns, from a text that anybody may have written: a path
 * of the same origin, or else `/`. Signing in must not lead to itself, below the canonical path
 * `own`, however it is encoded.
 */
export function wayBackFrom(text: string | undefined, origin: string, own: string): string {
  if (
    text === undefined ||
    text.length > wayBackCharactersMax ||
    !/^\/[\x21-\x5b\x5d-\x7e]*$/.test(text)
  ) {
    return '/';
  }
  const url = URL.parse(origin + text);
  if (url?.origin !== origin || url.username !== '' || url.password !== '') return '/';
  const isElsewhere = canonicalPath(url.pathname)?.startsWith(own) === false;
  return isElsewhere ? url.pathname + url.search + url.hash : '/';
}

/** Seals what a browser keeps for the server, so that it can neither read nor change it. */
export interface Sealing {
  /** Seals a value for a purpose, with the newest key. Rejects if no key can be stored. */
  seal(purpose: string, value: object): Promise<string>;
  /** The value that was sealed for a purpose; undefined for any other text. */
  open(purpose: string, sealed: string): unknown;
}

/**
 * Creates the sealing with the keys of a data folder, which all of its workers share. A key seals
 * for a day and opens for another one, so its rotation disturbs no sign-in.
 */
export function createSealing(
  store: Pick<LoginSessions, 'keys' | 'changeKeys'>,
  now: () => number,
): Sealing {
  const isFresh = ({ createdMs }: LoginKey): boolean => {
    const age = now() - createdMs;
    return age >= -sealingKeyMs && age < sealingKeyMs;
  };
  const rotated = (keys: readonly LoginKey[]): readonly LoginKey[] => {
    // Another worker may have been faster.
    if (keys[0] !== undefined && isFresh(keys[0])) return keys;
    const secret = randomBytes(32).toString('base64');
    const kept = keys.filter(({ createdMs }) => now() - createdMs < 2 * sealingKeyMs);
    return [{ secret, createdMs: now() }, ...kept.slice(0, 1)];
  };
  return {
    async seal(purpose, value) {
      const [known] = store.keys();
      const [newest = known] =
        known !== undefined && isFresh(known) ? [known] : await store.changeKeys(rotated);
      if (newest === undefined) throw new TypeError('there is no key');
      return seal(JSON.stringify(value), purpose, keyOf(newest));
    },
    open(purpose, sealed) {
      const keys = store.keys().filter(({ createdMs }) => now() - createdMs < 2 * sealingKeyMs);
      const opened = unseal(sealed, purpose, keys.map(keyOf));
      return 'refused' in opened ? undefined : (JSON.parse(opened.text) as unknown);
    },
  };
}

function keyOf({ secret }: LoginKey): SecretsKey {
  const bytes = Buffer.from(secret, 'base64');
  return { id: createHash('sha256').update(bytes).digest('hex').slice(0, 8), bytes };
}
