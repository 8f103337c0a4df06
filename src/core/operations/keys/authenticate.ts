import { createHash, timingSafeEqual } from 'node:crypto';
import { openKey } from '../../../modules/console/sessions/session-store.ts';
import { type TokenCounter, takeAll } from '../../fair/token-buckets.ts';
import { Failure } from '../../values/failure.ts';
import {
  type ApiKey,
  type Caller,
  type Scope,
  boundScopes,
  boundsOf,
  isApiKey,
  keyEndMs,
  sessionPrefix,
} from '../../values/key.ts';
import { addressNetwork } from '../../values/network/cidr.ts';
import type { ClientAddress } from '../../values/network/peer.ts';

const tokenPattern = new RegExp(`^${sessionPrefix}([0-9a-f]{8})_[A-Za-z0-9_-]{43}$`);
const cookiesTriedMax = 4;

/** Wrong keys that one address may send in a minute. */
export const wrongKeysPerMinuteMax = 20;

const minuteMs = 60_000;

/** The reads that authentication needs. */
interface KeyReads extends SessionReads {
  keyByHash(hash: string): ApiKey | undefined;
}

interface SessionReads {
  key(id: string): ApiKey | undefined;
  /** As SessionStore.isLoginOpen. */
  isLoginOpen(id: string): boolean;
}

