import type { Cancellation } from '../model/cancellation.ts';
import { Failure } from '../model/failure.ts';
import type { CacheStore } from './cache-store.ts';

/** What comes of asking a source on behalf of everybody who waits for the same answer. */
export interface SharedResult<T> {
  readonly value: T;
  /** Until then, those who come later join as well; undefined where nobody may. */
  readonly completed: Promise<unknown> | undefined;
  /** Lets go of what nobody took. */
  readonly discard: () => void;
}

/** What one of those who waited makes of the arrival. */
type TakeResult<T, R> = (value: T, position: { readonly isFirst: boolean }) => R | undefined;

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
  readonly #requests = new Map<string, CoalescedRequest<T>>();
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
    let request = this.#requests.get(key);
    if (request === undefined || this.#purges.isPurgedSince(request.since, url)) {
      request = new CoalescedRequest(start, this.#purges.epoch());
      this.#requests.set(key, request);
      this.#removeWhenComplete(key, request);
    }
    return request.wait(signal, take);
  }

  /** How many sources are being asked for somebody. */
  get size(): number {
    return this.#requests.size;
  }

  #removeWhenComplete(key: string, request: CoalescedRequest<T>): void {
    const forget = (): void => {
      if (this.#requests.get(key) === request) this.#requests.delete(key);
    };
    request.result.then(({ completed }) => {
      if (completed === undefined) forget();
      else void completed.then(forget, forget);
    }, forget);
  }
}

/** One question to a source, and those who wait for its answer. */
class CoalescedRequest<T> {
  readonly result: Promise<SharedResult<T>>;
  /** The epoch in which it began. */
  readonly since: number;
  readonly #controller = new AbortController();
  #waiting = 0;
  #isFirst = true;
  #isTaken = false;

  constructor(start: (signal: Cancellation) => Promise<SharedResult<T>>, since: number) {
    this.since = since;
    this.result = start(this.#controller.signal);
    // Everybody who waits hears of a failure; where nobody does any more, it is nobody's.
    this.result.catch(() => undefined);
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
    let result: SharedResult<T> | undefined;
    try {
      result = await Promise.race([this.result, gone.promise]);
      const taken = take(result.value, position);
      this.#isTaken ||= taken !== undefined;
      return taken;
    } finally {
      signal.removeEventListener('abort', leave);
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#onLastLeft(result);
    }
  }

  #onLastLeft(result: SharedResult<T> | undefined): void {
    if (result === undefined) {
      this.#controller.abort();
      this.result.then(
        ({ discard }) => {
          discard();
        },
        () => undefined,
      );
    } else if (!this.#isTaken) result.discard();
  }
}
