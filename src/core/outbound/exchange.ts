import { type Duplex, Readable } from 'node:stream';
import { fieldLines } from '../http/reply.ts';
import type { HttpVersion } from '../http/request.ts';
import { type Cancellation, Failure } from '../values/failure.ts';
import { KIB } from '../values/units.ts';
import { endsWithConnection } from './connection-end.ts';
import { type ConnectionInfo, countPassedBytes } from './connection.ts';
import { connectionClosed, outboundFailure } from './failure.ts';
import { informationalMax } from './limits.ts';
import type { Control, ResponseHandler } from './outgoing-request.ts';

/** Content that arrived together with its header section, held until it is read. */
export const outboundUnreadBytesMax = 64 * KIB;

/** The response of another server, once its header section has arrived. */
export interface SourceResponse {
  readonly status: number;
  /** The version of HTTP in which it arrived. */
  readonly version: HttpVersion;
  /**
   * Name, value, name, value, as they were sent, one character a byte. Repeated fields are not
   * joined.
   */
  readonly fields: readonly string[];
  /**
   * The content, which can be taken once: a buffer if all of it arrived together with the header
   * section, otherwise a stream. The stream fails if the content is incomplete or stalls for too
   * long; destroying it aborts the exchange.
   */
  content(): Buffer | Readable;
  /** The trailer fields (RFC 9110 §6.5) in the form of `fields`, once the content has ended. */
  trailers(): readonly string[];
  /** Aborts the exchange, or closes `connection`. */
  discard(): void;
  /** The connection, if the server has switched protocols (RFC 9110 §15.2.2). */
  readonly connection?: Duplex;
}

/** The options and callbacks of an exchange. */
export interface OutboundExchangeParts {
  /** The method of the request, GET by default. */
  readonly method?: string;
  /** Aborts the exchange, including the content of the response. */
  readonly signal: Cancellation;
  /** Called right before the first byte is sent. */
  readonly begun?: () => void;
  /** Called with each informational response except 100 and 101. */
  readonly interim?:
    | ((status: number, fields: readonly string[], version: HttpVersion) => void)
    | undefined;
}

/**
 * One request to another server and its response, driven by the client that sends it. `answer`
 * rejects with the Failures of outboundFailure, and with `bad_gateway` if the exchange was aborted.
 * It reads no more ahead of the reader than the socket has delivered, and Node's 64 KiB.
 */
export class OutboundExchange implements ResponseHandler {
  readonly answer: Promise<SourceResponse>;
  connection?: ConnectionInfo;
  /** Whether a byte of a response has arrived. */
  responded = false;
  /** Whether the connection was used before. */
  wasUsed = false;
  /** Whether a byte of the request may have been sent. */
  hasBegun = false;
  readonly #settle: PromiseWithResolvers<SourceResponse>;
  readonly #signal: Cancellation;
  readonly #method: string;
  #waiting: NodeJS.Timeout | undefined;
  readonly #begun: (() => void) | undefined;
  readonly #interim: OutboundExchangeParts['interim'];
  #controller: Control | undefined;
  #failure: Failure | undefined;
  #ended = false;
  /** Status and fields of the final response. */
  #head: Pick<SourceResponse, 'status' | 'version' | 'fields'> | undefined;
  #trailers: readonly string[] = [];
  #informational = 0;
  /** The bytes of content that have not arrived yet; Infinity for an unknown length. */
  #missingBytes = Infinity;
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #stream: Readable | undefined;

