import type { Readable } from 'node:stream';
import type { Visitor } from '../model/visitor.ts';
import type { Asking } from './reply.ts';

/**
 * Header fields of a request by lower-case name (RFC 9110 §5); repeated ones joined with `, ` (`; `
 * for Cookie). Has no prototype.
 */
export type Fields = Readonly<Record<string, string | undefined>>;

/**
 * What the door makes of request line, Host and peer: the only form in which later code sees a
 * target.
 */
export interface RequestTarget {
  /** `scheme://host[:port]`, lower case, the scheme's default port left out. */
  readonly origin: string;
  /** The canonical path: starts with `/`, decoded once, no dot segments. `*` for `OPTIONS *`. */
  readonly path: string;
  /** The query as it was sent, without its `?`; empty when there was none. */
  readonly query: string;
}

/** A request for content, wherever it came from: the port, or a get_content operation. */
export interface ContentRequest extends RequestTarget, Asking {
  readonly method: string;
  readonly fields: Fields;
  /** Address of the client as believed: the peer's, or what a trusted proxy said of it. */
  readonly address: string;
  /** Who asks; its address is the one above. */
  readonly visitor: Visitor;
  /** The request's content as it arrives; undefined where there is none. */
  readonly body: Readable | undefined;
}

/** Whether a method does nothing but ask for a representation (RFC 9110 §9.3.1, §9.3.2). */
export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
