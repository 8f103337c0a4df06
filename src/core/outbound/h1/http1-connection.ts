import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { OutgoingRequest, Control, ResponseHandler } from '../outgoing-request.ts';
import type { HttpVersion } from '../../http/request.ts';
import type { ConnectionInfo } from '../connection.ts';
import { hasBrokenOff } from '../connection-end.ts';
import {
  brokenAnswer,
  connectionClosed,
  headTooLarge,
  isNotCarried,
  timedOut,
  unknownCoding,
} from '../failure.ts';
import { RequestContent } from '../request-content.ts';
import { FramedContent } from './framed-content.ts';
import { HeadReader, parseResponseHead, type OutgoingHead } from './heads.ts';
import type { ResponseContent } from './response-content.ts';
import type { TurnWriteBatcher } from './turn-write-batcher.ts';

/** The pool that a connection belongs to. */
export interface ConnectionPool {
  readonly batcher: TurnWriteBatcher;
  /** Limits the wait for a header section, and for each further chunk of content. */
  readonly timeoutMs: number;
  /** Called when the connection can carry another request. */
  readonly release: (connection: Http1Connection) => void;
  /** Called once, when the connection has closed, or has switched protocols. */
  readonly remove: (connection: Http1Connection) => void;
}

/** A request with its head and the receiver of its response. */
export interface Http1Request {
  readonly request: OutgoingRequest;
  readonly head: OutgoingHead;
  readonly handler: ResponseHandler;
}

/** The content of a request while it is sent. */
interface SentContent {
  readonly source: RequestContent;
  readonly framed: FramedContent;
}

/** A connection that carries one request after the other (RFC 9112 §9.3). */
export class Http1Connection implements Control, ConnectionInfo {
  hasAnswered = false;
  hasBrokenOff = false;
  httpVersion: HttpVersion = '1.1';
  rawHeaders: readonly string[] = [];
  rawTrailers: readonly string[] = [];
  /** How long the server keeps the connection while it is idle, as its last response says. */
  keepAliveSeconds: number | undefined;
  readonly #socket: Socket;
  readonly #pool: ConnectionPool;
  readonly #isStream: boolean;
  #hasEnded = false;
  #method = 'GET';
  #upgrades = false;
  /** The receiver that waits for a response. */
  #handler: ResponseHandler | undefined;
  #hasBegun = false;
  #isPaused = false;
  /** Limits the waits of the current exchange. */
  #timeoutMs: number;
  readonly #head = new HeadReader();
  /** Limits a header section in several chunks: each of them restarts the socket's own timer. */
  #headTimer: NodeJS.Timeout | undefined;
  /** Reads the content; undefined before the header section is complete. */
  #content: ResponseContent | undefined;
  #sending: SentContent | undefined;
  /** Whether the socket has taken all content that is in memory. */
  isSent = true;
  /** Ends a successful response whose request is not sent yet, once it is. */
  #endAfterSent: (() => void) | undefined;
  #isSuccess = false;

