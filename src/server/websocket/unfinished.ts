import type { Duplex } from 'node:stream';
import { Failure } from '../../model/failure.ts';
import { requestTimeoutMs } from '../../api/limits.ts';
import { heldPieceBytes } from '../limits.ts';
import type { Allocation } from '../../model/shared-limit.ts';
import { FrameFollower } from './frames.ts';

/** What bounds the message that a client is sending. */
interface UnfinishedParts {
  readonly connection: Duplex;
  /** How much content the message may have; Infinity while that cannot be said yet. */
  readonly bytesMax: () => number;
  /** Of the bytes that the process holds for unfinished messages, those of this connection. */
  readonly allocation: () => Allocation;
  /** Whether the server has stopped reading: the client is not late then. */
  readonly isPaused: () => boolean;
  /** Ends the websocket. */
  readonly refuse: (code: number, failure: Failure) => void;
}

/** Bounds the message that a client has begun and not ended: its size, its memory, its time. */
export class UnfinishedMessage {
  readonly #parts: UnfinishedParts;
  readonly #frames = new FrameFollower();
  #allocation: Allocation | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: UnfinishedParts) {
    this.#parts = parts;
    parts.connection.on('data', this.#read);
  }

  /** Refuses a message that is larger than what the client may send, as soon as that is known. */
  check(): void {
    if (!this.#isTooLarge()) return;
    const message = `A message may have ${this.#parts.bytesMax()} bytes.`;
    this.#parts.refuse(1009, new Failure('too_large', message, { limit: 'content_size' }));
  }

  /** Stops looking at what comes; what is held is given back. */
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
    // A message in the same chunk may authenticate the client.
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
    const message = `A message has to be whole within ${requestTimeoutMs / 1000} s.`;
    this.#parts.refuse(1008, new Failure('invalid', message, { limit: 'request_time' }));
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#allocation?.free();
    this.#allocation = undefined;
  }
}
