import type { Cidr } from '../model/cidr.ts';
import { Failure } from '../model/failure.ts';
import { requestLineBytesMax } from '../model/limits.ts';
import { parseAuthority, type Scheme } from './authority.ts';
import { readFields, requireFraming } from './fields.ts';
import { believedClient } from './forwarded.ts';
import type { Fields, RequestTarget } from './request.ts';

/** The head of a request as it came in: nothing of it has been checked. */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** `1.0` or `1.1`. */
  readonly httpVersion: string;
  /** Flat list of name, value, name, value; latin1. */
  readonly rawFields: readonly string[];
  /** Whether the connection is TLS. */
  readonly secure: boolean;
  readonly peerAddress: string;
}

/** A request that was let in. */
export interface Entrance {
  readonly target: RequestTarget;
  readonly fields: Fields;
  /** The client's address as believed: the peer's, or what a trusted proxy said of it. */
  readonly address: string;
}

/** Why something is not let in, for the client to read. */
interface Refusal {
  readonly reason: string;
}

/**
 * pchar and `/` (RFC 3986 §3.3) and the brackets that every browser sends as they are, but nothing
 * to decode.
 */
const plainPath = /^[A-Za-z0-9\-._~!$&'()*+,;=:@[\]/]*$/;
const notInPath = /[^A-Za-z0-9\-._~!$&'()*+,;=:@[\]/%]/;
/**
 * What no query may hold: controls, space, `#`, `<`, `>` and everything that is not ASCII. The
 * other characters that RFC 3986 §3.4 leaves out (`"`, `\`, `^`, a backtick, `{`, `|`, `}`) are
 * what browsers and people at a command line send in queries, and a query is opaque here.
 */
const notInQuery = /[^\x21\x22\x24-\x3b\x3d\x3f-\x7e]/;
const badEscape = /%(?![0-9A-Fa-f]{2})/;
const encodedSeparator = /%(?:2f|5c)/i;
/** C0, DEL, C1 and the line and paragraph separators. */
const control = /[^\x20-\x7e\xa0-\u2027\u202a-\uffff]/;
/**
 * `.` and `..`, also with path parameters: there are servers that drop those and see a dot segment
 * (RFC 3986 §3.3).
 */
const dotSegment = /\/\.\.?(?:[;/]|$)/;
const absoluteForm = /^(https?):\/\/([^/?#]*)/i;
const needsNoEncoding = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/]*$/;
const notInUrl = /[ "<>^`{|}\u{80}-\u{d7ff}\u{e000}-\u{10ffff}]/gu;

/**
 * The door (contract §3.1): turns the head of a request into its one canonical target, its fields
 * and its client, and throws `invalid` for anything that two readers could understand differently
 * (RFC 9110 §7, RFC 9112 §3 and §6).
 */
export function openDoor(
  head: RequestHead,
  { trustProxy }: { readonly trustProxy: readonly Cidr[] },
): Entrance {
  requireRequestLine(head);
  const fields = readFields(head.rawFields);
  requireFraming(fields, head.httpVersion);
  const { address, scheme, authority } = believedClient({
    fields,
    peerAddress: head.peerAddress,
    scheme: head.secure ? 'https' : 'http',
    trustProxy,
  });
  const host = requireHost(fields, scheme);
  const { path, query } = readTarget(head, { scheme, host });
  return { target: { origin: `${scheme}://${authority ?? host}`, path, query }, fields, address };
}

/**
 * The canonical form of an encoded path: percent escapes decoded exactly once (RFC 3986 §2.4),
 * everything else as it stands, empty inner segments too. Undefined when it does not start with
 * exactly one `/`, or has a dot segment, an encoded `/`, a backslash, a control character, a bad
 * escape, bytes that are not UTF-8, or a character that a path of a URL cannot hold.
 */
export function canonicalPath(encoded: string): string | undefined {
  const path = readPath(encoded);
  return typeof path === 'string' ? path : undefined;
}

/**
 * The path of a URL for a canonical path: all is percent-encoded as UTF-8 but unreserved
 * characters, sub-delims, `:`, `@` and `/` (RFC 3986 §3.3), so that canonicalPath gives the same
 * path back.
 */
export function encodePath(path: string): string {
  if (needsNoEncoding.test(path)) return path;
  return encodeURI(path.toWellFormed()).replace(/[?#]/g, encodeURIComponent);
}

/**
 * A path as a person writes it, in the form of a URL: non-ASCII characters (RFC 3987 §3.1), spaces
 * and the other visible characters that no URL holds are percent-encoded; escapes and all else are
 * left alone.
 */
export function encodeNonAscii(text: string): string {
  return text.replace(notInUrl, encodeURIComponent);
}

function requireRequestLine({ method, target, httpVersion }: RequestHead): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    throw new Failure('invalid', 'Only HTTP/1.1 and HTTP/1.0 are spoken here.');
  }
  if (method.length + target.length + ' '.length + ' HTTP/1.1'.length > requestLineBytesMax) {
    throw new Failure('invalid', `The request line is longer than ${requestLineBytesMax} bytes.`);
  }
}

/**
 * The canonical authority of the Host field, which HTTP/1.0 has to send here too (RFC 9112 §3.2).
 */
function requireHost(fields: Fields, scheme: Scheme): string {
  const value = fields.host;
  if (value === undefined) {
    throw new Failure('invalid', 'The Host field is missing.', { field: 'host' });
  }
  const host = parseAuthority(value, scheme);
  if (host === undefined) {
    throw new Failure('invalid', 'The Host field is not a host with an optional port.', {
      field: 'host',
    });
  }
  return host;
}

/** Path and query of any form of request target that an origin server gets (RFC 9112 §3.2). */
function readTarget(
  { method, target }: RequestHead,
  site: { readonly scheme: Scheme; readonly host: string },
): { readonly path: string; readonly query: string } {
  if (target === '*' && method === 'OPTIONS') return { path: target, query: '' };
  const relative = target.startsWith('/') ? target : withoutSite(target, site);
  const mark = relative.indexOf('?');
  const query = mark === -1 ? '' : relative.slice(mark + 1);
  if (query !== '') {
    const illegal = notInQuery.exec(query);
    if (illegal !== null) throw new Failure('invalid', illegalCharacter(illegal[0], 'query'));
  }
  const path = readPath(mark === -1 ? relative : relative.slice(0, mark));
  if (typeof path !== 'string') throw new Failure('invalid', path.reason);
  return { path, query };
}

/** The rest of an absolute-form target, which has to name the same site as scheme and Host do. */
function withoutSite(
  target: string,
  { scheme, host }: { readonly scheme: Scheme; readonly host: string },
): string {
  const match = absoluteForm.exec(target);
  if (match === null) {
    throw new Failure('invalid', 'The request target has to be a path that starts with /.');
  }
  const [site, targetScheme = '', authority = ''] = match;
  if (targetScheme.toLowerCase() !== scheme || parseAuthority(authority, scheme) !== host) {
    throw new Failure('invalid', 'The request target names another site than the Host field.');
  }
  const rest = target.slice(site.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

function readPath(encoded: string): string | Refusal {
  if (!encoded.startsWith('/')) return { reason: 'The path does not start with /.' };
  if (encoded.startsWith('//')) return { reason: 'The path starts with //.' };
  const path = plainPath.test(encoded) ? encoded : decodePath(encoded);
  if (typeof path !== 'string') return path;
  return path.includes('/.') && dotSegment.test(path)
    ? { reason: 'The path has a . or .. segment.' }
    : path;
}

function decodePath(encoded: string): string | Refusal {
  const illegal = notInPath.exec(encoded);
  if (illegal !== null) return { reason: illegalCharacter(illegal[0], 'path') };
  if (badEscape.test(encoded)) {
    return { reason: 'The path has a % without two hexadecimal digits after it.' };
  }
  if (encodedSeparator.test(encoded)) return { reason: 'The path has an encoded / or \\.' };
  let path;
  try {
    path = decodeURIComponent(encoded);
  } catch {
    return { reason: 'The path is not UTF-8.' };
  }
  return control.test(path) ? { reason: 'The path has a control character.' } : path;
}

function illegalCharacter(character: string, where: 'path' | 'query'): string {
  if (character === '#') return 'The request target has a fragment.';
  const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  return `The ${where} holds the character U+${code}, which has to be percent-encoded.`;
}
