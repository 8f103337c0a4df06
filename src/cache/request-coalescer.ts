import type { Cancellation } from '../model/cancellation.ts';
import { Failure } from '../model/failure.ts';
import type { CacheStore } from './cache-store.ts';

/** What comes of asking a source on behalf of everybody who waits for the same answer. */
export interface SharedResult<T> {
  readonly arrival: T;
  /** Until then, those who come later join as well; undefined where nobody may. */
  readonly landed: Promise<unknown> | undefined;
  /** Lets go of what nobody took. */
  readonly discard: () => void;
}

/** What one of those who waited makes of the arrival. */
type TakeResult<T, R> = (arrival: T, position: { readonly isFirst: boolean }) => R | undefined;

/** What is waited for: the same key has the same URL. */
interface CoalescedTarget {
  readonly key: string;
  readonly url: string;
}

/**
 * Requests that wait for the same answer of a source: it is asked once (RFC 9111 §4, collapsed
 * requests), and as long as anybody waits. Nobody depends on the one who came first, and nobody
 * who comes behind a purge is given what was asked for before it.
 */
export class RequestCoalescer<T> {
  readonly #flights = new Map<string, CoalescedRequest<T>>();
  readonly #purges: Pick<CacheStore, 'epoch' | 'isPurgedSince'>;

  constructor(purges: Pick<CacheStore, 'epoch' | 'isPurgedSince'>) {
    this.#purges = purges;
  }

  /**
   * Waits for the answer that is wanted, which `start` asks for if nobody has yet. Resolves to what
   * is taken of it, undefined for nothing; rejects as `start` does, and when the signal aborts.
   */
  async join<R>(
    { key, url }: CoalescedTarget,
    signal: Cancellation,
    start: (signal: Cancellation) => Promise<SharedResult<T>>,
    take: TakeResult<T, R>,
  ): Promise<R | undefined> {
    let flight = this.#flights.get(key);
    if (flight === undefined || this.#purges.isPurgedSince(flight.since, url)) {
      flight = new CoalescedRequest(start, this.#purges.epoch());
      this.#flights.set(key, flight);
      this.#watch(key, flight);
    }
    return flight.wait(signal, take);
  }

  /** How many sources are being asked for somebody. */
  get size(): number {
    return this.#flights.size;
  }

  #watch(key: string, flight: CoalescedRequest<T>): void {
    const forget = (): void => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    };
    flight.landing.then(({ landed }) => {
      if (landed === undefined) forget();
      else void landed.then(forget, forget);
    }, forget);
  }
}

/** One question to a source, and those who wait for its answer. */
class CoalescedRequest<T> {
  readonly landing: Promise<SharedResult<T>>;
  /** The epoch in which it began. */
  readonly since: number;
  readonly #controller = new AbortController();
  #waiting = 0;
  #isFirst = true;
  #isTaken = false;

  constructor(start: (signal: Cancellation) => Promise<SharedResult<T>>, since: number) {
    this.since = since;
    this.landing = start(this.#controller.signal);
    // Everybody who waits hears of a failure; where nobody does any more, it is nobody's.
    this.landing.catch(() => undefined);
  }

  async wait<R>(signal: Cancellation, take: TakeResult<T, R>): Promise<R | undefined> {
    const position = { isFirst: this.#isFirst };
    this.#isFirst = false;
    this.#waiting += 1;
    const gone = Promise.withResolvers<never>();
    const leave = (): void => {
      gone.reject(new Failure('bad_gateway', 'The request was given up before its end.'));
    };
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    let landing: SharedResult<T> | undefined;
    try {
      landing = await Promise.race([this.landing, gone.promise]);
      const taken = take(landing.arrival, position);
      this.#isTaken ||= taken !== undefined;
      return taken;
    } finally {
      signal.removeEventListener('abort', leave);
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#lastHasLeft(landing);
    }
  }

  #lastHasLeft(landing: SharedResult<T> | undefined): void {
    if (landing === undefined) {
      this.#controller.abort();
      this.landing.then(
        ({ discard }) => {
          discard();
        },
        () => undefined,
      );
    } else if (!this.#isTaken) landing.discard();
  }
}
