import { Histogram, type Metric, type Sample } from '../../core/report/metrics.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { sourceBoundsSeconds, sourcesKnownMax } from './limits.ts';

/** The durations that source.list has are those of the last one to two periods. */
const sourceRecentMs = 300_000;

/** The longest stored text of the last error of a source. */
const sourceErrorCharactersMax = 300;

/** The requests to one server since the process started, by its origin. */
interface SourceCounts {
  requests: number;
  /** Requests without a complete answer. */
  failed: number;
  /** Answers with a status of 500 or more. */
  serverErrors: number;
  open: number;
  /** Seconds until an answer began, of this period and the one before. */
  recent: Histogram;
  before: Histogram;
  sinceMs: number;
  connections: number;
  lastError: { readonly message: string; readonly at: string } | undefined;
}

/** One request to a server. */
export interface CountedRequest {
  /** The answer has begun; returns after how many milliseconds. */
  answered(status: number): number;
  /** There is no answer, or not all of it. */
  failed(message: string): void;
  /** The exchange is over. */
  ended(): void;
}

/** Counts requests to the servers of content.fetch rules; `now` is in ms since 1970. */
export class SourceStatistics {
  readonly #now: () => number;
  readonly #sources = createLruCache<SourceCounts>(sourcesKnownMax);

  constructor({ now }: { readonly now: () => number }) {
    this.#now = now;
  }

  /** Counts a request that is sent to an origin. */
  start(origin: string): CountedRequest {
    const source = this.#source(origin);
    const startMs = performance.now();
    source.requests += 1;
    source.open += 1;
    return {
      answered: (status) => {
        this.#turn(source);
        const ms = performance.now() - startMs;
        source.recent.observe(ms / 1_000);
        if (status >= 500) source.serverErrors += 1;
        return ms;
      },
      failed: (message) => {
        source.failed += 1;
        const at = new Date(this.#now()).toISOString();
        source.lastError = { message: message.slice(0, sourceErrorCharactersMax), at };
      },
      ended: () => {
        source.open -= 1;
      },
    };
  }

  /** Counts a connection to an origin; returns the function that counts its end. */
  connected(origin: string): () => void {
    const source = this.#source(origin);
    source.connections += 1;
    return () => {
      source.connections -= 1;
    };
  }

  /**
   * The counts as metrics, which only source.list reads: /metrics would get a histogram for each
   * source.
   */
  metrics(): readonly Metric[] {
    const all = [...this.#sources.entries()];
    for (const [, source] of all) this.#turn(source);
    const samples = (value: (one: SourceCounts) => number): readonly Sample[] =>
      all.map(([source, one]) => ({ labels: { source }, value: value(one) }));
    return [
      internalMetric(
        'requests',
        samples(({ requests }) => requests),
      ),
      internalMetric(
        'failed',
        samples(({ failed }) => failed),
      ),
      internalMetric(
        'server_errors',
        samples(({ serverErrors }) => serverErrors),
      ),
      internalMetric(
        'connections',
        samples(({ connections }) => connections),
      ),
      internalMetric(
        'open',
        samples(({ open }) => open),
      ),
      internalMetric(
        'durations',
        all.flatMap(([source, { recent, before }]) => [
          ...recent.samples({ source }),
          ...before.samples({ source }),
        ]),
      ),
      internalMetric(
        'last_errors',
        all.flatMap(([source, { lastError }]) =>
          lastError === undefined ? [] : [{ labels: { source, ...lastError }, value: 1 }],
        ),
      ),
    ];
  }

  /** Begins a new period if the present one is over. */
  #turn(source: SourceCounts): void {
    const nowMs = this.#now();
    if (nowMs - source.sinceMs < sourceRecentMs) return;
    const isOld = nowMs - source.sinceMs >= 2 * sourceRecentMs;
    source.before = isOld ? new Histogram(sourceBoundsSeconds) : source.recent;
    source.recent = new Histogram(sourceBoundsSeconds);
    source.sinceMs = nowMs;
  }

  #source(origin: string): SourceCounts {
    const known = this.#sources.get(origin);
    if (known !== undefined) return known;
    const made: SourceCounts = {
      ...{ requests: 0, failed: 0, serverErrors: 0, open: 0, connections: 0 },
      recent: new Histogram(sourceBoundsSeconds),
      before: new Histogram(sourceBoundsSeconds),
      sinceMs: this.#now(),
      lastError: undefined,
    };
    this.#sources.set(origin, made);
    return made;
  }
}

/** A metric of sources that operations read, and /metrics leaves out. */
export function internalMetric(name: string, samples: readonly Sample[]): Metric {
  const isInternal = true;
  return { name: `source_${name}`, type: 'gauge', help: '', samples, isInternal };
}
