import { sessionPrefix, type ApiKey } from '../../values/key.ts';

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

const tokenPattern = new RegExp(`^${sessionPrefix}([0-9a-f]{8})_[A-Za-z0-9_-]{43}$`);

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
export function sessionTexts(token: string, cookies: string | undefined): readonly string[] {
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

const cookiesTriedMax = 4;

function cookieNameOf(tag: string): string {
  return `waymark_session_${tag}`;
}

function joined(cookie: string, token: string): string {
  return `${cookie} ${token}`;
}
