/** The cookie of a session of `[login]`; over TLS, `__Host-` stands before each of these names. */
export const loginCookie = 'waymark_login';
/** How often a browser has come back from the provider in the last minute. */
export const loginCountCookie = 'waymark_login_count';
/** The beginning of the name of a cookie of a started sign-in. */
export const signInCookie = 'waymark_signin_';

const own = /(?:^|;)\s*(?:__Host-)?waymark_(?:login|login_count|signin_[\w-]{1,16})=[^;]*/g;

/** A field `Cookie` without the cookies of `[login]`, which no source may see. */
export function withoutLogin(cookie: string): string {
  return cookie.replaceAll(own, '').replace(/^;\s*/, '').trim();
}

/** Whether a field `Cookie` may have cookies of `[login]`. */
export function mayHaveLogin(cookie: string): boolean {
  return cookie.includes(loginCookie) || cookie.includes(signInCookie);
}
