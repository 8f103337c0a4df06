import {
  deliveriesInFlightMax,
  attemptCostBytes,
  bodiesInFlightBytesMax,
  largeBodiesInFlightBytesMax,
  smallBodyBytesMax,
  preparedPerTurnBytesMax,
  wakeCostBytes,
} from './limits.ts';

/**
 * Limits the attempts in flight to all receivers together, by their number and by the bytes of
 * their bodies. Senders that find no room wait in a queue; those with long bodies have a queue of
 * their own, so that neither kind delays the other.
 */
export class AttemptLimiter {
  readonly #turnBudget: Pick<TurnBudget, 'isSpent' | 'spend' | 'wakeLater'>;
  #inFlight = 0;
  #bytes = 0;
  #largeBytes = 0;
  readonly #small = new Map<Waker, number>();
  readonly #large = new Map<Waker, number>();
  /** The sender that is being woken because there is room for it. */
  #woken: Waker | undefined;

  constructor(turnBudget: Pick<TurnBudget, 'isSpent' | 'spend' | 'wakeLater'>) {
    this.#turnBudget = turnBudget;
  }

  /**
   * Takes a slot for an attempt with a body of about this many bytes. Returns false if there is no
   * room, and wakes the sender when there is.
   */
  acquire(sender: Waker, bytes: number): boolean {
    const queue = isLarge(bytes) ? this.#large : this.#small;
    const isNext = queue.size === 0 || sender === this.#woken;
    if (isNext && this.#hasRoom(bytes)) {
      this.#woken = undefined;
      queue.delete(sender);
      this.#inFlight += 1;
      this.#bytes += bytes;
      if (isLarge(bytes)) this.#largeBytes += bytes;
      this.#turnBudget.spend(bytes + attemptCostBytes);
      return true;
    }
    queue.set(sender, bytes);
    if (this.#turnBudget.isSpent) this.#turnBudget.wakeLater(this);
    return false;
  }

  /** Whether a sender waits for a slot. */
  isQueued(sender: Waker): boolean {
    return this.#small.has(sender) || this.#large.has(sender);
  }

  /** Releases the slot of a body of this many bytes. */
  release(bytes: number): void {
    this.#inFlight -= 1;
    this.#bytes -= bytes;
    if (isLarge(bytes)) this.#largeBytes -= bytes;
    this.wake();
  }

  /** Wakes the senders at the heads of the queues while there is room. */
  wake(): void {
    for (const queue of [this.#small, this.#large]) this.#wakeFrom(queue);
    const isWaiting = this.#small.size > 0 || this.#large.size > 0;
    if (isWaiting && this.#turnBudget.isSpent) this.#turnBudget.wakeLater(this);
  }

  #wakeFrom(queue: Map<Waker, number>): void {
    for (const [sender, bytes] of queue) {
      if (!this.#hasRoom(bytes)) return;
      // The woken sender may have nothing left to send, so it leaves the queue here.
      queue.delete(sender);
      this.#woken = sender;
      sender.wake();
      this.#woken = undefined;
    }
  }

  #hasRoom(bytes: number): boolean {
    if (this.#inFlight >= deliveriesInFlightMax || this.#turnBudget.isSpent) return false;
    if (isLarge(bytes) && this.#largeBytes + bytes > largeBodiesInFlightBytesMax) return false;
    return this.#bytes + bytes <= bodiesInFlightBytesMax;
  }
}

function isLarge(bytes: number): boolean {
  return bytes > smallBodyBytesMax;
}

/** An object that can be woken to continue its work. */
interface Waker {
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
