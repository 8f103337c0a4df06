import { deliveriesInFlightMax } from './limits.ts';
import {
  attemptCostBytes,
  bodiesInFlightBytesMax,
  largeBodiesInFlightBytesMax,
  smallBodyBytesMax,
} from './limits.ts';
import type { Turns, Waker } from './turns.ts';

/**
 * Limits the attempts in flight to all receivers together, by their number and by the bytes of
 * their bodies. Senders that find no room wait in a queue; those with long bodies have a queue of
 * their own, so that neither kind delays the other.
 */
export class Slots {
  readonly #turns: Pick<Turns, 'isSpent' | 'spend' | 'wakeLater'>;
  #taken = 0;
  #bytes = 0;
  #largeBytes = 0;
  readonly #small = new Map<Waker, number>();
  readonly #large = new Map<Waker, number>();
  /** The sender that is being woken because there is room for it. */
  #called: Waker | undefined;

  constructor(turns: Pick<Turns, 'isSpent' | 'spend' | 'wakeLater'>) {
    this.#turns = turns;
  }

  /**
   * Takes a slot for an attempt with a body of about this many bytes. Returns false if there is no
   * room, and wakes the sender when there is.
   */
  take(sender: Waker, bytes: number): boolean {
    const line = isLarge(bytes) ? this.#large : this.#small;
    const isNext = line.size === 0 || sender === this.#called;
    if (isNext && this.#hasRoom(bytes)) {
      this.#called = undefined;
      line.delete(sender);
      this.#taken += 1;
      this.#bytes += bytes;
      if (isLarge(bytes)) this.#largeBytes += bytes;
      this.#turns.spend(bytes + attemptCostBytes);
      return true;
    }
    line.set(sender, bytes);
    if (this.#turns.isSpent) this.#turns.wakeLater(this);
    return false;
  }

  /** Whether a sender waits for a slot. */
  isInLine(sender: Waker): boolean {
    return this.#small.has(sender) || this.#large.has(sender);
  }

  /** Releases the slot of a body of this many bytes. */
  free(bytes: number): void {
    this.#taken -= 1;
    this.#bytes -= bytes;
    if (isLarge(bytes)) this.#largeBytes -= bytes;
    this.wake();
  }

  /** Wakes the senders at the heads of the queues while there is room. */
  wake(): void {
    for (const line of [this.#small, this.#large]) this.#callFrom(line);
    const isWaiting = this.#small.size > 0 || this.#large.size > 0;
    if (isWaiting && this.#turns.isSpent) this.#turns.wakeLater(this);
  }

  #callFrom(line: Map<Waker, number>): void {
    for (const [sender, bytes] of line) {
      if (!this.#hasRoom(bytes)) return;
      // The woken sender may have nothing left to send, so it leaves the queue here.
      line.delete(sender);
      this.#called = sender;
      sender.wake();
      this.#called = undefined;
    }
  }

  #hasRoom(bytes: number): boolean {
    if (this.#taken >= deliveriesInFlightMax || this.#turns.isSpent) return false;
    if (isLarge(bytes) && this.#largeBytes + bytes > largeBodiesInFlightBytesMax) return false;
    return this.#bytes + bytes <= bodiesInFlightBytesMax;
  }
}

function isLarge(bytes: number): boolean {
  return bytes > smallBodyBytesMax;
}
