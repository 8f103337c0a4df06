import { headerFieldsMax } from '../http/limits.ts';
import { fieldLines } from '../http/reply.ts';
import { KIB } from '../values/units.ts';
import { endsWithConnection } from './connection-end.ts';
import type { ConnectionInfo } from './connection.ts';
import {
  type OutboundProblem,
  connectionClosed,
  isLostConnection,
  outboundProblem,
  problemOf,
} from './failure.ts';
import { informationalMax } from './limits.ts';
import type { Control, ResponseHandler } from './outgoing-request.ts';

/** Bytes that are read of a response of which only the beginning matters. */
const oneShotContentBytesMax = 16 * KIB;

/** A short request, of whose response only the beginning is read. */
export interface OneShotOptions {
  /** `scheme://host[:port]` of http or https. */
  readonly origin: string;
  /** Path and query, percent-encoded. */
  readonly target: string;
  readonly method: string;
  /**
   * Name, value, name, value; no Transfer-Encoding, Connection, Keep-Alive, Upgrade or Expect, and
   * Content-Length is added.
   */
  readonly fields: readonly string[];
  readonly body: Buffer;
  /** Called right before the first byte is sent; false cancels the request. */
  readonly mayBegin?: () => boolean;
  /** Cancels the request at any time. */
  readonly signal?: AbortSignal;
}

/** The response to a OneShotRequest. */
export interface OneShotResponse {
  /** Undefined if no complete header section arrived. */
  readonly status: number | undefined;
  /** The Retry-After field of a response other than 2xx, as it was sent. */
  readonly retryAfter: string | undefined;
  /** The header fields of the response, as they were sent: name, value, name, value. */
  readonly fields: readonly string[];
  /** The beginning of the content, without decoding. */
  readonly content: Buffer;
  /**
   * Why there is no status, or why the content is incomplete; `unsent` if the server answered with
   * 2xx and did not take the whole request.
   */
  readonly problem: OutboundProblem | undefined;
}

const noContent = Buffer.alloc(0);

/**
 * A short request and its response, driven by the client that sends it, also a second time.
 * `answer` never rejects.
 */
export class OneShotRequest implements ResponseHandler {
  readonly answer: Promise<OneShotResponse>;
  connection?: ConnectionInfo;
  readonly #resolve: (answer: OneShotResponse) => void;
  readonly #sendAgain: (exchange: OneShotRequest) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #mayBegin: (() => boolean) | undefined;
  readonly #signal: AbortSignal | undefined;
  #controller: Control | undefined;
  #wasUsed = false;
  #hasResponded = false;
  #isOver = false;
  #informational = 0;
  /** Whether the content ends with the connection. */
  #isUnframed = false;
  readonly #method: string;
  #status: number | undefined;
  #retryAfter: string | undefined;
  #fields: readonly string[] = [];
  #content: Buffer = noContent;

  /**
   * `timeoutMs` limits the whole exchange; `sendAgain` repeats the request over a new connection.
   */
  constructor(
    { method, mayBegin, signal }: Pick<OneShotOptions, 'method' | 'mayBegin' | 'signal'>,
    timeoutMs: number,
    sendAgain: (exchange: OneShotRequest) => void,
  ) {
    const { promise, resolve } = Promise.withResolvers<OneShotResponse>();
    this.answer = promise;
    this.#resolve = resolve;
    this.#sendAgain = sendAgain;
    this.#method = method;
    this.#mayBegin = mayBegin;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#cancel, { once: true });
    this.#timer = setTimeout(() => {
      this.#giveUp(outboundProblem(this.#controller === undefined ? 'connect_timeout' : 'timeout'));
    }, timeoutMs);
    if (signal?.aborted === true) this.#cancel();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  onRequestStart(controller: Control): void {
    this.#controller = controller;
    this.#wasUsed = this.connection?.hasAnswered === true;
    if (!this.#isOver && this.#mayBegin?.() === false) this.#cancel();
    else if (this.#isOver) controller.abort(over);
  }

  onResponseStarted(): void {
    this.#hasResponded = true;
  }

  onResponseStart(controller: Control, status: number): void {
    const { rawHeaders: fields = [] } = controller;
    if (fields.length > 2 * headerFieldsMax) {
      this.#giveUp(outboundProblem('header'));
      return;
    }
    // Informational responses (RFC 9110 §15.2) precede the final one.
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > informationalMax) this.#giveUp(outboundProblem('malformed'));
      return;
    }
    this.#status = status;
    this.#fields = fields;
    this.#isUnframed = endsWithConnection(this.#method, status, this.#fields);
    if (status >= 300) [this.#retryAfter] = fieldLines(fields, 'retry-after');
  }

  onResponseData(_: Control, chunk: Buffer): void {
    const left = oneShotContentBytesMax - this.#content.length;
    const taken = chunk.length > left ? chunk.subarray(0, left) : chunk;
    this.#content = this.#content.length === 0 ? taken : Buffer.concat([this.#content, taken]);
    // The rest of the content is not needed.
    if (chunk.length > left && !this.#isUnsent) this.#giveUp(undefined);
  }

  /** Whether the server has said that all is well before it had the request. */
  get #isUnsent(): boolean {
    return this.#status !== undefined && this.#status < 300 && this.#controller?.isSent === false;
  }

  onResponseEnd(): void {
    // A reset is no end of content without a length.
    if (this.connection?.hasBrokenOff === true && this.#isUnframed) {
      this.#finish(problemOf(connectionClosed(), true));
      return;
    }
    if (this.connection !== undefined) this.connection.hasAnswered = true;
    this.#finish(undefined);
  }

  onResponseError(_: Control | null, error: Error): void {
    if (this.#isOver) return;
    if (this.#wasUsed && !this.#hasResponded && isLostConnection(error)) {
      this.#wasUsed = false;
      this.#controller = undefined;
      this.#sendAgain(this);
      return;
    }
    this.#finish(problemOf(error, this.#controller !== undefined));
  }

  readonly #cancel = (): void => {
    this.#giveUp(outboundProblem('cancelled'));
  };

  #giveUp(problem: OutboundProblem | undefined): void {
    this.#finish(problem);
    this.#controller?.abort(over);
  }

  #finish(problem: OutboundProblem | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#cancel);
    this.#resolve({
      status: this.#status,
      retryAfter: this.#retryAfter,
      fields: this.#fields,
      content: this.#content,
      problem: this.#isUnsent ? outboundProblem('unsent') : problem,
    });
  }
}

const over = new Error('The exchange is over.');
