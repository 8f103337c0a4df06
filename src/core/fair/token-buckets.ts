import type { Metric } from '../report/metrics.ts';
import { leavesRoom } from './shared-limit.ts';

/** Token buckets of rates in memory, and how often full ones make room: in a few milliseconds. */
export const bucketsMax = 200_000;
const bucketsSweepMs = 1_000;

/** A request for a token. */
export interface TokenOrder {
  /** The name of the rate. */
  readonly rate: string;
  /** Who has the bucket: an address, a user, a key … */
  readonly client: string;
  /** The network that names the client, if it can name many: its buckets leave room for others. */
  readonly from?: string;
  /** Milliseconds in which a token is added. */
  readonly intervalMs: number;
  /** The number of tokens of a full bucket. */
  readonly burst: number;
}

/** What has become of such a request. */
export interface Taken {
  readonly isTaken: boolean;
  /** Tokens that are left. */
  readonly left: number;
  /** Milliseconds until a token is there; 0 if one is. */
  readonly waitMs: number;
  /** Milliseconds until the bucket is full again. */
  readonly fullMs: number;
}

/** Takes a token from a bucket that all processes on the port share. */
export type TakeToken = (order: TokenOrder) => Taken | Promise<Taken>;

/**
 * Counts what clients may not do too often, without a wait. Where several processes share a port,
 * each decides by what it knows, and one of them counts for all.
 */
export interface TokenCounter {
  /** Takes a token, if there is one. */
  take(order: TokenOrder): Taken;
  /** Gives a token back that was taken for what did not count after all. */
  giveBack(order: TokenOrder): void;
}

/** The buckets of one rate. */
interface RateBuckets {
  /** When each is full. */
  readonly fullAtMs: Map<string, number>;
  /** The networks that have named clients, and how many buckets each of them has. */
  readonly networkOf: Map<string, string>;
  readonly bucketsOf: Map<string, number>;
  /** When the next look for full ones is due. */
  sweepAtMs: number;
}

/**
 * Token buckets by the generic cell rate algorithm (GCRA): the state of a bucket is the time at
 * which it is full. At most `bucketsMax` that are not full are kept, each rate with an equal share;
 * then new clients of a rate share one bucket, so that nobody gets a full one by filling the
 * memory, and no rate fills that of another. A network that names many clients has no more buckets
 * than it leaves to others; its further clients share one. `monotonicMs` measures durations.
 */
export class TokenBuckets implements TokenCounter {
  readonly #monotonicMs: () => number;
  readonly #max: number;
  readonly #rates = new Map<string, RateBuckets>();

  constructor({ monotonicMs, max = bucketsMax }: { monotonicMs: () => number; max?: number }) {
    this.#monotonicMs = monotonicMs;
    this.#max = max;
  }

  /** The number of buckets that are kept. */
  get size(): number {
    return [...this.#rates.values()].reduce((sum, { fullAtMs }) => sum + fullAtMs.size, 0);
  }

  /** Takes a token, if there is one. */
  take(order: TokenOrder): Taken {
    const { intervalMs, burst } = order;
    const nowMs = this.#monotonicMs();
    const { buckets, key } = this.#bucketOf(order, nowMs);
    const fullAtMs = Math.max(buckets.fullAtMs.get(key) ?? nowMs, nowMs);
    const waitMs = fullAtMs - nowMs - (burst - 1) * intervalMs;
    // Sums of fractions are not exact.
    const isTaken = waitMs <= Math.min(intervalMs / 2, inexactMs);
    const thenMs = isTaken ? fullAtMs + intervalMs : fullAtMs;
    if (isTaken) {
      if (key === order.client) note(buckets, order);
      buckets.fullAtMs.set(key, thenMs);
    }
    const fullMs = thenMs - nowMs;
    const left = Math.max(0, Math.floor(burst - fullMs / intervalMs + 1e-6));
    return { isTaken, left, waitMs: isTaken ? 0 : waitMs, fullMs };
  }

  giveBack(order: TokenOrder): void {
    this.charge(order, -1);
  }

  /**
   * Takes tokens that another process has given out, also those that there are not: who has them
   * waits longer. Returns the milliseconds until the bucket is full.
   */
  charge(order: TokenOrder, tokens: number): number {
    const nowMs = this.#monotonicMs();
    const { key, buckets } = this.#bucketOf(order, nowMs);
    const fullAtMs = Math.max(buckets.fullAtMs.get(key) ?? nowMs, nowMs);
    return this.#fill(order, Math.max(0, fullAtMs - nowMs + tokens * order.intervalMs));
  }

  /** Sets a bucket to what another process has counted. */
  adopt(order: TokenOrder, fullMs: number): void {
    this.#fill(order, fullMs);
  }

  #fill(order: TokenOrder, fullMs: number): number {
    const nowMs = this.#monotonicMs();
    const { key, buckets } = this.#bucketOf(order, nowMs);
    if (key === order.client) note(buckets, order);
    buckets.fullAtMs.set(key, nowMs + fullMs);
    return fullMs;
  }

