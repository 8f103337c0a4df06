import type { Readable } from 'node:stream';
import type { Cancellation } from '../model/cancellation.ts';
import type { Visitor } from '../model/visitor.ts';
import type { FieldList } from './reply.ts';

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
export interface ContentRequest extends RequestTarget {
  readonly method: string;
  readonly fields: Fields;
  /** Address of the client as believed: the peer's, or what a trusted proxy said of it. */
  readonly address: string;
  /** Who asks; its address is the one above. */
  readonly visitor: Visitor;
  /** The request's content as it arrives; undefined where there is none. */
  readonly body: Readable | undefined;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: Cancellation;
  /**
   * Sends an answer ahead of the one that counts (RFC 9110 §15.2), by its status and fields: not
   * 100, nor 101.
   */
  readonly interim?: ((status: number, fields: FieldList) => void) | undefined;
}

/** Whether a method does nothing but ask for a representation (RFC 9110 §9.3.1, §9.3.2). */
export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
