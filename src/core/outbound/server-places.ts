import { type Release, SharedLimit } from '../fair/shared-limit.ts';
import type { Cancellation } from '../values/failure.ts';
import { createLruCache } from '../values/lru-cache.ts';
import { outboundConnectionsMax } from './h1/http1-client.ts';
import { http2RequestsMax } from './h2/http2-client.ts';

/** Servers whose places are counted. */
const serversCountedMax = 1_000;

/** Requests that wait for a place at one server, and how long. */
export const placesWaitingMax = 1_024;
export const placeWaitMs = 10_000;

/**
 * The places at each server that answers for this one: as many as there are connections to it. A
 * client who holds answers open leaves as many places as it has to others, and waits for its turn.
 */
export class ServerPlaces {
  readonly #limits = createLruCache<SharedLimit>(serversCountedMax);

  /**
   * A place at a server, at once if there is one. Rejects with `rate_limited` or `unavailable` if
   * the turn does not come in time, and with the reason of the request's signal.
   */
  of(
    server: string,
    { isHttp2 }: { readonly isHttp2: boolean },
    { address, signal }: { readonly address: string; readonly signal: Cancellation },
  ): Release | Promise<Release> {
    const limit = this.#limits.get(server) ?? this.#add(server, isHttp2);
    const client = { keyId: undefined, address };
    return limit.tryAcquire(client) ?? limit.acquire(client, 1, signal);
  }

  #add(server: string, isHttp2: boolean): SharedLimit {
    const limit = new SharedLimit({
      what: 'requests that other servers are answering',
      limit: 'fetches',
      held: 'long',
      max: isHttp2 ? http2RequestsMax : outboundConnectionsMax,
      waiting: { max: placesWaitingMax, ms: placeWaitMs },
    });
    this.#limits.set(server, limit);
    return limit;
  }
}
