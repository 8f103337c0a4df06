import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { HttpVersion } from '../../http/request.ts';
import type { ConnectionInfo } from '../connection.ts';
import { hasBrokenOff } from '../connection-end.ts';
import type { Control, OutboundExchange } from '../exchange.ts';
import { brokenAnswer, connectionClosed, timedOut } from '../failure.ts';
import type { TurnWriteBatcher } from './turn-write-batcher.ts';
import { HeadReader, parseResponseHead } from './heads.ts';
import type { ResponseContent } from './response-content.ts';

/** The pool that a connection belongs to. */
export interface ConnectionPool {
  readonly batcher: TurnWriteBatcher;
  /** Limits the wait for a header section, and for each further chunk of content. */
  readonly timeoutMs: number;
  /** Called when the connection can carry another request. */
  readonly release: (connection: GetConnection) => void;
  /** Called once, when the connection has closed. */
  readonly remove: (connection: GetConnection) => void;
}

/** A connection that carries one GET after the other, and reports to an exchange as undici does. */
export class GetConnection implements Control, ConnectionInfo {
  isOpen = true;
  hasAnswered = false;
  hasBrokenOff = false;
  httpVersion: HttpVersion = '1.1';
  rawHeaders: readonly string[] = [];
  rawTrailers: readonly string[] = [];
  /** How long the server keeps the connection while it is idle, as its last response says. */
  keepAliveSeconds: number | undefined;
  readonly #socket: Socket;
  readonly #pool: ConnectionPool;
  /** The exchange that waits for a response. */
  #exchange: OutboundExchange | undefined;
  #isSent = false;
  #isPaused = false;
  /** Limits the waits of the current exchange. */
  #timeoutMs: number;
  readonly #head = new HeadReader();
  /** Limits a header section in several chunks: each of them restarts the socket's own timer. */
  #headTimer: NodeJS.Timeout | undefined;
  /** Reads the content; undefined before the header section is complete. */
  #content: ResponseContent | undefined;

  constructor(socket: Socket, pool: ConnectionPool) {
    this.#socket = socket;
    this.#pool = pool;
    this.#timeoutMs = pool.timeoutMs;
    socket.setTimeout(pool.timeoutMs);
    // Only over TLS: else the connection is read by `onread`.
    if (socket instanceof TLSSocket) {
      socket.on('data', (chunk: Buffer) => {
        this.read(chunk);
      });
    }
    socket.on('end', this.#endContent);
    socket.on('timeout', this.#timeOut);
    socket.on('close', this.#close);
    // `close` reports the error.
    socket.on('error', () => undefined);
  }

  /** Sends the head of a GET. No other exchange may wait for a response. */
  send(head: string, exchange: OutboundExchange): void {
    this.#exchange = exchange;
    this.#isSent = false;
    this.#content = undefined;
    this.#limitWaits(exchange.timeoutMs ?? this.#pool.timeoutMs);
    exchange.connection = this;
    exchange.onRequestStart(this);
    if (this.#isAborted(exchange)) {
      // The connection stays idle now, and the server may close it at any time.
      this.hasAnswered = true;
      this.#pool.release(this);
    } else {
      this.#isSent = true;
      this.#pool.batcher.write(this.#socket, head);
    }
  }

  #limitWaits(timeoutMs: number): void {
    if (timeoutMs === this.#timeoutMs) return;
    this.#timeoutMs = timeoutMs;
    this.#socket.setTimeout(timeoutMs);
  }

  destroy(): void {
    this.isOpen = false;
    this.#socket.destroy();
  }

  begin(): void {
    // Nothing to prepare: `#readHead` ignores a 100.
  }

  abort(): void {
    this.#exchange = undefined;
    if (this.#isSent) this.destroy();
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    // The timer may have expired during the pause.
    this.#socket.setTimeout(this.#timeoutMs);
    this.#socket.resume();
  }

  /** Whether an exchange has called `abort` in reaction to an event. */
  #isAborted(exchange: OutboundExchange): boolean {
    return this.#exchange !== exchange;
  }

  /** Reads bytes that have arrived. */
  read(chunk: Buffer): void {
    const exchange = this.#exchange;
    if (exchange === undefined || this.#socket.writableCorked > 0) {
      // Not a response: no request has been sent. One that is about to be sent fails as over any
      // idle connection that the server closes, and is repeated over another one.
      this.destroy();
    } else if (this.#content === undefined) this.#readHead(exchange, chunk);
    else this.#readContent(exchange, this.#content, chunk);
  }

  #readHead(exchange: OutboundExchange, chunk: Buffer): void {
    exchange.onResponseStarted();
    let read = this.#head.read(chunk);
    while (typeof read !== 'string') {
      const head = parseResponseHead(read.text);
      if (head === undefined) {
        this.#break();
        return;
      }
      this.httpVersion = head.version;
      this.rawHeaders = head.fields;
      if (head.status >= 200) {
        this.#clearHeadTimer();
        this.#content = head.content;
        this.keepAliveSeconds = head.keepAliveSeconds;
        exchange.onResponseStart(this, head.status);
        if (!this.#isAborted(exchange)) this.#readContent(exchange, head.content, read.rest);
        return;
      }
      exchange.onResponseStart(this, head.status);
      if (this.#isAborted(exchange)) return;
      read = read.rest.length === 0 ? 'incomplete' : this.#head.read(read.rest);
    }
    if (read === 'too_large') this.#break();
    else this.#headTimer ??= setTimeout(this.#timeOut, this.#timeoutMs);
  }

  #readContent(exchange: OutboundExchange, content: ResponseContent, chunk: Buffer): void {
    const bytes = content.read(chunk);
    if (bytes.length > 0) exchange.onResponseData(this, bytes);
    if (this.#isAborted(exchange)) return;
    if (content.isBroken) this.#break();
    else if (content.isComplete) this.#finish(exchange, content);
  }

  #finish(exchange: OutboundExchange, content: ResponseContent): void {
    this.#exchange = undefined;
    this.rawTrailers = content.trailers;
    exchange.onResponseEnd(this);
    this.resume();
    // Bytes after a response belong to no request.
    if (content.restBytes > 0) this.destroy();
    else this.#pool.release(this);
  }

  /** The end of the connection, which may be the end of the content. */
  readonly #endContent = (): void => {
    this.isOpen = false;
    const exchange = this.#exchange;
    if (exchange === undefined || this.#content?.endsWithConnection !== true) return;
    this.#exchange = undefined;
    this.rawTrailers = [];
    this.hasBrokenOff = hasBrokenOff(this.#socket);
    exchange.onResponseEnd(this);
  };

  #break(): void {
    this.#fail(brokenAnswer());
    this.destroy();
  }

  readonly #timeOut = (): void => {
    // The reader is slow, not the source.
    if (this.#isPaused) return;
    this.#fail(timedOut());
    this.destroy();
  };

  readonly #close = (): void => {
    this.isOpen = false;
    this.#clearHeadTimer();
    this.#pool.remove(this);
    this.#fail(this.#socket.errored ?? connectionClosed());
  };

  #clearHeadTimer(): void {
    if (this.#headTimer === undefined) return;
    clearTimeout(this.#headTimer);
    this.#headTimer = undefined;
  }

  #fail(error: Error): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.onResponseError(this, error);
  }
}