  #bucketOf(order: TokenOrder, nowMs: number) {
    const buckets = this.#rates.get(order.rate) ?? this.#add(order.rate, nowMs);
    return { buckets, key: this.#keyOf(buckets, order, nowMs) };
  }

  /** Adds a rate, and forgets those of a former configuration once their buckets are full. */
  #add(rate: string, nowMs: number): RateBuckets {
    for (const [name, buckets] of this.#rates) {
      forgetFull(buckets, nowMs);
      if (buckets.fullAtMs.size === 0) this.#rates.delete(name);
    }
    const added = {
      fullAtMs: new Map<string, number>(),
      networkOf: new Map<string, string>(),
      bucketsOf: new Map<string, number>(),
      sweepAtMs: nowMs,
    };
    this.#rates.set(rate, added);
    return added;
  }

  /** The bucket of a client: its own, that of its network, or that of all new clients. */
  #keyOf(buckets: RateBuckets, { client, from = '' }: TokenOrder, nowMs: number): string {
    const max = this.#max / this.#rates.size;
    const { fullAtMs, bucketsOf } = buckets;
    const held = (): number => bucketsOf.get(from) ?? 0;
    const hasRoom = (): boolean =>
      fullAtMs.size < max && leavesRoom({ held: held(), all: fullAtMs.size, max: Math.ceil(max) });
    if (fullAtMs.has(client) || hasRoom()) return client;
    sweep(buckets, nowMs);
    if (hasRoom()) return client;
    return held() > 0 ? `all of ${from}` : '';
  }
}

/**
 * Removes full buckets, all at once and now and then: a Map keeps a hole for each entry that it
 * loses, which every look at a few of the first ones would have to pass.
 */
function sweep(buckets: RateBuckets, nowMs: number): void {
  if (nowMs < buckets.sweepAtMs) return;
  forgetFull(buckets, nowMs);
  buckets.sweepAtMs = nowMs + bucketsSweepMs;
}

/** Notes the network of a client that gets a bucket of its own. */
function note(buckets: RateBuckets, { client, from }: TokenOrder): void {
  if (from === undefined || buckets.fullAtMs.has(client)) return;
  buckets.networkOf.set(client, from);
  buckets.bucketsOf.set(from, (buckets.bucketsOf.get(from) ?? 0) + 1);
}

function forgetFull({ fullAtMs, networkOf, bucketsOf }: RateBuckets, nowMs: number): void {
  for (const [key, atMs] of fullAtMs) {
    if (atMs > nowMs) continue;
    fullAtMs.delete(key);
    const from = networkOf.get(key);
    if (from === undefined) continue;
    networkOf.delete(key);
    const left = (bucketsOf.get(from) ?? 0) - 1;
    if (left > 0) bucketsOf.set(from, left);
    else bucketsOf.delete(from);
  }
}

/** What sums of fractions of milliseconds may be wrong by. */
const inexactMs = 1e-3;

/**
 * Takes a token for each of some orders, or none of them. Returns the whole seconds until there is
 * one for each; 0 if they are taken.
 */
export function takeAll(counter: TokenCounter, orders: readonly TokenOrder[]): number {
  const taken = orders.map((order) => counter.take(order));
  const waitMs = Math.max(...taken.map((one) => one.waitMs));
  if (taken.every(({ isTaken }) => isTaken)) return 0;
  for (const [at, order] of orders.entries())
    if (taken[at]?.isTaken === true) counter.giveBack(order);
  return Math.max(1, Math.ceil(waitMs / 1_000));
}

/** Counts the requests of each rate; outlives a reload of the configuration. */
export class RateCounts {
  readonly #counts = new Map<string, { passed: number; refused: number }>();

  add(rate: string, result: 'passed' | 'refused'): void {
    const counts = this.#counts.get(rate) ?? { passed: 0, refused: 0 };
    counts[result] += 1;
    this.#counts.set(rate, counts);
  }

  metrics(): readonly Metric[] {
    if (this.#counts.size === 0) return [];
    const samples = [...this.#counts].flatMap(([rate, counts]) =>
      Object.entries(counts).map(([result, value]) => ({ labels: { rate, result }, value })),
    );
    return [
      {
        name: 'waymark_rate_requests_total',
        type: 'counter',
        help: 'Requests that a rate of the ini file has let pass or refused.',
        samples,
      },
    ];
  }
}
