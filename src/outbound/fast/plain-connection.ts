import type { Socket } from 'node:net';
import { ChunkedContent } from '../../http/chunked-content.ts';
import { CountedContent, type MessageContent } from '../../http/message-content.ts';
import { readPlainAnswer } from './plain-answer.ts';
import type { Corks } from './corks.ts';
import type { ConnectionInfo } from '../connection.ts';
import { hasBrokenOff } from '../connection-end.ts';
import type { Control, OutboundExchange } from '../exchange.ts';
import { brokenAnswer, connectionClosed, timedOut } from '../failure.ts';
import type { SerializedRequest } from './plain-request.ts';

/** What a connection is given by its pool, and tells it. */
export interface PlainConnectionOwner {
  /** Requests of a turn go out together. */
  readonly corks: Corks;
  /** Another answer may be asked for. */
  readonly free: (connection: PlainConnection) => void;
  /** Told once: nothing may be asked over it any more. */
  readonly gone: (connection: PlainConnection) => void;
  /**
   * Told after that, where an answer is not plain: undici has to finish the exchange over the
   * connection, on which its request has been sent and these bytes of the answer have come.
   */
  readonly handOver: (
    exchange: OutboundExchange,
    request: SerializedRequest,
    socket: Socket,
    begun: Buffer,
  ) => void;
}

const headEnd = Buffer.from('\r\n\r\n');

/**
 * A connection that brings one answer after the other, each in the most ordinary form
 * (http/plain-answer.ts). One in any other is undici's from its first byte on, and the connection
 * with it. `timeoutMs` bounds the wait for a header section and for each piece of content.
 */
export class PlainConnection implements Control, ConnectionInfo {
  hasAnswered = false;
  rawHeaders: readonly string[] = [];
  rawTrailers: readonly string[] = [];
  /** How long the other side keeps it when it is idle, as far as its last answer says. */
  idleSeconds: number | undefined;
  readonly #socket: Socket;
  readonly #timeoutMs: number;
  readonly #owner: PlainConnectionOwner;
  readonly #ownPush: Socket['push'];
  #request: SerializedRequest | undefined;
  /** Who waits for an answer. */
  #exchange: OutboundExchange | undefined;
  #hasAsked = false;
  /** What comes behind the head; undefined before it. */
  #content: MessageContent | undefined;
  #isPaused = false;

  constructor(socket: Socket, timeoutMs: number, owner: PlainConnectionOwner) {
    this.#socket = socket;
    this.#timeoutMs = timeoutMs;
    this.#owner = owner;
    this.#ownPush = socket.push.bind(socket);
    // Used as it comes: the stream's own queue would cost more than all that is done with it.
    socket.push = (chunk: Buffer | null) =>
      chunk === null ? this.#ownPush(chunk) : this.#read(chunk);
    socket.setTimeout(timeoutMs);
    socket.on('timeout', this.#timedOut);
    socket.on('error', ignore);
    socket.on('close', this.#closed);
  }

  get hasBrokenOff(): boolean {
    return hasBrokenOff(this.#socket);
  }

  get isOpen(): boolean {
    return this.#socket.writable;
  }

  /** Asks for an answer; only while nobody else waits for one. */
  send(request: SerializedRequest, exchange: OutboundExchange): void {
    this.#request = request;
    this.#exchange = exchange;
    this.#hasAsked = false;
    this.#content = undefined;
    this.#isPaused = false;
    exchange.connection = this;
    exchange.onRequestStart(this);
    if (this.#isAwaited) {
      this.#hasAsked = true;
      this.#owner.corks.write(this.#socket, request.head);
    } else {
      // It lies idle from now on, and may end as one that has answered may.
      this.hasAnswered = true;
      this.#owner.free(this);
    }
  }

  destroy(): void {
    this.#socket.destroy();
  }

  begin(): void {
    // A 100 that nobody has asked for is not plain, and so nothing has to be watched for.
  }

  abort(): void {
    this.#exchange = undefined;
    if (this.#hasAsked) this.#socket.destroy();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    // It may have run out meanwhile, and nobody was told.
    this.#socket.setTimeout(this.#timeoutMs);
    // The queue of the stream, which knows of no chunk, would not ask for more.
    this.#socket._read(0);
  }

  /** Whether it still is, once an exchange has been told anything. */
  get #isAwaited(): boolean {
    return this.#exchange !== undefined;
  }

  /** Takes what has come; false for no more until it is resumed. */
  #read(chunk: Buffer): boolean {
    const exchange = this.#exchange;
    if (exchange === undefined || this.#socket.writableCorked > 0) {
      // Nobody has asked yet. Who is about to may do so over another one, where this one was used.
      this.#socket.destroy();
      return false;
    }
    return this.#content === undefined
      ? this.#readHead(exchange, chunk)
      : this.#pass(exchange, this.#content, this.#content.read(chunk));
  }

  #readHead(exchange: OutboundExchange, chunk: Buffer): boolean {
    exchange.onResponseStarted();
    const end = chunk.indexOf(headEnd);
    const head = end === -1 ? undefined : readPlainAnswer(chunk.toString('latin1', 0, end + 2));
    if (head === undefined) return this.#handOver(exchange, chunk);
    const { status, fields, contentLength, idleSeconds } = head;
    const content =
      contentLength === undefined ? new ChunkedContent() : new CountedContent(contentLength);
    const begun = content.read(chunk.subarray(end + headEnd.length));
    // Where it does not begin as it has to, undici says what it is.
    if (content.isBroken) return this.#handOver(exchange, chunk);
    this.#content = content;
    this.rawHeaders = fields;
    this.idleSeconds = idleSeconds;
    exchange.onResponseStart(this, status);
    return this.#pass(exchange, content, begun);
  }

  /** Passes content on that has come. */
  #pass(exchange: OutboundExchange, content: MessageContent, bytes: Buffer): boolean {
    if (bytes.length > 0) exchange.onResponseData(this, bytes);
    if (!this.#isAwaited) return false;
    if (content.isBroken) {
      this.#fail(brokenAnswer());
      this.#socket.destroy();
      return false;
    }
    if (!content.isWhole) return !this.#isPaused;
    this.#exchange = undefined;
    this.rawTrailers = content.trailers;
    exchange.onResponseEnd(this);
    // TLS brings all that has come, after it was told to stop.
    this.resume();
    // Nobody knows what it is that comes behind an answer.
    if (content.restBytes > 0) this.#socket.destroy();
    else this.#owner.free(this);
    return true;
  }

  #handOver(exchange: OutboundExchange, chunk: Buffer): boolean {
    const socket = this.#socket;
    this.#exchange = undefined;
    socket.push = this.#ownPush;
    socket.setTimeout(0);
    socket.off('timeout', this.#timedOut);
    socket.off('close', this.#closed);
    this.#owner.gone(this);
    if (this.#request !== undefined) this.#owner.handOver(exchange, this.#request, socket, chunk);
    return true;
  }

  readonly #timedOut = (): void => {
    if (this.#isPaused) return;
    this.#fail(timedOut());
    this.#socket.destroy();
  };

  readonly #closed = (): void => {
    this.#owner.gone(this);
    this.#fail(this.#socket.errored ?? connectionClosed());
  };

  #fail(error: Error): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.onResponseError(this, error);
  }
}

function ignore(): void {
  // Its end tells.
}