  /** `isStream` is whether bytes arrive as events of the socket, and not by its `onread`. */
  constructor(socket: Socket, pool: ConnectionPool, isStream: boolean) {
    this.#socket = socket;
    this.#pool = pool;
    this.#isStream = isStream || socket instanceof TLSSocket;
    this.#timeoutMs = pool.timeoutMs;
    socket.setTimeout(pool.timeoutMs);
    if (this.#isStream) socket.on('data', this.read);
    socket.on('end', this.#end);
    socket.on('timeout', this.#timeOut);
    socket.on('close', this.#close);
    // `close` reports the error.
    socket.on('error', () => undefined);
  }

  /** Whether a request can be sent. */
  get isOpen(): boolean {
    return !this.#hasEnded && !this.#socket.destroyed;
  }

  /** Sends a request. No other one may wait for a response. */
  send({ request, head, handler }: Http1Request): void {
    this.#handler = handler;
    this.#hasBegun = false;
    this.#content = undefined;
    this.#sending = undefined;
    this.#endAfterSent = undefined;
    this.isSent = true;
    this.#method = request.method;
    this.#upgrades = request.upgrade !== undefined;
    this.#limitWaits(request.timeoutMs ?? this.#pool.timeoutMs);
    handler.connection = this;
    handler.onRequestStart(this);
    if (this.#isAborted(handler)) {
      // The connection stays idle now, and the server may close it at any time.
      this.hasAnswered = true;
      this.#pool.release(this);
      return;
    }
    this.#hasBegun = true;
    this.#pool.batcher.write(this.#socket, head.text);
    const { body } = request;
    if (Buffer.isBuffer(body)) this.#sendBytes(body, handler);
    else if (body !== undefined) this.#sendContent(body, request, head);
  }

  #sendBytes(body: Buffer, handler: ResponseHandler): void {
    this.isSent = false;
    this.#socket.write(body, (error) => {
      if (error || this.#isAborted(handler)) return;
      this.isSent = true;
      this.#endAfterSent?.();
    });
  }

  #sendContent(
    body: Readable,
    { trailers, expectsContinue = false }: OutgoingRequest,
    { length }: OutgoingHead,
  ): void {
    const framed = new FramedContent(this.#socket, { length, trailers });
    const handler = this.#handler;
    const broken = (error: Error): void => {
      // Content may break after its Content-Length, when the connection carries another request.
      if (handler === undefined || this.#isAborted(handler)) return;
      this.#fail(error);
      this.destroy();
    };
    framed.on('error', (error) => {
      // The socket reports that it cannot be written to, once what it has received is read.
      if (isNotCarried(error)) broken(error);
    });
    const source = new RequestContent(body, framed, {
      expectsContinue,
      // Each write restarts the timer of the socket.
      sent: () => undefined,
      broken,
    });
    this.#sending = { source, framed };
  }

  #limitWaits(timeoutMs: number): void {
    if (timeoutMs === this.#timeoutMs) return;
    this.#timeoutMs = timeoutMs;
    this.#socket.setTimeout(timeoutMs);
  }

  destroy(): void {
    this.#hasEnded = true;
    this.#socket.destroy();
  }

  abort(): void {
    this.#handler = undefined;
    this.#sending?.source.end();
    if (this.#hasBegun) this.destroy();
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

  /** Whether a receiver has called `abort` in reaction to an event. */
  #isAborted(handler: ResponseHandler): boolean {
    return this.#handler !== handler;
  }

  /** Reads bytes that have arrived. */
  readonly read = (chunk: Buffer): void => {
    const handler = this.#handler;
    if (handler === undefined || this.#socket.writableCorked > 0) {
      // Not a response: no request has been sent. One that is about to be sent fails as over any
      // idle connection that the server closes, and is repeated over another one.
      this.destroy();
    } else if (this.#content === undefined) this.#readHead(handler, chunk);
    else this.#readContent(handler, this.#content, chunk);
  };

  #readHead(handler: ResponseHandler, chunk: Buffer): void {
    handler.onResponseStarted();
    let rest = chunk;
    while (rest.length > 0) {
      const read = this.#head.read(rest);
      if (read === 'incomplete') {
        this.#headTimer ??= setTimeout(this.#timeOut, this.#timeoutMs);
        return;
      }
      this.#clearHeadTimer();
      const isRead = read !== 'too_large';
      const head = isRead ? parseResponseHead(read.text, this.#method) : read;
      if (!isRead || head === 'too_large') {
        this.#break(headTooLarge());
        return;
      }
      if (head === 'coding') {
        this.#break(unknownCoding());
        return;
      }
      if (head === undefined || (head.status === 101 && !this.#upgrades)) {
        this.#break();
        return;
      }
      this.httpVersion = head.version;
      this.rawHeaders = head.fields;
      if (head.status === 101) {
        this.#switch(handler, read.rest);
        return;
      }
      if (head.status >= 200) {
        this.#content = head.content;
        this.#isSuccess = head.status < 300;
        this.keepAliveSeconds = head.keepAliveSeconds;
        // A server that answers without a 100 does not want the content.
        this.#sending?.source.refuse();
        handler.onResponseStart(this, head.status);
        if (!this.#isAborted(handler)) this.#readContent(handler, head.content, read.rest);
        return;
      }
      if (head.status === 100) this.#sending?.source.begin();
      handler.onResponseStart(this, head.status);
      if (this.#isAborted(handler)) return;
      rest = read.rest;
    }
  }

  /** Switches protocols after the end of the request (RFC 9110 §7.8), which may still be sent. */
  #switch(handler: ResponseHandler, rest: Buffer): void {
    this.#socket.pause();
    const framed = this.#sending?.framed;
    if (framed?.writableFinished !== false) {
      this.#handOver(handler, rest);
      return;
    }
    framed.once('finish', () => {
      if (!this.#isAborted(handler)) this.#handOver(handler, rest);
    });
  }

  /** Gives the connection away, which speaks another protocol from now on. */
  #handOver(handler: ResponseHandler, rest: Buffer): void {
    const socket = this.#socket;
    this.#handler = undefined;
    this.#hasEnded = true;
    socket.off('data', this.read).off('end', this.#end).off('timeout', this.#timeOut);
    socket.off('close', this.#close).setTimeout(0).pause();
    // Either side may end before the other does.
    socket.allowHalfOpen = true;
    if (rest.length > 0) socket.unshift(rest);
    this.#pool.remove(this);
    handler.onRequestUpgrade?.(this, 101, socket);
  }

  #readContent(handler: ResponseHandler, content: ResponseContent, chunk: Buffer): void {
    const bytes = content.read(chunk);
    if (bytes.length > 0) handler.onResponseData(this, bytes);
    if (this.#isAborted(handler)) return;
    if (content.isBroken) this.#break();
    else if (content.isComplete) this.#finish(handler, content);
  }

  #finish(handler: ResponseHandler, content: ResponseContent): void {
    if (!this.isSent && this.#isSuccess) {
      this.#endAfterSent = () => {
        this.#finish(handler, content);
      };
      return;
    }
    this.#handler = undefined;
    this.rawTrailers = content.trailers;
    const isSent = this.isSent && this.#sending?.framed.isComplete !== false;
    if (!isSent) this.#sending?.source.end();
    handler.onResponseEnd(this);
    this.resume();
    // Bytes after a response belong to no request; a request without its end lets none follow.
    if (content.restBytes > 0 || !isSent) this.destroy();
    else this.#pool.release(this);
  }

  /** The end of the connection, which may be the end of the content. */
  readonly #end = (): void => {
    this.#hasEnded = true;
    const handler = this.#handler;
    // The server may end its side before it has read the request.
    if (handler === undefined || this.#endAfterSent !== undefined) return;
    if (this.#content?.endsWithConnection !== true) {
      this.#fail(connectionClosed());
      this.destroy();
      return;
    }
    if (this.isSent || !this.#isSuccess) this.#endWithConnection(handler);
    else {
      this.#endAfterSent = () => {
        this.#endWithConnection(handler);
      };
    }
  };

  #endWithConnection(handler: ResponseHandler): void {
    this.#handler = undefined;
    this.rawTrailers = [];
    this.hasBrokenOff = hasBrokenOff(this.#socket);
    if (this.#sending?.framed.isComplete === false) this.#sending.source.end();
    handler.onResponseEnd(this);
  }

  #break(error = brokenAnswer()): void {
    this.#fail(error);
    this.destroy();
  }

  readonly #timeOut = (): void => {
    // The reader is slow, not the source.
    if (this.#isPaused) return;
    this.#fail(timedOut());
    this.destroy();
  };

  readonly #close = (): void => {
    this.#hasEnded = true;
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
    const handler = this.#handler;
    this.#handler = undefined;
    this.#sending?.source.end();
    handler?.onResponseError(this, error);
  }
}
