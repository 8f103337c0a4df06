import { deliveriesInFlightMax } from '../model/limits.ts';

/** What can be told that there is room for it. */
export interface Waker {
  wake(): void;
}

/** How many attempts are under way to all receivers together, and who waits for fewer. */
export class Slots {
  #taken = 0;
  readonly #waiting = new Set<Waker>();

  /** Takes one; false where there is none, and then the sender is woken when there is. */
  take(sender: Waker): boolean {
    if (this.#taken < deliveriesInFlightMax) {
      this.#taken += 1;
      return true;
    }
    this.#waiting.add(sender);
    return false;
  }

  /** Whether a sender was told that there is none, and has not been woken since. */
  isInLine(sender: Waker): boolean {
    return this.#waiting.has(sender);
  }

  /** Gives one back. */
  free(): void {
    this.#taken -= 1;
    // One that is woken may have nothing to send any more.
    for (const sender of this.#waiting) {
      if (this.#taken >= deliveriesInFlightMax) return;
      this.#waiting.delete(sender);
      sender.wake();
    }
  }
}
