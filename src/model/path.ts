/** Why a path or query is invalid, as a clause of a message. */
interface Refusal {
  readonly reason: string;
}

/** pchar and `/` (RFC 3986 §3.3), and brackets, which browsers do not encode; no escapes. */
const plainPath = /^[A-Za-z0-9\-._~!$&'()*+,;=:@[\]/]*$/;
const notInPath = /[^A-Za-z0-9\-._~!$&'()*+,;=:@[\]/%]/;
const badEscape = /%(?![0-9A-Fa-f]{2})/;
const encodedSeparator = /%(?:2f|5c)/i;
/** C0, DEL, C1 and the line and paragraph separators. */
const control = /[^\x20-\x7e\xa0-\u2027\u202a-\uffff]/;
/**
 * `.` and `..`, also with path parameters, because some servers remove those and find a dot segment
 * (RFC 3986 §3.3).
 */
const dotSegment = /\/\.\.?(?:[;/]|$)/;
const needsNoEncoding = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/]*$/;
const notInUrl = /[ "<>^`{|}\u{80}-\u{d7ff}\u{e000}-\u{10ffff}]/gu;

/**
 * The canonical form of an encoded path: percent escapes are decoded exactly once (RFC 3986 §2.4),
 * and everything else stays, including empty inner segments. Undefined if it does not start with
 * exactly one `/`, or has a dot segment, an encoded `/`, a backslash, a control character, a bad
 * escape, bytes that are not UTF-8, or a character that a path of a URL cannot contain.
 */
export function canonicalPath(encoded: string): string | undefined {
  const path = readPath(encoded);
  return typeof path === 'string' ? path : undefined;
}

/**
 * The path of a URL for a canonical path, which canonicalPath decodes to the same path. Everything
 * except unreserved characters, sub-delims, `:`, `@` and `/` is percent-encoded as UTF-8 (RFC 3986
 * §3.3).
 */
export function encodePath(path: string): string {
  if (needsNoEncoding.test(path)) return path;
  return encodeURI(path.toWellFormed()).replace(/[?#]/g, encodeURIComponent);
}

/** The URL for an origin, a canonical path and a query, which may be empty. */
export function urlOf({
  origin,
  path,
  query,
}: {
  readonly origin: string;
  readonly path: string;
  readonly query: string;
}): string {
  return `${origin}${encodePath(path)}${query === '' ? '' : `?${query}`}`;
}

/**
 * Percent-encodes the characters of a hand-written path that a URL cannot contain: non-ASCII
 * characters (RFC 3987 §3.1), spaces, and some visible ones. Escapes stay unchanged.
 */
export function encodeNonAscii(text: string): string {
  return text.replace(notInUrl, encodeURIComponent);
}

/** As canonicalPath, but says why a path is invalid. */
export function readPath(encoded: string): string | Refusal {
  if (!encoded.startsWith('/')) return { reason: 'the path does not start with /' };
  if (encoded.startsWith('//')) return { reason: 'the path starts with //' };
  const path = plainPath.test(encoded) ? encoded : decodePath(encoded);
  if (typeof path !== 'string') return path;
  return path.includes('/.') && dotSegment.test(path)
    ? { reason: 'the path has a . or .. segment' }
    : path;
}

/**
 * Whether the path of a page rule is a wildcard: its `*` at the end covers any rest of a path
 * (docs/design/page-rules.md#matching).
 */
export function isWildcardPath(path: string): boolean {
  return path.startsWith('/') && path.endsWith('*');
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
  if (encodedSeparator.test(encoded)) return { reason: 'the path has an encoded / or \\' };
  let path;
  try {
    path = decodeURIComponent(encoded);
  } catch {
    return { reason: 'the path is not UTF-8' };
  }
  return control.test(path) ? { reason: 'the path has a control character' } : path;
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
