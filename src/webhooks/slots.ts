import { deliveriesInFlightMax } from '../model/limits.ts';
import {
  attemptCostBytes,
  bodiesInFlightBytesMax,
  largeBodiesInFlightBytesMax,
  smallBodyBytesMax,
} from './limits.ts';
import type { Turns, Waker } from './turns.ts';

/**
 * Bounds the attempts that are under way to all receivers together, by their number and by the
 * bytes of their bodies. Senders without room stand in line; those with long bodies in a line of
 * their own, so that they do not hold up the others, nor the others them.
 */
export class Slots {
  readonly #turns: Pick<Turns, 'isSpent' | 'spend' | 'wakeLater'>;
  #taken = 0;
  #bytes = 0;
  #largeBytes = 0;
  readonly #small = new Map<Waker, number>();
  readonly #large = new Map<Waker, number>();
  /** The sender that is being woken since there is room for it. */
  #called: Waker | undefined;

  constructor(turns: Pick<Turns, 'isSpent' | 'spend' | 'wakeLater'>) {
    this.#turns = turns;
  }

  /**
   * Takes room for an attempt with a body of about so many bytes; false where there is none, and
   * then the sender is woken when there is.
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

  /** Whether a sender was told that there is none, and has not been woken since. */
  isInLine(sender: Waker): boolean {
    return this.#small.has(sender) || this.#large.has(sender);
  }

  /** Gives back what was taken for a body of so many bytes. */
  free(bytes: number): void {
    this.#taken -= 1;
    this.#bytes -= bytes;
    if (isLarge(bytes)) this.#largeBytes -= bytes;
    this.wake();
  }

  /** Wakes the senders at the head of the lines, as long as there is room for them. */
  wake(): void {
    for (const line of [this.#small, this.#large]) this.#callFrom(line);
    const isWaiting = this.#small.size > 0 || this.#large.size > 0;
    if (isWaiting && this.#turns.isSpent) this.#turns.wakeLater(this);
  }

  #callFrom(line: Map<Waker, number>): void {
    for (const [sender, bytes] of line) {
      if (!this.#hasRoom(bytes)) return;
      // One that is woken may have nothing to send any more.
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
