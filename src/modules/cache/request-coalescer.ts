import { type Cancellation, Failure } from '../../core/values/failure.ts';
import type { CacheStore } from './cache-store.ts';

/** The result of a request to a source that several client requests share. */
export interface SharedResult<T> {
  readonly value: T;
  /** Later requests join until this settles; undefined if none may join. */
  readonly completed: Promise<unknown> | undefined;
  /** Frees a value that no request has used. */
  readonly discard: () => void;
}

/** Makes the result of one client request; undefined if the value does not fit it. */
type TakeResult<T, R> = (value: T, position: { readonly isFirst: boolean }) => R | undefined;

/** Identifies a shared request. Equal keys have equal URLs. */
interface CoalescedTarget {
  readonly key: string;
  readonly url: string;
}

/** How long a request waits for another one, and what is called with its key after that. */
interface WaitLimit {
  readonly waitMsMax: number;
  readonly onLate: (key: string) => void;
}

/**
 * Sends one request to a source for several client requests (RFC 9111 §4, collapsed requests). The
 * request is aborted only when all of them have gone, so none depends on the first. A client
 * request after a purge never gets a response that was requested before it.
 *
 * A request waits for another one for a limited time: a source may hold an answer back until it has
 * news (long polling), and then wants to know of all clients that wait.
 */
export class RequestCoalescer<T> {
  readonly #requests = new Map<string, CoalescedRequest<T>>();
  readonly #purges: Pick<CacheStore, 'epoch' | 'isPurgedSince'>;
  readonly #limit: WaitLimit;

  constructor(purges: Pick<CacheStore, 'epoch' | 'isPurgedSince'>, limit: WaitLimit) {
    this.#purges = purges;
    this.#limit = limit;
  }

  /**
   * Joins the request of a key, or calls `start` to send it. Resolves to the result of `take`, or
   * to undefined if another request has no result in time; rejects as `start` does, and when the
   * signal aborts.
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
    const { waitMsMax, onLate } = this.#limit;
    const late = (): void => {
      onLate(key);
    };
    return request.wait(signal, take, { waitMsMax, onLate: late });
  }

  /** The number of requests in progress. */
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

/** One request to a source, and the client requests that wait for it. */
class CoalescedRequest<T> {
  readonly result: Promise<SharedResult<T>>;
  /** The epoch in which it was sent. */
  readonly since: number;
  readonly #controller = new AbortController();
  #waiting = 0;
  #isFirst = true;
  #isTaken = false;

  constructor(start: (signal: Cancellation) => Promise<SharedResult<T>>, since: number) {
    this.since = since;
    this.result = start(this.#controller.signal);
    // Each waiting request handles the failure; without any, it is not unhandled.
    this.result.catch(() => undefined);
  }

  async wait<R>(
    signal: Cancellation,
    take: TakeResult<T, R>,
    { waitMsMax, onLate }: { readonly waitMsMax: number; readonly onLate: () => void },
  ): Promise<R | undefined> {
    const position = { isFirst: this.#isFirst };
    this.#isFirst = false;
    this.#waiting += 1;
    const gone = Promise.withResolvers<undefined>();
    const timer = position.isFirst
      ? undefined
      : setTimeout(() => {
          onLate();
          gone.resolve(undefined);
        }, waitMsMax);
    const leave = (): void => {
      gone.reject(new Failure('bad_gateway', 'The request was cancelled.'));
    };
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    let result: SharedResult<T> | undefined;
    try {
      result = await Promise.race([this.result, gone.promise]);
      if (result === undefined) return undefined;
      const taken = take(result.value, position);
      this.#isTaken ||= taken !== undefined;
      return taken;
    } finally {
      clearTimeout(timer);
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
