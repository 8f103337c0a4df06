import type { Readable } from 'node:stream';
import type { ClientAddress } from '../values/network/peer.ts';
import type { RequestPath } from '../values/path.ts';
import type { FieldList, Recipient } from './reply.ts';
import type { Visitor } from './visitor.ts';

/** Safe methods (RFC 9110 §9.2.1 and the registry of §16.1). */
const safe: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'OPTIONS',
  'PROPFIND',
  'QUERY',
  'REPORT',
  'SEARCH',
  'TRACE',
]);

/**
 * The methods that the server passes on. Other methods are answered with 501 (RFC 9110 §9.1).
 */
const implemented: ReadonlySet<string> = new Set(
  (
    'ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY ' +
    'MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND ' +
    'REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE'
  ).split(' '),
);

/**
 * Header fields of a request by lower-case name (RFC 9110 §5), without a prototype; the values of a
 * repeated field are joined with `, ` (`; ` for Cookie).
 */
export type Fields = Readonly<Record<string, string | undefined>>;

/**
 * The validated target that `parseRequest` makes of request line, Host and peer; no later code
 * reads the original text. Its canonical path decides, its sent path travels
 * (docs/design/requests.md#two-forms-of-a-path).
 */
export interface RequestTarget extends RequestPath {
  /** `scheme://host[:port]`, lower case, without the default port of the scheme. */
  readonly origin: string;
  /** The query as the client sent it, without `?`; empty if there is none. */
  readonly query: string;
  /** Whether `?` ends the URL: it is another URL than the one without. */
  readonly hasEmptyQuery?: true;
}

/** The client of an operation that asks for content. */
export interface AccessClient {
  readonly fields: Fields;
  readonly visitor: Visitor;
  /** Whether a page of another origin sends the request, with what its browser knows. */
  readonly isForeign: boolean;
}

/** A version of HTTP that the server speaks. */
export type HttpVersion = '1.0' | '1.1' | '2';

/** A request for content, from the port or from a get_content operation. */
export interface ContentRequest extends RequestTarget, Recipient {
  readonly method: string;
  /** The version of HTTP in which it arrived; absent for one that an operation makes. */
  readonly version?: HttpVersion;
  readonly fields: Fields;
  /** The address of the client: the peer's, or the one in a trusted proxy's fields. */
  readonly address: ClientAddress;
  /** The visitor at that address. */
  readonly visitor: Visitor;
  /** The content of the request as a stream; undefined without content. */
  readonly body: Readable | undefined;
  /**
   * Whose access counts, if the request comes from an operation: it may describe another visitor.
   */
  readonly client?: AccessClient | undefined;
  /** True if the fields say who the client is, so that no cache may answer or store. */
  readonly isPersonal?: true;
  /** Collects the access rules that the answer depends on, also those of a page inside it. */
  readonly accessRules?: Set<string>;
  /** The access rules that the client has passed: a path inside the server asks them no more. */
  readonly passedAccess?: ReadonlySet<string>;
  /** The paths for whose rates the request has counted, the one that the client asks for first. */
  readonly ratedFor?: readonly string[];
  /**
   * How the server has been led to this path: by a rewrite, by a line of a file of redirects, or as
   * the generic page inside another one; absent for the path that the client asks for.
   */
  readonly inside?: 'rewrite' | 'line' | 'page';
  /** The password that a rule has taken from the fields, for a page or breadcrumb inside. */
  readonly password?: string;
  /** Trailer fields (RFC 9110 §6.5) as the client sent them, once `body` has ended. */
  readonly trailers?: (() => FieldList) | undefined;
}

/** Whether a method only reads a representation (RFC 9110 §9.3.1, §9.3.2). */
export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Whether a method is safe (RFC 9110 §9.2.1). */
export function isSafe(method: string): boolean {
  return safe.has(method);
}

/** Whether a method is idempotent, so that a request may be repeated (RFC 9110 §9.2.2). */
export function isIdempotent(method: string): boolean {
  return safe.has(method) || method === 'PUT' || method === 'DELETE';
}

/** Whether the server implements a method. */
export function isImplemented(method: string): boolean {
  return implemented.has(method);
}

/**
 * Whether a browser requests a page that it may never show (Fetch §Sec-Purpose); `purpose` is the
 * value of prefetchPurpose.
 */
export function isPrefetch(purpose: string): boolean {
  return purpose !== '' && /^\s*(?:prefetch|preview)/i.test(purpose);
}

/** The field that names such a request, of today's browsers or of older ones; empty without one. */
export function prefetchPurpose(fields: Fields): string {
  return fields['sec-purpose'] ?? fields.purpose ?? fields['x-moz'] ?? '';
}
