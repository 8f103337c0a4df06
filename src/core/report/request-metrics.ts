import { Histogram, singleMetric, type Metric } from './metrics.ts';

/** In seconds, from responses out of memory to those of slow sources. */
const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const sources = ['disk', 'rule', 'svc1', 'none'] as const;
type SourceKind = (typeof sources)[number];

/** The responses from one kind of source, by status class. */
interface Counts {
  readonly classes: Float64Array;
  readonly durations: Histogram;
}

/** Counts the responses of a server. */
export class RequestMetrics {
  readonly #counts: Readonly<Record<SourceKind, Counts>> = {
    disk: counts(),
    rule: counts(),
    svc1: counts(),
    none: counts(),
  };

  /** The responses that went through the cache, by cache status. */
  readonly #cache = new Map<string, number>();
  #bytes = 0;

  /** Counts a response and the bytes of its content; `source` is that of the access log. */
  add(status: number, source: string, durationMs: number, cache?: string, bytes = 0): void {
    const { classes, durations } = this.#counts[kindOf(source)];
    const at = Math.floor(status / 100);
    classes[at] = (classes[at] ?? 0) + 1;
    durations.observe(durationMs / 1000);
    this.#bytes += bytes;
    if (cache !== undefined) this.#cache.set(cache, (this.#cache.get(cache) ?? 0) + 1);
  }

  /** The counts so far. */
  metrics(): readonly Metric[] {
    return [
      {
        name: 'waymark_requests_total',
        type: 'counter',
        help: 'Responses over HTTP, by status class and kind of source.',
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
        help: 'Time from the arrival of a request to the end of its response, by kind of source.',
        samples: sources.flatMap((source) => this.#counts[source].durations.samples({ source })),
      },
      {
        name: 'waymark_cache_requests_total',
        type: 'counter',
        help: 'Requests for fetched content, by cache status.',
        samples: [...this.#cache].map(([outcome, value]) => ({ labels: { outcome }, value })),
      },
      singleMetric('counter', 'waymark_response_bytes_total', {
        help: 'Bytes of the content of all responses.',
        value: this.#bytes,
      }),
    ];
  }
}

function counts(): Counts {
  return { classes: new Float64Array(6), durations: new Histogram(bounds) };
}

/** The kind of a source by its first letter, because this runs for each request. */
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
