import type { Readable, Writable } from 'node:stream';

/** How long a request with an Expect waits for an answer before it sends its content. */
const continueWaitMs = 1_000;

/** How the content of a request is sent. */
interface ContentOptions {
  /** Whether the server decides first whether it wants the content (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
  /** Called with each piece. */
  readonly sent: () => void;
  /** Called if the content breaks. */
  readonly broken: (error: Error) => void;
}

/**
 * The content of a request. Reads it at the speed of the server; after an Expect, not before the
 * server answers 100, or `continueWaitMs` without an answer: one of HTTP/1.0 never answers 100.
 */
export class RequestContent {
  readonly #body: Readable;
  readonly #to: Writable;
  readonly #sent: () => void;
  readonly #timer: NodeJS.Timeout | undefined;
  #hasBegun = false;

  constructor(body: Readable, to: Writable, { expectsContinue, sent, broken }: ContentOptions) {
    this.#body = body;
    this.#to = to;
    this.#sent = sent;
    body.on('error', broken);
    if (body.destroyed && !body.readableEnded) {
      this.#hasBegun = true;
      broken(body.errored ?? new Error('The content was destroyed.'));
      return;
    }
    if (expectsContinue) {
      this.#timer = setTimeout(() => {
        this.begin();
      }, continueWaitMs);
    } else this.begin();
  }

  /** Begins to send. */
  begin(): void {
    clearTimeout(this.#timer);
    if (this.#hasBegun || this.#body.destroyed) return;
    this.#hasBegun = true;
    // Not earlier: the listener makes the client send its content.
    this.#body.on('data', this.#sent).pipe(this.#to);
  }

  /** Sends nothing if it has not begun: the server has answered in place of a 100. */
  refuse(): void {
    if (!this.#hasBegun) this.end();
  }

  /** Sends no more: the server has answered, or the request is over. */
  end(): void {
    clearTimeout(this.#timer);
    this.#hasBegun = true;
    this.#body.unpipe(this.#to);
    this.#body.destroy();
  }
}