/** The form in which an API key is stored: its SHA-256 in lower-case hex. */
export function keyHash(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Counts wrong keys by address over a sliding minute; outlives a reload of the configuration. */
export interface WrongKeys {
  /** Counts one. Throws `rate_limited` if its address has sent too many in the last minute. */
  count(address: string): void;
}

/**
 * Counts wrong keys (docs/design/failures.md#keys: 20 a minute from one address, or IPv6 network of
 * 64 bits).
 */
export function createWrongKeys(counter: TokenCounter): WrongKeys {
  const each = { rate: 'wrong keys', intervalMs: minuteMs / wrongKeysPerMinuteMax };
  return {
    count(address) {
      const client = addressNetwork(address);
      const retryAfterSeconds = takeAll(counter, [
        { ...each, client, burst: wrongKeysPerMinuteMax },
      ]);
      if (retryAfterSeconds === 0) return;
      const message = 'This address has sent too many wrong API keys. Send the right one, or wait.';
      throw new Failure('rate_limited', message, { retryAfterSeconds, limit: 'wrong_keys' });
    },
  };
}

/** The caller of a request by its API key; without a key, one with the anonymous scopes. */
export type Authenticate = (sent: {
  readonly apikey: string | undefined;
  readonly address: ClientAddress;
  /** The request's field `Cookie`: a token of a session is only valid with its cookie. */
  readonly cookie?: string | undefined;
}) => Caller;

/**
 * Makes the check of API keys (docs/design/failures.md#keys), and of sessions, whose tokens are
 * sent in place of a key (docs/design/console.md#sessions). It throws `unauthenticated` for an
 * unknown, revoked or ended key, and `rate_limited` after too many unknown ones from one address. A
 * right key always passes, because any web page can send wrong ones from the address of its
 * visitor; who sends one that has ended does not guess.
 */
export function createAuthenticate({
  keys,
  anonymous,
  keyRate,
  wrongKeys,
  used,
  now,
}: {
  readonly keys: KeyReads;
  readonly anonymous: readonly Scope[];
  /** Operations a second for a key without a rate of its own; undefined for any number. */
  readonly keyRate: number | undefined;
  readonly wrongKeys: WrongKeys;
  /** Called with the id of each key that is right, or whose session is. */
  readonly used: (id: string) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}): Authenticate {
  const anonymousScopes: ReadonlySet<Scope> = new Set(anonymous);
  const find = (text: string): ApiKey | undefined => {
    const hash = keyHash(text);
    const key = keys.keyByHash(hash);
    const isEqual = key && timingSafeEqual(Buffer.from(key.hash), Buffer.from(hash));
    return isEqual === true ? key : undefined;
  };
  const findSession = (texts: readonly string[]) => {
    for (const secrets of texts) {
      const one = find(secrets);
      if (one?.session !== undefined && isOpen(keys, one, now())) {
        return { ...one.session, id: one.id, secrets };
      }
    }
    return undefined;
  };
  return ({ apikey, address, cookie }) => {
    if (apikey === undefined) {
      return { scopes: anonymousScopes, keyId: undefined, rate: undefined, address };
    }
    const session = findSession(sessionTexts(apikey, cookie));
    const found = session === undefined ? find(apikey) : keys.key(session.key);
    // The texts of a session, joined, are not a key, nor is the token of a breadcrumb.
    if (found === undefined || !isApiKey(found)) {
      wrongKeys.count(address);
      throw new Failure('unauthenticated', refusalOf(apikey));
    }
    requireCurrent(found, now());
    used(found.id);
    // A caller with a key may do all that anonymous callers may do.
    const bounds = boundsOf(found);
    const own = found.scopes.filter((one) => bounds === undefined || boundScopes.includes(one));
    const caller = {
      ...{ scopes: new Set([...anonymous, ...own]), keyId: found.id, address },
      rate: found.rate ?? keyRate,
      ...(bounds && { bounds }),
    };
    if (session === undefined) return { ...caller, apikey };
    const { id: sessionId, sealed, secrets } = session;
    const text = sealed === undefined ? apikey : openKey(sealed, secrets);
    return { ...caller, sessionId, apikey: text };
  };
}

/** Whether a session has not ended, nor that of the visitor who opened the console with it. */
function isOpen(keys: SessionReads, one: ApiKey, nowMs: number): boolean {
  const login = one.session?.login;
  return !isExpired(one, nowMs) && (login === undefined || keys.isLoginOpen(login));
}

function refusalOf(apikey: string): string {
  return isSessionToken(apikey)
    ? 'The session has ended, or its cookie is missing. Sign in again.'
    : 'The API key is unknown or has been revoked.';
}

/** The key of an id, unless it has been revoked or has ended. */
export function currentKey(
  keys: Pick<SessionReads, 'key'>,
  id: string,
  nowMs: number,
): ApiKey | undefined {
  const key = keys.key(id);
  return key !== undefined && keyEndMs(key) > nowMs ? key : undefined;
}

/** When a caller ends, in milliseconds since 1970, and the failure that it gets from then on. */
export interface CallerEnd {
  readonly endMs: number;
  readonly failure: () => Failure;
}

/** Tells a long connection when the key or the session of its caller ends. */
export interface CallerEnds {
  /**
   * Calls `ended` once with the failure, when the key or session of a caller ends; not for one that
   * is revoked, which the next message or packet notices. Returns the function that stops this.
   */
  watch(caller: Caller, ended: (failure: Failure) => void): () => void;
}

const endless: CallerEnd = { endMs: Infinity, failure: () => sessionEnded() };

/** The end of a key; endless for one that was revoked. */
function keyEnd(key: ApiKey | undefined): CallerEnd {
  if (key?.until === undefined) return endless;
  const message = `The API key ended at ${key.until}. Ask for a later end, or for another key.`;
  return { endMs: keyEndMs(key), failure: () => new Failure('unauthenticated', message) };
}

/** The end of a caller's key or session, whichever is first; endless for what was revoked. */
export function callerEnd(
  keys: Pick<SessionReads, 'key'>,
  { keyId, sessionId }: Pick<Caller, 'keyId' | 'sessionId'>,
): CallerEnd {
  const ofKey = keyId === undefined ? endless : keyEnd(keys.key(keyId));
  const session = sessionId === undefined ? undefined : keys.key(sessionId)?.session;
  if (session === undefined) return ofKey;
  const endMs = Date.parse(session.expires);
  return ofKey.endMs <= endMs ? ofKey : { endMs, failure: sessionEnded };
}

/**
 * Checks the caller of a long connection again: throws `unauthenticated` if its key has been
 * revoked, or it or its session has ended since.
 */
export function requireUnrevoked(keys: SessionReads, caller: Caller, now: () => number): void {
  const { keyId, sessionId } = caller;
  if (keyId === undefined) return;
  const key = keys.key(keyId);
  if (key === undefined) throw new Failure('unauthenticated', 'The API key has been revoked.');
  requireCurrent(key, now());
  if (sessionId === undefined) return;
  const session = keys.key(sessionId);
  if (session === undefined || !isOpen(keys, session, now())) throw sessionEnded();
}

/** Throws `unauthenticated` for a key that has ended. */
function requireCurrent(key: ApiKey, nowMs: number): void {
  if (keyEndMs(key) <= nowMs) throw keyEnd(key).failure();
}

function sessionEnded(): Failure {
  return new Failure('unauthenticated', 'The session has ended. Sign in again.');
}

/** A new session's token, which the browser's page keeps, and its cookie, which it cannot read. */
interface SessionSecrets {
  readonly token: string;
  readonly cookieName: string;
  readonly cookie: string;
  /** The text whose hash is stored. */
  readonly text: string;
}

/** Makes the secrets of a session: 256 random bits in the token, and as many in the cookie. */
export function newSessionSecrets(randomBytes: (count: number) => Buffer): SessionSecrets {
  const tag = randomBytes(4).toString('hex');
  const token = `${sessionPrefix}${tag}_${randomBytes(32).toString('base64url')}`;
  const cookie = randomBytes(32).toString('base64url');
  return { token, cookieName: cookieNameOf(tag), cookie, text: joined(cookie, token) };
}

/** Whether a text has the form of a session's token. */
export function isSessionToken(text: string): boolean {
  return tokenPattern.test(text);
}

/** The name of the cookie that belongs to a token: each session has a cookie of its own. */
export function sessionCookieName(token: string): string | undefined {
  const tag = tokenPattern.exec(token)?.[1];
  return tag === undefined ? undefined : cookieNameOf(tag);
}

/**
 * The texts by which the session of a token may be stored: one for each cookie of its name, because
 * another page of the origin may have set a second one.
 */
function sessionTexts(token: string, cookies: string | undefined): readonly string[] {
  const name = sessionCookieName(token);
  if (name === undefined || cookies === undefined) return [];
  return cookies
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .slice(0, cookiesTriedMax)
    .map((pair) => joined(pair.slice(name.length + 1), token));
}

/** Whether a session has expired at a time, in milliseconds since 1970. */
export function isExpired({ session }: Pick<ApiKey, 'session'>, nowMs: number): boolean {
  return session !== undefined && Date.parse(session.expires) <= nowMs;
}

function cookieNameOf(tag: string): string {
  return `waymark_session_${tag}`;
}

function joined(cookie: string, token: string): string {
  return `${cookie} ${token}`;
}
