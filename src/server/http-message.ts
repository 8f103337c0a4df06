import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { CacheOutcome, FieldList, Reply } from '../http/reply.ts';

/** The parts of a request besides its content, from any parser. */
export interface RequestMessage extends Pick<
  IncomingMessage,
  'method' | 'url' | 'httpVersion' | 'httpVersionMinor' | 'rawHeaders' | 'socket' | 'complete'
> {
  /** The fields that a failure needs before the request is validated, or when it is refused. */
  readonly headers: Pick<IncomingHttpHeaders, 'accept'>;
  /** Whether it came over HTTP/2; it has the form of HTTP/1.1 all the same. */
  readonly isHttp2?: true;
}

/** The result of sending an answer. */
export interface Sent {
  /** Bytes of content handed to the socket. */
  readonly bytes: number;
  /** Whether client or source closed the connection before the end. */
  readonly cut: boolean;
}

/** The parts of a response that all protocols share. */
export interface ResponseMessage extends Pick<
  ServerResponse,
  'destroyed' | 'writableFinished' | 'headersSent'
> {
  shouldKeepAlive: boolean;
  once(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
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
  /** Status line and fields as they are sent; undefined if only Node can send the answer. */
  readonly head: string | undefined;
  /** Whether the fields contain a Date, as those of a cached response do. */
  readonly isDated: boolean;
  readonly cache: CacheOutcome | undefined;
  /** As in Reply. */
  readonly isCurrent: Reply['isCurrent'];
  readonly admits: Reply['admits'];
}

/** A response that sends a reply itself; the server writes all others as Node's responses. */
export interface SendingResponse extends ResponseMessage {
  sendReply(reply: Reply): Sent | Promise<Sent>;
  /** `nowMs` is milliseconds since 1970. */
  sendPrepared(prepared: Prepared, nowMs: number): void;
  /** Sends an interim response (RFC 9110 §15.2). */
  sendInterim(status: number, fields: FieldList): void;
}

/** Whether a request can have content, which is then read like that of an IncomingMessage. */
export function isReadable(message: RequestMessage): message is IncomingMessage {
  return message instanceof Readable;
}
