import type { Dispatcher } from 'undici';
import { headerFieldsMax } from '../http/limits.ts';
import { oneShotContentBytesMax, informationalMax } from './limits.ts';
import type { ConnectionInfo, ConnectionAware } from './connection.ts';
import { endsWithConnection } from './connection-end.ts';
import { connectionClosed, isLostConnection } from './failure.ts';
import { outboundProblem, problemOf, type OutboundProblem } from './problem.ts';

/** A request that is sent whole, for an answer of which only the beginning matters. */
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
  /** Asked right before the first byte is sent, over whichever connection; false withdraws. */
  readonly mayBegin?: () => boolean;
  /** Withdraws the exchange, wherever it is. */
  readonly signal?: AbortSignal;
}

/** What came back of a brief exchange. */
export interface OneShotResponse {
  /** Undefined where no whole header section came. */
  readonly status: number | undefined;
  /** The Retry-After field of an answer other than 2xx, as it was sent. */
  readonly retryAfter: string | undefined;
  /** The beginning of the content, as it was sent: compressed, if it was. */
  readonly content: Buffer;
  /** Why there is no status, or why the content ends where it does though it was not at its end. */
  readonly problem: OutboundProblem | undefined;
}

const noContent = Buffer.alloc(0);

/**
 * One brief exchange, driven by undici's callbacks; the same one goes on when the request has to be
 * sent again. `answer` never rejects.
 */
export class OneShotRequest implements Dispatcher.DispatchHandler, ConnectionAware {
  readonly answer: Promise<OneShotResponse>;
  connection?: ConnectionInfo;
  readonly #resolve: (answer: OneShotResponse) => void;
  readonly #sendAgain: (exchange: OneShotRequest) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #mayBegin: (() => boolean) | undefined;
  readonly #signal: AbortSignal | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #wasUsed = false;
  #hasResponded = false;
  #isOver = false;
  #informational = 0;
  /** Whether its content lasts until the connection ends. */
  #isUnframed = false;
  readonly #method: string;
  #status: number | undefined;
  #retryAfter: string | undefined;
  #content: Buffer = noContent;

  /** `timeoutMs` bounds everything; `sendAgain` dispatches the same request to this exchange. */
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
    signal?.addEventListener('abort', this.#withdraw, { once: true });
    this.#timer = setTimeout(() => {
      this.#giveUp(outboundProblem(this.#controller === undefined ? 'connect_timeout' : 'timeout'));
    }, timeoutMs);
    if (signal?.aborted === true) this.#withdraw();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.connection?.begin();
    this.#wasUsed = this.connection?.hasAnswered === true;
    if (!this.#isOver && this.#mayBegin?.() === false) this.#withdraw();
    else if (this.#isOver) controller.abort(over);
  }

  onResponseStarted(): void {
    this.#hasResponded = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    const fields = controller.rawHeaders as readonly Buffer[];
    if (fields.length > 2 * headerFieldsMax) {
      this.#giveUp(outboundProblem('header'));
      return;
    }
    // Informational answers (RFC 9110 §15.2) come before the one that counts.
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > informationalMax) this.#giveUp(outboundProblem('malformed'));
      return;
    }
    this.#status = status;
    const texts = fields.map((field) => field.toString('latin1'));
    this.#isUnframed = endsWithConnection(this.#method, status, texts);
    if (status >= 300) this.#retryAfter = fieldOf(fields, 'retry-after');
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    const left = oneShotContentBytesMax - this.#content.length;
    const taken = chunk.length > left ? chunk.subarray(0, left) : chunk;
    this.#content = this.#content.length === 0 ? taken : Buffer.concat([this.#content, taken]);
    // What has come will do; where more may come, the connection is not worth waiting for.
    if (chunk.length > left) this.#giveUp(undefined);
  }

  onResponseEnd(): void {
    // undici takes a reset for the end of content that has no other.
    if (this.connection?.hasBrokenOff === true && this.#isUnframed) {
      this.#finish(problemOf(connectionClosed(), true));
      return;
    }
    if (this.connection !== undefined) this.connection.hasAnswered = true;
    this.#finish(undefined);
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#isOver) return;
    // undici looks whether an idle connection has ended before it begins, and may find that out so.
    if (this.#controller === undefined) this.#wasUsed = this.connection?.hasAnswered === true;
    if (this.#wasUsed && !this.#hasResponded && isLostConnection(error)) {
      this.#wasUsed = false;
      this.#controller = undefined;
      this.#sendAgain(this);
      return;
    }
    this.#finish(problemOf(error, this.#controller !== undefined));
  }

  readonly #withdraw = (): void => {
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
    this.#signal?.removeEventListener('abort', this.#withdraw);
    this.#resolve({
      status: this.#status,
      retryAfter: this.#retryAfter,
      content: this.#content,
      problem,
    });
  }
}

const over = new Error('The exchange is over.');

function fieldOf(fields: readonly Buffer[], name: string): string | undefined {
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const found = fields[at];
    if (found?.length === name.length && found.toString('latin1').toLowerCase() === name) {
      return fields[at + 1]?.toString('latin1');
    }
  }
  return undefined;
}
