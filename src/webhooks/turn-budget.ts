import { preparedPerTurnBytesMax, wakeCostBytes } from './limits.ts';

/** An object that can be woken to continue its work. */
export interface Waker {
  wake(): void;
}

/**
 * Limits the bytes that all senders together prepare in one turn of the event loop, so that
 * requests are served in between, however many hooks get an event.
 */
export class TurnBudget {
  #spentBytes = 0;
  #isEnding = false;
  readonly #waiting = new Set<Waker>();

  /** Whether this turn has reached its limit. */
  get isSpent(): boolean {
    return this.#spentBytes >= preparedPerTurnBytesMax;
  }

  /** Counts prepared bytes. */
  spend(bytes: number): void {
    this.#spentBytes += bytes;
    this.#endLater();
  }

  /** Wakes the waker in a later turn of the event loop. */
  wakeLater(waker: Waker): void {
    this.#waiting.add(waker);
    this.#endLater();
  }

  /** Whether the waker waits for a later turn. */
  isWaiting(waker: Waker): boolean {
    return this.#waiting.has(waker);
  }

  #endLater(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    setImmediate(() => {
      this.#end();
    });
  }

  #end(): void {
    this.#isEnding = false;
    this.#spentBytes = 0;
    for (const waker of this.#waiting) {
      if (this.isSpent) break;
      this.#waiting.delete(waker);
      this.#spentBytes += wakeCostBytes;
      waker.wake();
    }
    if (this.#waiting.size > 0) this.#endLater();
  }
}
