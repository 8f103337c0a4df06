import type { Duplex } from 'node:stream';
import { Failure } from '../../values/failure.ts';
import { requestTimeoutMs } from '../../operations/limits.ts';
import { heldPieceBytes } from '../limits.ts';
import type { Allocation } from '../../fair/shared-limit.ts';
import { FrameCounter } from './frames.ts';

/** The limits of an incomplete message, and the action when it exceeds one. */
interface UnfinishedParts {
  readonly connection: Duplex;
  /** Returns the size limit of the message; Infinity while it is unknown. */
  readonly bytesMax: () => number;
  /** Returns an allocation from the process's limit of bytes in incomplete messages. */
  readonly allocation: () => Allocation;
  /** Whether the server has paused reading; the client is not late then. */
  readonly isPaused: () => boolean;
  /** Closes the websocket. */
  readonly refuse: (code: number, failure: Failure) => void;
}

/** Limits the size, the memory and the time of a message that is not complete. */
export class UnfinishedMessage {
  readonly #parts: UnfinishedParts;
  readonly #frames = new FrameCounter();
  #allocation: Allocation | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: UnfinishedParts) {
    this.#parts = parts;
    parts.connection.on('data', this.#read);
  }

  /** Refuses the message as soon as it exceeds the size limit. */
  check(): void {
    if (!this.#isTooLarge()) return;
    const message = `A message has at most ${this.#parts.bytesMax()} bytes.`;
    this.#parts.refuse(1009, new Failure('too_large', message, { limit: 'content_size' }));
  }

  /** Stops counting, and frees the allocation. */
  stop(): void {
    this.#parts.connection.off('data', this.#read);
    this.#end();
  }

  readonly #read = (chunk: Buffer): void => {
    const { messages } = this.#frames;
    this.#frames.read(chunk);
    if (this.#frames.messages > messages) this.#end();
    if (this.#frames.bytes === 0) {
      this.#end();
      return;
    }
    if (this.#timer === undefined) this.#begin();
    try {
      this.#allocation?.grow(chunk.length + heldPieceBytes);
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown;
      this.#parts.refuse(1013, thrown);
      return;
    }
    // An earlier message in the same chunk may authenticate the client and raise the limit.
    if (this.#isTooLarge()) {
      setImmediate(() => {
        this.check();
      });
    }
  };

  #isTooLarge(): boolean {
    return this.#frames.contentBytes > this.#parts.bytesMax();
  }

  #begin(): void {
    this.#allocation = this.#parts.allocation();
    this.#timer = setTimeout(() => {
      this.#expire();
    }, requestTimeoutMs);
    this.#timer.unref();
  }

  #expire(): void {
    if (this.#parts.isPaused()) {
      this.#timer?.refresh();
      return;
    }
    const message = `A message must be complete within ${requestTimeoutMs / 1000} s.`;
    this.#parts.refuse(1008, new Failure('invalid', message, { limit: 'request_time' }));
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#allocation?.free();
    this.#allocation = undefined;
  }
}
