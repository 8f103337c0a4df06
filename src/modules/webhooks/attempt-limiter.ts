import { type Release, SharedLimit } from '../../core/fair/shared-limit.ts';
import { KIB, MIB } from '../../core/values/units.ts';

/** Limits of deliveries in the background. */

/** Bodies of all attempts in flight together. */
export const bodiesInFlightBytesMax = 64 * MIB;

/** Of them, the bodies that are longer than smallBodyBytesMax: the rest is kept for short ones. */
export const largeBodiesInFlightBytesMax = 48 * MIB;

/** Up to this size a body counts as short. */
export const smallBodyBytesMax = 64 * KIB;

/** Bytes of events and bodies that all senders prepare in one turn of the event loop. */
export const preparedPerTurnBytesMax = MIB;

/** The costs of an attempt and of an event, in bytes of `preparedPerTurnBytesMax`. */
const attemptCostBytes = 16 * KIB;

/** The cost of waking a sender, in bytes of `preparedPerTurnBytesMax`. */
export const wakeCostBytes = 8 * KIB;

/** Attempts in flight to all receivers together. */
export const deliveriesInFlightMax = 4_096;

/** A slot that a sender has got while it waited. */
interface Granted {
  readonly bytes: number;
  readonly release: Release;
}

const shortBodiesBytesMax = bodiesInFlightBytesMax - largeBodiesInFlightBytesMax;

/** What a short body counts at least: it bounds the number of attempts. */
const shortBodyBytesMin = shortBodiesBytesMax / deliveriesInFlightMax;

/**
 * Limits the attempts in flight to all receivers together, by their number and by the bytes of
 * their bodies. Receivers share both in turns, so a slow one delays no other; those with long
 * bodies have a limit of their own, so that neither kind delays the other.
 */
export class AttemptLimiter {
  readonly #turnBudget: Pick<TurnBudget, 'isSpent' | 'spend' | 'wakeLater'>;
  readonly #short = new SharedLimit({
    ...{ what: 'attempts', held: 'long', max: shortBodiesBytesMax },
    waiting: { max: Infinity, ms: Infinity },
  });
  readonly #long = new SharedLimit({
    ...{ what: 'long attempts', held: 'long', max: largeBodiesInFlightBytesMax },
    waiting: { max: Infinity, ms: Infinity },
  });
  /** The senders that wait for a slot. */
  readonly #waiting = new Set<Waker>();
  /** The senders that wait for a later turn of the event loop. */
  readonly #later = new Set<Waker>();
  /** The slots of senders whose turn it is, and who have not used them. */
  readonly #granted = new Map<Waker, Granted>();

  constructor(turnBudget: Pick<TurnBudget, 'isSpent' | 'spend' | 'wakeLater'>) {
    this.#turnBudget = turnBudget;
  }

  /**
   * Takes a slot for an attempt with a body of about this many bytes, and returns its release.
   * Returns undefined if there is no room for the receiver, and wakes the sender when there is.
   */
  acquire(sender: Waker, bytes: number, receiver: string): Release | undefined {
    if (this.#turnBudget.isSpent) {
      this.#wakeLater(sender);
      return undefined;
    }
    if (this.#waiting.has(sender)) return undefined;
    const granted = this.#granted.get(sender);
    this.#granted.delete(sender);
    if (granted !== undefined && granted.bytes !== bytes) granted.release();
    const limit = bytes > smallBodyBytesMax ? this.#long : this.#short;
    const cost = Math.min(Math.max(bytes, shortBodyBytesMin), largeBodiesInFlightBytesMax);
    const isGranted = granted?.bytes === bytes;
    const release = isGranted ? granted.release : limit.tryAcquire(receiver, cost);
    if (release === undefined) {
      this.#waiting.add(sender);
      limit.wait(receiver, cost, (given) => {
        this.#grant(sender, { bytes, release: given });
      });
      return undefined;
    }
    this.#later.delete(sender);
    this.#turnBudget.spend(bytes + attemptCostBytes);
    return release;
  }

  /** Whether a sender waits for a slot. */
  isQueued(sender: Waker): boolean {
    return this.#waiting.has(sender) || this.#later.has(sender) || this.#granted.has(sender);
  }

  /** Wakes the senders that wait for this turn of the event loop, while it has room. */
  wake(): void {
    for (const sender of this.#later) {
      if (this.#turnBudget.isSpent) break;
      this.#later.delete(sender);
      this.#wake(sender);
    }
    if (this.#later.size > 0) this.#turnBudget.wakeLater(this);
  }

  #grant(sender: Waker, granted: Granted): void {
    this.#waiting.delete(sender);
    this.#granted.set(sender, granted);
    if (this.#turnBudget.isSpent) this.#wakeLater(sender);
    else this.#wake(sender);
  }

  #wakeLater(sender: Waker): void {
    this.#later.add(sender);
    this.#turnBudget.wakeLater(this);
  }

  /** Wakes a sender; one that has nothing left to send gives its slot back. */
  #wake(sender: Waker): void {
    const granted = this.#granted.get(sender);
    sender.wake();
    if (granted !== undefined && this.#granted.get(sender) === granted) {
      this.#granted.delete(sender);
      granted.release();
    }
  }
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
