/** Why a path or query is invalid, as a clause of a message. */
interface Refusal {
  readonly reason: string;
}

declare const form: unique symbol;

/**
 * The path that decides: rules, mounts and explain match it. Percent escapes are decoded exactly
 * once (RFC 3986 §2.4), and everything else stays, including empty segments. An encoded `/` or `\`
 * and a byte that is not UTF-8 stay encoded, in upper case, and separate nothing. A `%` that would
 * look like one of these escapes stays `%25`: two different paths never have one canonical form.
 */
export type CanonicalPath = string & { readonly [form]: 'canonical' };

/** The path that travels: byte for byte as the client sent it. Sources and the cache use it. */
type SentPath = string & { readonly [form]: 'sent' };

/** Both forms of the path of a request. */
export interface RequestPath {
  readonly path: CanonicalPath;
  readonly sentPath: SentPath;
}

/**
 * Characters of a path besides escapes: pchar and `/` (RFC 3986 §3.3), and those that browsers do
 * not encode, or did not by an older edition of the URL Standard.
 */
const plainPath = /^[A-Za-z0-9\-._~!$&'()*+,;=:@[\]/^`{|}]*$/;
const notInPath = /[^A-Za-z0-9\-._~!$&'()*+,;=:@[\]/^`{|}%]/;
const badEscape = /%(?![0-9A-Fa-f]{2})/;
const encodedSeparator = /%(?:2f|5c)/gi;
/** C0 but NUL, DEL, C1 and the line and paragraph separators. */
const control = /[^\0\x20-\x7e\xa0-\u2027\u202a-\uffff]/;
/**
 * `.` and `..` in a canonical path, also between encoded separators, and with path parameters,
 * because some servers remove those and find a dot segment (RFC 3986 §3.3).
 */
const dotSegment = /(?:\/|%2F|%5C)\.\.?(?:[;/]|%2F|%5C|$)/;
/** A longer form than a character needs: some servers read a `.` or `/` in it (RFC 3629 §10). */
const overlong = /%C[01]%[89AB]|%E0%[89].%[89AB]|%F0%8.%[89AB].%[89AB]|%F8%8[0-7]|%FC%8[0-3]/i;
const trailingByte = '%[89AB][0-9A-F]';
/** A character of UTF-8 beyond ASCII (RFC 3629 §4), or a single byte as the captured group. */
const utf8OrByte = new RegExp(
  [
    `%(?:C[2-9A-F]|D[0-9A-F])${trailingByte}`,
    `%E0%[AB][0-9A-F]${trailingByte}`,
    `%ED%[89][0-9A-F]${trailingByte}`,
    `%E[1-9A-CEF]${trailingByte}${trailingByte}`,
    `%F0%[9AB][0-9A-F]${trailingByte}${trailingByte}`,
    `%F4%8[0-9A-F]${trailingByte}${trailingByte}`,
    `%F[1-3]${trailingByte}${trailingByte}${trailingByte}`,
    '(%[89A-F][0-9A-F])',
  ].join('|'),
  'gi',
);
/** Stands for the `%` of an escape that stays, while a path is decoded: `%00` is refused before. */
const keptPercent = '\0';
/** The escapes that stay in a canonical path, without their `%`: separators, and single bytes. */
const keptEscape = '(?:2F|5C|[89A-F][0-9A-F])';
/** A `%` of a text that would look like such an escape, or like the `%25` before one. */
const ambiguousPercent = new RegExp(`%(?=(?:25)*${keptEscape})`, 'gi');
/** What stays as it is when a canonical path is encoded or read as text. */
const keptEscapes = new RegExp(`%(?:25)*${keptEscape}`, 'gi');
const keptEscapeHere = new RegExp(`%(?:25)*${keptEscape}`, 'iy');
/** The same escapes, after their `%` was encoded. */
const encodedKeptEscapes = new RegExp(`%25(?:25)*${keptEscape}`, 'gi');
const needsNoEncoding = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/]*$/;
const notInUrl = /[ "<>^`{|}\u{80}-\u{d7ff}\u{e000}-\u{10ffff}]/gu;

/** The canonical form of an encoded path; undefined if readPath refuses it. */
export function canonicalPath(encoded: string): CanonicalPath | undefined {
  const path = readPath(encoded);
  return typeof path === 'string' ? path : undefined;
}

/**
 * The canonical form of an encoded path, or why it is invalid: it does not start with `/`, or has a
 * dot segment in any spelling, a backslash, a control character, a bad escape, an overlong form of
 * UTF-8, or a character that no browser sends.
 */
export function readPath(encoded: string): CanonicalPath | Refusal {
  if (!encoded.startsWith('/')) return { reason: 'the path does not start with /' };
  const path = plainPath.test(encoded) ? encoded : decodePath(encoded);
  if (typeof path !== 'string') return path;
  return path.includes('.') && dotSegment.test(path)
    ? { reason: 'the path has a . or .. segment' }
    : (path as CanonicalPath);
}

/** Both forms of the path that a client sends, or why it is invalid: see readPath. */
export function readRequestPath(sent: string): RequestPath | Refusal {
  const path = readPath(sent);
  return typeof path === 'string' ? { path, sentPath: sent as SentPath } : path;
}

/** Both forms of a canonical path that no client has sent. */
export function requestPathOf(path: CanonicalPath): RequestPath {
  return { path, sentPath: encodePath(path) as SentPath };
}

/** The path of `OPTIONS *` (RFC 9112 §3.2.4); no rule and no mount has it. */
export const wholeServer: RequestPath = {
  path: '*' as CanonicalPath,
  sentPath: '*' as SentPath,
};

/**
 * The path with single slashes, in both forms; undefined if the path has no empty segment. Its own
 * first character is a single slash, so that a redirect to it stays on its host (RFC 3986 §4.2).
 */
export function withSingleSlashes({ path, sentPath }: RequestPath): RequestPath | undefined {
  if (!path.includes('//')) return undefined;
  const single = <T extends string>(text: T): T => text.replace(/\/{2,}/g, '/') as T;
  return { path: single(path), sentPath: single(sentPath) };
}

/** The path with a slash behind it; undefined if it has one, or if its last name has a dot. */
export function withFinalSlash({ path, sentPath }: RequestPath): RequestPath | undefined {
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (!path.startsWith('/') || name === '' || name.includes('.')) return undefined;
  return { path: `${path}/` as CanonicalPath, sentPath: `${sentPath}/` as SentPath };
}

/** The path without the slash at its end; undefined for one that has none, and for the root. */
export function withoutFinalSlash({ path, sentPath }: RequestPath): RequestPath | undefined {
  if (!path.endsWith('/') || path === '/') return undefined;
  return { path: path.slice(0, -1) as CanonicalPath, sentPath: sentPath.slice(0, -1) as SentPath };
}

/** The canonical path of a text that is no URL, such as the path of a file. */
export function pathOfText(text: string): CanonicalPath {
  return text.replace(ambiguousPercent, '%25') as CanonicalPath;
}

/** The canonical path of a name in the folder of a canonical path, which ends with `/`. */
export function pathInFolder(folder: string, name: string): CanonicalPath {
  return `${folder}${pathOfText(name)}` as CanonicalPath;
}

/**
 * The text that pathOfText makes a path or a part of one of; undefined if it has an encoded
 * separator or a byte that is not UTF-8, which are in no text.
 */
export function textOfPath(path: string): string | undefined {
  if (!path.includes('%')) return path;
  const escapes = path.match(keptEscapes) ?? [];
  if (escapes.some(({ length }) => length === '%2F'.length)) return undefined;
  return path.replace(keptEscapes, (escape) => `%${escape.slice('%25'.length)}`);
}

/** `?`, `#`, and each `%` that begins no escape which a canonical path keeps. */
const notAsText = new RegExp(`%(?!(?:25)*${keptEscape})|[?#]`, 'gi');

/** A canonical path with `%`, `?` and `#` escaped, so that readPath reads the same path. */
export function escapedPath(path: string): string {
  return path.replace(notAsText, encodeURIComponent);
}

/**
 * The path of a URL for a canonical path, which canonicalPath decodes to the same path, or for a
 * part of one. Everything except unreserved characters, sub-delims, `:`, `@`, `/` and the escapes
 * that a canonical path has is percent-encoded as UTF-8 (RFC 3986 §3.3).
 */
export function encodePath(path: string): string {
  if (needsNoEncoding.test(path)) return path;
  const encoded = encodeURI(path.toWellFormed()).replace(/[?#]/g, encodeURIComponent);
  return encoded.replace(encodedKeptEscapes, (escape) => `%${escape.slice('%25'.length)}`);
}

/** An encoded path, or a part of one, as the value of a parameter of a query. */
export function asQueryValue(encoded: string): string {
  return encoded.replace(/[^A-Za-z0-9\-_.!~*'()%]/g, encodeURIComponent);
}

/**
 * The part of a sent path behind the first characters of its canonical path. Undefined if these end
 * within an escape.
 */
export function sentAfter(
  { path, sentPath }: RequestPath,
  canonicalLength: number,
): string | undefined {
  // Up to the first escape, both forms are the same.
  if (!sentPath.slice(0, canonicalLength).includes('%')) return sentPath.slice(canonicalLength);
  let [at, sentAt] = [0, 0];
  while (at < canonicalLength) {
    const character = path.codePointAt(at) ?? 0;
    if (sentPath[sentAt] !== '%') [at, sentAt] = [at + 1, sentAt + 1];
    else if (character === percent && isKeptAt(path, at)) [at, sentAt] = [at + 3, sentAt + 3];
    else {
      at += String.fromCodePoint(character).length;
      sentAt += 3 * utf8Length(character);
    }
  }
  return at === canonicalLength ? sentPath.slice(sentAt) : undefined;
}

const percent = 0x25;

/** Whether an escape of a canonical path begins at a position: `%2F`, or `%25` before `2F`. */
function isKeptAt(path: string, at: number): boolean {
  keptEscapeHere.lastIndex = at;
  return keptEscapeHere.test(path);
}

/** The bytes of a character in UTF-8. */
function utf8Length(character: number): number {
  if (character < 0x80) return 1;
  if (character < 0x800) return 2;
  return character < 0x1_0000 ? 3 : 4;
}

/** The URL for an origin, a canonical path and a query, which may be empty: one for each path. */
export function urlOf({
  origin,
  path,
  query,
}: {
  readonly origin: string;
  readonly path: CanonicalPath;
  readonly query: string;
}): string {
  return `${origin}${encodePath(path)}${query === '' ? '' : `?${query}`}`;
}

/**
 * The URL that a client has sent: origin, sent path and query, which may be empty; an empty one has
 * its `?` only if the client has sent that.
 */
export function sentUrlOf({
  origin,
  sentPath,
  query,
  hasEmptyQuery = false,
}: {
  readonly origin: string;
  readonly sentPath: SentPath;
  readonly query: string;
  readonly hasEmptyQuery?: boolean;
}): string {
  return `${origin}${sentPath}${query === '' && !hasEmptyQuery ? '' : `?${query}`}`;
}

/**
 * Percent-encodes the characters of a hand-written path that a URL cannot contain: non-ASCII
 * characters (RFC 3987 §3.1), spaces, and some visible ones. Escapes stay unchanged.
 */
export function encodeNonAscii(text: string): string {
  return text.replace(notInUrl, encodeURIComponent);
}

/** Percent-encodes the bytes beyond ASCII of a request target, one latin1 character each. */
export function encodeBytes(target: string): string {
  return target.replace(/[\x80-\xff]/g, (byte) =>
    `%${byte.charCodeAt(0).toString(16)}`.toUpperCase(),
  );
}

/**
 * Whether the path of a page rule is a wildcard: its `*` at the end covers any rest of a path
 * (docs/design/page-rules.md#matching).
 */
export function isWildcardPath(path: string): boolean {
  return path.startsWith('/') && path.endsWith('*');
}

/** Whether a `*` of the path of a page rule stands for one whole segment. */
export function isSegmentWildcard(path: string): boolean {
  return path.startsWith('/') && path.includes('/*/');
}

/** Whether the path of a page rule covers more than one path. */
export function hasWildcard(path: string): boolean {
  return isWildcardPath(path) || isSegmentWildcard(path);
}

/** Segments of a path with a `*` in its middle; no longer path is looked up there. */
export const segmentsMax = 32;

/**
 * Whether a canonical path may be that of a page rule: its only `*` is its end, or one of its
 * segments.
 */
export function isRulePath(path: string): boolean {
  const star = path.indexOf('*');
  if (star === -1 || star === path.length - 1) return true;
  return path.lastIndexOf('*') === star && isSegmentWildcard(path) && !hasManySegments(path);
}

function hasManySegments(path: string): boolean {
  return path.split('/', segmentsMax + 2).length > segmentsMax + 1;
}

/**
 * The order of wildcards over one path, the greatest first: that whose `*` begins later, and of two
 * at the same place the one that has more behind it.
 */
export function wildcardRank(path: string): number {
  return 2 * path.indexOf('*') + Number(!path.endsWith('*'));
}

/**
 * The part of a path that the `*` of a rule's path stands for; undefined for a path that the rule
 * does not cover, and for a rule without a `*`.
 */
export function capturedPart(rulePath: string, path: string): string | undefined {
  if (!hasWildcard(rulePath)) return undefined;
  const star = rulePath.indexOf('*');
  if (!path.startsWith(rulePath.slice(0, star))) return undefined;
  const suffix = rulePath.slice(star + 1);
  if (suffix === '') return path.slice(star);
  const end = path.indexOf('/', star);
  return end > star && path.slice(end) === suffix ? path.slice(star, end) : undefined;
}

/** Whether the path of a page rule covers a path. */
export function coversPath(rulePath: string, path: string): boolean {
  return rulePath === path || capturedPart(rulePath, path) !== undefined;
}

/**
 * The paths with a `*` for one segment that cover a path, that whose `*` begins last first; none
 * for a path with too many segments.
 */
export function segmentWildcardsOver(path: string): readonly string[] {
  if (!path.startsWith('/') || hasManySegments(path)) return [];
  const found: string[] = [];
  for (let end = path.lastIndexOf('/'); end > 0;) {
    const slash = path.lastIndexOf('/', end - 1);
    // An empty segment is none.
    if (end - slash > 1) found.push(`${path.slice(0, slash + 1)}*${path.slice(end)}`);
    end = slash;
  }
  return found;
}

/** The part of a path after `{base}/svc1`; undefined for a path of content. */
export function servicePath(path: string, base: string): string | undefined {
  const prefix = `${base}/svc1`;
  if (!path.startsWith(prefix)) return undefined;
  const rest = path.slice(prefix.length);
  return rest === '' || rest.startsWith('/') ? rest : undefined;
}

function decodePath(encoded: string): string | Refusal {
  const illegal = notInPath.exec(encoded);
  if (illegal !== null) return { reason: illegalCharacter(illegal[0], 'path') };
  if (badEscape.test(encoded)) {
    return { reason: 'the path has a % without two hexadecimal digits after it: write %25' };
  }
  if (overlong.test(encoded)) return { reason: 'the path has an overlong form of UTF-8' };
  const text = decodeText(encoded.replace(encodedSeparator, keepEscape));
  if (encoded.includes('%00') || control.test(text)) {
    return { reason: 'the path has a control character' };
  }
  return pathOfText(text).replaceAll(keptPercent, '%');
}

/** Decodes the escapes of a path; those of bytes that are not UTF-8 stay. */
function decodeText(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    const keepByte = (escape: string, byte?: string): string =>
      byte === undefined ? escape : keepEscape(escape);
    return decodeURIComponent(encoded.replace(utf8OrByte, keepByte));
  }
}

/** An escape that decoding does not change, in upper case. */
function keepEscape(escape: string): string {
  return `${keptPercent}${escape.slice(1).toUpperCase()}`;
}

/**
 * Characters that a query must not contain: controls, space, `#`, `<`, `>` and non-ASCII. The other
 * characters that RFC 3986 §3.4 excludes (`"`, `\\`, `^`, a backtick, `{`, `|`, `}`) are allowed:
 * browsers and command lines send them, and the server does not interpret a query.
 */
const notInQuery = /[^\x21\x22\x24-\x3b\x3d\x3f-\x7e]/;

/** Why a text cannot be the query of a URL; undefined if it can. */
export function queryRefusal(query: string): Refusal | undefined {
  const illegal = notInQuery.exec(query);
  return illegal === null ? undefined : { reason: illegalCharacter(illegal[0], 'query') };
}

/** Names the character that must be encoded. */
function illegalCharacter(character: string, where: 'path' | 'query'): string {
  if (character === '#') return 'the request target has a fragment';
  if (character === '\\') return `the ${where} has a backslash`;
  const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  return `the ${where} contains the character U+${code}, which must be percent-encoded`;
}
