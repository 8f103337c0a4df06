import type { IncomingMessage } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import type { CacheOutcome, FieldList, Reply } from '../http/reply.ts';
import type { HttpVersion } from '../http/request.ts';
import type { Cancellation, Failure } from '../values/failure.ts';
import type { ClientAddress, Peer } from '../values/network/peer.ts';

/** The head of a request as it was sent, from any parser. */
export interface MessageHead {
  readonly method: string;
  /** The request target (RFC 9112 §3.2), usually path and query. */
  readonly url: string;
  /** As it was sent; validation refuses others. */
  readonly version: HttpVersion;
  /** Flat list of name, value, name, value, as they were sent; latin1. */
  readonly fields: readonly string[];
}

/** The content of a request; a slow reader slows its client. */
export interface RequestBody extends Readable {
  /** Whether all of the content has arrived. */
  readonly complete: boolean;
  /** The trailer fields, flat, once the content is complete. */
  readonly rawTrailers: readonly string[];
}

/** Requests that arrived together, in one piece of a connection, have the same object. */
export interface Arrival {
  /** The time, in milliseconds of a monotonic clock. */
  readonly atMs: number;
}

/** A request whose head has arrived. */
export interface Arrived {
  readonly head: MessageHead;
  readonly peer: Peer;
  /** Undefined for a request that arrived alone. */
  readonly arrival?: Arrival;
}

/** A request for another protocol on its connection, or on its stream of HTTP/2. */
export interface UpgradeRequest extends Arrived {
  /** The connection, or the stream; with content, a stream over the connection. */
  readonly socket: Duplex;
  /** The content; undefined for a request that announces none. */
  readonly body: RequestBody | undefined;
  /** Why the protocol cannot be opened, whatever the path; undefined for any other request. */
  readonly failure?: Failure | undefined;
  /** What the client has sent behind the head, or behind the content. */
  readonly ahead: Buffer;
  /** What the package `ws` reads of the opening handshake of a websocket (RFC 6455 §4.2.1). */
  readonly handshake: Pick<IncomingMessage, 'method' | 'headers'>;
}

/** The result of sending an answer. */
export interface Sent {
  /** Bytes of content handed to the connection. */
  readonly bytes: number;
  /** Whether client or source closed the connection before the end. */
  readonly cut: boolean;
}

/** An answer that can be sent several times. */
export interface Prepared {
  readonly status: number;
  readonly fields: FieldList;
  /**
   * The content. If it is short, a text with one character for each byte, to be sent with the head.
   */
  readonly content: string | Buffer | undefined;
  readonly bytes: number;
  readonly source: string;
  /** Status line and fields as they are sent. */
  readonly head: string;
  /** Whether the fields contain a Date, as those of a cached response do. */
  readonly isDated: boolean;
  readonly cache: CacheOutcome | undefined;
  /** As in Reply. */
  readonly isCurrent: Reply['isCurrent'];
  readonly admits: Reply['admits'];
  /** As in Reply; each request gets another id. */
  readonly failureId?: string | undefined;
  readonly reason?: string | undefined;
}

/** One request and the way to its answer. */
export interface Exchange extends Arrived {
  /** The content; undefined for a request that announces none (RFC 9112 §6.3). */
  readonly body: RequestBody | undefined;
  /** Why the request cannot be read whole; undefined for any other. */
  readonly failure: Failure | undefined;
  /** Whether all of the request has arrived. */
  readonly hasArrived: boolean;
  /** Whether its client no longer waits: the connection has closed, or the client's side of it. */
  readonly signal: Cancellation;
  /** Whether another request may follow on the connection. HTTP/2 ignores it. */
  shouldKeepAlive: boolean;
  /** Whether the head of the answer is sent. */
  readonly hasBegun: boolean;
  /** Whether the system has taken the whole answer. */
  readonly isSent: boolean;
  /** Whether nothing more can be sent: the answer is sent, or the connection has closed. */
  readonly isOver: boolean;
  /** Calls a listener once, when the answer is sent or the connection has closed. */
  onClose(listener: () => void): void;
  /** Sends an interim response (RFC 9110 §15.2), unless the answer has begun. */
  interim(status: number, fields: FieldList): void;
  /**
   * Sends the answer, as fast as the client reads. If it cannot be finished, it ends the connection
   * or the stream, so that the client sees that a part is missing (RFC 9112 §8, RFC 9113 §8.1.1).
   * Returns at once if there is nothing to wait for. `address` is that of the client, which shares
   * the turns of files with others; that of its peer by default.
   */
  respond(reply: Reply, address?: ClientAddress): Sent | Promise<Sent>;
  /**
   * Prepares the connection for an answer to a request whose content nobody reads; `tooMuch` is
   * called if the client goes on sending it.
   */
  leaveUnread(tooMuch: () => void): void;
  /** Ends the connection, or the stream, without the rest of the answer. */
  destroy(): void;
}

/**
 * A request that may get a prepared answer: of HTTP/1.1, or a stream of HTTP/2.
 */
export interface PreparableExchange extends Exchange {
  /** Sends a prepared answer; `nowMs` is milliseconds since 1970. */
  respondPrepared(prepared: Prepared, nowMs: number): void;
}

/** Returns the value of Accept in a head that is not validated; undefined without one. */
export function sentAccept({ fields }: MessageHead): string | undefined {
  const isAccept = (at: number): boolean => fields[at - 1]?.toLowerCase() === 'accept';
  const values = fields.filter((_, at) => at % 2 === 1 && isAccept(at));
  return values.length === 0 ? undefined : values.join(', ');
}
