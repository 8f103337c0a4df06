import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { CacheOutcome, FieldList, Reply } from '../http/reply.ts';

/** The parts of a request besides its content, whichever parser has read it. */
export interface RequestMessage extends Pick<
  IncomingMessage,
  'method' | 'url' | 'httpVersion' | 'httpVersionMinor' | 'rawHeaders' | 'socket' | 'complete'
> {
  /** The fields that a failure needs before the request is validated, or when it is refused. */
  readonly headers: Pick<IncomingHttpHeaders, 'accept'>;
}

/** What became of an answer. */
export interface Sent {
  /** Bytes of content handed to the socket. */
  readonly bytes: number;
  /** Whether the client, or the source, went away before the end. */
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

/** An answer that goes out again as it is. */
export interface Prepared {
  readonly status: number;
  readonly fields: FieldList;
  /** The content: where it is small, one character for each byte, to go out with the head. */
  readonly content: string | Buffer | undefined;
  readonly bytes: number;
  readonly source: string;
  /** Status line and fields as they are sent; undefined where it takes more to send it. */
  readonly head: string | undefined;
  /** Whether the fields say when the answer was made: that of a cache was another's. */
  readonly isDated: boolean;
  readonly cache: CacheOutcome | undefined;
  /** As in Reply. */
  readonly isCurrent: Reply['isCurrent'];
}

/** A response that sends a reply in its own way; all others are written as Node's are. */
export interface SendingResponse extends ResponseMessage {
  sendReply(reply: Reply): Sent | Promise<Sent>;
  /** `nowMs` is milliseconds since 1970. */
  sendPrepared(prepared: Prepared, nowMs: number): void;
  /** Sends a response ahead of the one that counts (RFC 9110 §15.2). */
  sendInterim(status: number, fields: FieldList): void;
}

/** Whether content may come with a request: then it is read as that of an IncomingMessage is. */
export function isReadable(message: RequestMessage): message is IncomingMessage {
  return message instanceof Readable;
}
