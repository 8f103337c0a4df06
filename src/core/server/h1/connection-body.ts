import { Readable } from 'node:stream';
import type { RequestBody } from '../../pipeline/exchange.ts';
import { Failure } from '../../values/failure.ts';

/** What the content of a request does with its connection. */
interface BodyParts {
  /** Stops reading from the connection, and goes on. */
  readonly pause: () => void;
  readonly resume: () => void;
}

/** The content of a request of HTTP/1.1. A slow reader slows its client. */
export class ConnectionBody extends Readable implements RequestBody {
  complete = false;
  rawTrailers: readonly string[] = [];
  readonly #parts: BodyParts;
  #isDiscarding = false;

  constructor(parts: BodyParts) {
    super();
    this.#parts = parts;
  }

  /** To be called with content that has arrived. */
  arrived(bytes: Buffer): void {
    if (this.#isDiscarding || this.destroyed) return;
    if (!this.push(bytes)) this.#parts.pause();
  }

  /** To be called at the end of the request. */
  ended(trailers: readonly string[]): void {
    this.complete = true;
    this.rawTrailers = trailers;
    if (!this.#isDiscarding) this.push(null);
  }

  /** To be called when the connection has closed. */
  connectionClosed(): void {
    if (this.complete || this.destroyed) return;
    this.destroy(new Failure('invalid', 'The request ended before its content was complete.'));
  }

  /** Reads the rest to nowhere: the next request comes behind it. */
  discardContent(): void {
    this.#isDiscarding = true;
    this.#parts.resume();
  }

  override _read(): void {
    this.#parts.resume();
  }

  /** Emits an error to its listeners, and does not throw without them. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const hasListener = this.listenerCount('error') > 0;
    // A listener may be removed before the error is emitted.
    this.on('error', ignore);
    this.#parts.resume();
    done(hasListener ? error : null);
  }
}

const ignore = (): void => undefined;
