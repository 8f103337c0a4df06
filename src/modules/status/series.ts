import type { ProcessMetrics, Sample } from '../../core/report/metrics.ts';
import { seriesTiers } from '../../core/report/limits.ts';

/** The work of a server in a span of time: numbers that can be added. */
interface SeriesCounts {
  /** Responses of the site by status class, 1xx to 5xx; without those of the service. */
  readonly classes: readonly number[];
  /** Responses by source: disk, rule, none, svc1. */
  readonly sources: readonly number[];
  /** Responses of the site by duration: a bucket for each bound, and one above all. */
  readonly durations: readonly number[];
  /** Responses that the cache had, and all that went through it. */
  readonly cache: readonly number[];
  /** Bytes of content of all responses. */
  readonly bytes: number;
  /** Completed and failed attempts at deliveries. */
  readonly hooks: readonly number[];
}

/** The counts from a time on, in milliseconds since 1970. */
export interface SeriesPoint extends SeriesCounts {
  readonly time: number;
}

/** Points of one distance, oldest first. */
interface SeriesTier {
  readonly stepMs: number;
  readonly points: readonly SeriesPoint[];
}

/** The bounded history of a server's metrics, in several distances of points. */
export interface Series {
  readonly version: 1;
  /** Upper bounds of the durations, in seconds. */
  readonly bounds: readonly number[];
  readonly tiers: readonly SeriesTier[];
}

/** A series without points. */
export function emptySeries(): Series {
  return {
    version: 1,
    bounds: [],
    tiers: seriesTiers.map(({ stepMs }) => ({ stepMs, points: [] })),
  };
}

/** The series with the counts of the time before `nowMs`, without points that are too old. */
export function withCounts(
  { tiers }: Series,
  { counts, bounds }: { readonly counts: SeriesCounts; readonly bounds: readonly number[] },
  nowMs: number,
): Series {
  return {
    version: 1,
    bounds,
    tiers: seriesTiers.map(({ stepMs, pointsMax }, at) => {
      const time = Math.floor((nowMs - 1) / stepMs) * stepMs;
      // After the clock was set back, points from the future would never become too old.
      const points = (tiers[at]?.points ?? []).filter(
        (one) => one.time > time - stepMs * pointsMax && one.time <= time,
      );
      const last = points.at(-1);
      const isSame = last?.time === time;
      const point = { time, ...(isSame ? sum(last, counts) : counts) };
      return { stepMs, points: [...(isSame ? points.slice(0, -1) : points), point] };
    }),
  };
}

function sum(a: SeriesCounts, b: SeriesCounts): SeriesCounts {
  return {
    classes: added(a.classes, b.classes),
    sources: added(a.sources, b.sources),
    durations: added(a.durations, b.durations),
    cache: added(a.cache, b.cache),
    bytes: a.bytes + b.bytes,
    hooks: added(a.hooks, b.hooks),
  };
}

function added(a: readonly number[], b: readonly number[]): readonly number[] {
  return b.map((value, at) => value + (a[at] ?? 0));
}

/** The counters of a process since its start, by name and labels. */
type Counters = ReadonlyMap<string, number>;

/** Turns the counters of processes, which only grow, into the counts since the last look. */
export class CounterDifferences {
  #before: ReadonlyMap<string, Counters> | undefined;

  /**
   * The counts since the last call, and the bounds of the durations; undefined for the first call.
   * A process that has started since counts from zero.
   */
  next(
    processes: readonly ProcessMetrics[],
  ): { readonly counts: SeriesCounts; readonly bounds: readonly number[] } | undefined {
    const now = new Map(
      processes.map(({ name = '', metrics }) => [
        name,
        new Map(
          metrics.flatMap(({ name: metric, type, samples }) =>
            type === 'gauge'
              ? []
              : samples.map((sample) => [keyOf(metric, sample), sample.value] as const),
          ),
        ),
      ]),
    );
    const before = this.#before;
    this.#before = now;
    if (before === undefined) return undefined;
    const differences = new Map<string, number>();
    for (const [process, counters] of now) {
      const earlier = before.get(process);
      for (const [key, value] of counters) {
        const since = earlier?.get(key) ?? 0;
        const more = value >= since ? value - since : value;
        differences.set(key, (differences.get(key) ?? 0) + more);
      }
    }
    return countsOf(differences);
  }
}

function keyOf(metric: string, { suffix = '', labels }: Sample): string {
  return `${metric}${suffix} ${Object.values(labels).join(' ')}`;
}

const siteSources = ['disk', 'rule', 'none'];

function countsOf(differences: Counters): {
  readonly counts: SeriesCounts;
  readonly bounds: readonly number[];
} {
  const at = (key: string): number => differences.get(key) ?? 0;
  const total = (keys: readonly string[]): number => keys.reduce((all, key) => all + at(key), 0);
  const requests = 'waymark_requests_total';
  const statuses = ['1xx', '2xx', '3xx', '4xx', '5xx'];
  const classes = statuses.map((status) =>
    total(siteSources.map((source) => `${requests} ${status} ${source}`)),
  );
  const sources = [...siteSources, 'svc1'].map((source) =>
    total(statuses.map((status) => `${requests} ${status} ${source}`)),
  );
  const bucket = 'waymark_request_duration_seconds_bucket';
  const bounds = [...differences.keys()]
    .filter((key) => key.startsWith(`${bucket} disk `))
    .map((key) => Number(key.slice(`${bucket} disk `.length).replace('+Inf', 'Infinity')));
  const below = bounds.map((bound) => {
    const text = bound === Infinity ? '+Inf' : String(bound);
    return total(siteSources.map((source) => `${bucket} ${source} ${text}`));
  });
  const outcomes = ['hit', 'stale', 'revalidated', 'miss', 'pass'];
  const cached = outcomes.map((outcome) => at(`waymark_cache_requests_total ${outcome}`));
  const [hit = 0, stale = 0, revalidated = 0] = cached;
  const attempts = 'waymark_webhook_attempts_total';
  const counts = {
    classes,
    sources,
    durations: below.map((count, index) => count - (below[index - 1] ?? 0)),
    cache: [hit + stale + revalidated, cached.reduce((all, one) => all + one, 0)],
    bytes: at('waymark_response_bytes_total '),
    hooks: [
      total([`${attempts} completed`, `${attempts} completed_404`]),
      at(`${attempts} failed`),
    ],
  };
  return { counts, bounds: bounds.filter((bound) => bound !== Infinity) };
}

/**
 * The duration below which a share of responses stayed, in milliseconds, by linear interpolation in
 * its bucket; null without responses.
 */
export function quantileMs(
  durations: readonly number[],
  bounds: readonly number[],
  share: number,
): number | null {
  const all = durations.reduce((total, count) => total + count, 0);
  if (all === 0) return null;
  let below = 0;
  for (const [at, count] of durations.entries()) {
    const isReached = below + count >= share * all;
    const [from, to] = [bounds[at - 1] ?? 0, bounds[at] ?? bounds.at(-1) ?? 0];
    if (isReached && count > 0) {
      return 1000 * (from + ((share * all - below) / count) * (to - from));
    }
    below += count;
  }
  return 1000 * (bounds.at(-1) ?? 0);
}
