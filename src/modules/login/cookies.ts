import { loginCookie, loginCountCookie, signInCookie } from './login-cookies.ts';

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
