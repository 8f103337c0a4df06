import { preparedPerTurnBytesMax, wakeCostBytes } from './limits.ts';

/** What can be told that it may go on. */
export interface Waker {
  wake(): void;
}

/**
 * Bounds what all senders together prepare in one turn of the event loop, so that requests have
 * their turn in between, however many hooks get an event.
 */
export class Turns {
  #spentBytes = 0;
  #isEnding = false;
  readonly #waiting = new Set<Waker>();

  /** Whether nothing more may be prepared in this turn. */
  get isSpent(): boolean {
    return this.#spentBytes >= preparedPerTurnBytesMax;
  }

  /** Counts what was prepared, in bytes. */
  spend(bytes: number): void {
    this.#spentBytes += bytes;
    this.#endLater();
  }

  /** Has somebody woken in a later turn, when more may be prepared. */
  wakeLater(waker: Waker): void {
    this.#waiting.add(waker);
    this.#endLater();
  }

  /** Whether somebody waits for a later turn. */
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
