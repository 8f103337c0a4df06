import { Histogram, type Metric } from './metrics.ts';

/** In seconds: from what memory answers to what another server takes its time for. */
const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const sources = ['disk', 'rule', 'svc1', 'none'] as const;
type SourceKind = (typeof sources)[number];

/** The answers to the requests of one kind of source, by status class. */
interface Counts {
  readonly classes: Float64Array;
  readonly durations: Histogram;
}

/** Counts what a server answers, at next to no cost for a request. */
export class RequestMetrics {
  readonly #counts: Readonly<Record<SourceKind, Counts>> = {
    disk: counts(),
    rule: counts(),
    svc1: counts(),
    none: counts(),
  };

  /** Answers that the cache was in the way of, by what it did for them. */
  readonly #cache = new Map<string, number>();

  /** Counts one answer; `source` is as the access log has it. */
  add(status: number, source: string, durationMs: number, cache?: string): void {
    const { classes, durations } = this.#counts[kindOf(source)];
    const at = Math.floor(status / 100);
    classes[at] = (classes[at] ?? 0) + 1;
    durations.observe(durationMs / 1000);
    if (cache !== undefined) this.#cache.set(cache, (this.#cache.get(cache) ?? 0) + 1);
  }

  /** What was counted so far. */
  metrics(): readonly Metric[] {
    return [
      {
        name: 'waymark_requests_total',
        type: 'counter',
        help: 'Requests answered over HTTP, by status class and kind of source.',
        samples: sources.flatMap((source) =>
          [1, 2, 3, 4, 5].flatMap((at) => {
            const value = this.#counts[source].classes[at] ?? 0;
            return value === 0 ? [] : [{ labels: { status: `${at}xx`, source }, value }];
          }),
        ),
      },
      {
        name: 'waymark_request_duration_seconds',
        type: 'histogram',
        help: 'Time from a request’s arrival to the end of its answer, by kind of source.',
        samples: sources.flatMap((source) => this.#counts[source].durations.samples({ source })),
      },
      {
        name: 'waymark_cache_requests_total',
        type: 'counter',
        help: 'Requests for fetched content, by what the cache did for them.',
        samples: [...this.#cache].map(([outcome, value]) => ({ labels: { outcome }, value })),
      },
    ];
  }
}

function counts(): Counts {
  return { classes: new Float64Array(6), durations: new Histogram(bounds) };
}

/** Told by its first letter: this is asked for every request. */
function kindOf(source: string): SourceKind {
  switch (source.charCodeAt(0)) {
    case 0x64:
      return 'disk';
    case 0x72:
      return 'rule';
    case 0x73:
      return 'svc1';
    default:
      return 'none';
  }
}