  constructor({ method = 'GET', signal, begun, interim }: OutboundExchangeParts) {
    this.#method = method;
    this.#settle = Promise.withResolvers<SourceResponse>();
    this.answer = this.#settle.promise;
    this.#signal = signal;
    this.#begun = begun;
    this.#interim = interim;
    signal.addEventListener('abort', this.#abort, { once: true });
    if (signal.aborted) this.#abort();
  }

  get isOver(): boolean {
    return this.#ended || this.#failure !== undefined;
  }

  /** Limits the wait for a connection, including the queue of the pool. */
  startWithin(timeoutMs: number): void {
    if (this.#controller !== undefined || this.isOver) return;
    this.#waiting = setTimeout(() => {
      this.#giveUp(
        new Failure('gateway_timeout', 'The source is too busy: no connection was free in time.'),
      );
    }, timeoutMs);
  }

  onRequestStart(controller: Control): void {
    clearTimeout(this.#waiting);
    this.#controller = controller;
    this.wasUsed = this.connection?.hasAnswered === true;
    this.hasBegun = true;
    if (this.#failure === undefined) this.#begun?.();
    else controller.abort(this.#failure);
  }

  onResponseStarted(): void {
    this.responded = true;
  }

  onResponseStart(controller: Control, status: number): void {
    // Informational responses (RFC 9110 §15.2) precede the final one.
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > informationalMax) {
        this.#giveUp(new Failure('bad_gateway', 'The source sent too many 1xx responses.'));
      } else if (status > 101) {
        this.#interim?.(status, controller.rawHeaders ?? [], controller.httpVersion ?? '1.1');
      }
      return;
    }
    this.#head = {
      status,
      version: controller.httpVersion ?? '1.1',
      fields: controller.rawHeaders ?? [],
    };
    const [length] = fieldLines(this.#head.fields, 'content-length');
    if (length !== undefined) this.#missingBytes = Number(length);
    this.#settle.resolve({
      ...this.#head,
      content: () => this.#content(),
      trailers: () => this.#trailers,
      discard: () => {
        this.#abort();
      },
    });
  }

  onRequestUpgrade(controller: Control, status: number, connection: Duplex): void {
    this.#ended = true;
    this.#release();
    // An error without a listener would end the process.
    connection.on('error', () => undefined);
    this.#settle.resolve({
      status,
      version: controller.httpVersion ?? '1.1',
      fields: controller.rawHeaders ?? [],
      content: () => Buffer.alloc(0),
      trailers: () => [],
      discard: () => {
        connection.destroy();
      },
      connection,
    });
  }

  onResponseData(controller: Control, chunk: Buffer): void {
    let isFull: boolean;
    if (this.#stream === undefined) {
      this.#unread.push(chunk);
      this.#unreadBytes += chunk.length;
      isFull = this.#unreadBytes >= outboundUnreadBytesMax;
    } else {
      countPassedBytes(chunk.length);
      isFull = !this.#stream.push(chunk);
    }
    this.#missingBytes -= chunk.length;
    // Nothing follows complete content: its connection is free for the next request.
    if (isFull && this.#missingBytes > 0) controller.pause();
  }

  onResponseEnd(controller: Control): void {
    // A reset is no end of content without a length. No client of a protocol ends
    // content before its length; a visitor who was told the length would wait for the rest.
    const isCut = this.connection?.hasBrokenOff === true && this.#isUnframed;
    if (isCut || this.#isShort) {
      this.#fail(outboundFailure(connectionClosed()));
      return;
    }
    this.#ended = true;
    this.#trailers = controller.rawTrailers ?? [];
    if (this.connection !== undefined) this.connection.hasAnswered = true;
    this.#release();
    this.#stream?.push(null);
  }

  onResponseError(_: Control | null, error: Error): void {
    this.#fail(outboundFailure(error));
  }

  /** Whether content has ended before its Content-Length. */
  get #isShort(): boolean {
    const { status = 0 } = this.#head ?? {};
    const hasContent = this.#method !== 'HEAD' && status !== 204 && status !== 304;
    return hasContent && this.#missingBytes > 0 && this.#missingBytes < Infinity;
  }

  get #isUnframed(): boolean {
    const { status, fields } = this.#head ?? {};
    return status !== undefined && endsWithConnection(this.#method, status, fields ?? []);
  }

  #content(): Buffer | Readable {
    const unread = this.#unread;
    this.#unread = [];
    if (this.#ended) return unread.length === 1 && unread[0] ? unread[0] : Buffer.concat(unread);
    const stream = new Readable({
      read: () => {
        this.#controller?.resume();
      },
      destroy: (error, done) => {
        this.#abort();
        done(error);
      },
    });
    // An error may occur before the reader listens. The reader then finds the stream destroyed.
    stream.on('error', () => undefined);
    for (const chunk of unread) stream.push(chunk);
    this.#stream = stream;
    if (this.#failure !== undefined) stream.destroy(this.#failure);
    return stream;
  }

  readonly #abort = (): void => {
    this.#giveUp(new Failure('bad_gateway', 'The request was cancelled.'));
  };

  #giveUp(failure: Failure): void {
    if (this.isOver) return;
    this.#fail(failure);
    this.#controller?.abort(failure);
  }

  #fail(failure: Failure): void {
    this.#release();
    this.#failure ??= failure;
    this.#settle.reject(this.#failure);
    this.#stream?.destroy(this.#failure);
  }

  #release(): void {
    clearTimeout(this.#waiting);
    this.#signal.removeEventListener('abort', this.#abort);
  }
}
