/** The labels of a sample. */
type Labels = Readonly<Record<string, string>>;

/** One number of a metric. */
export interface Sample {
  /** The suffix of the metric's name; in a histogram `_bucket`, `_sum` or `_count`. */
  readonly suffix?: string;
  readonly labels: Labels;
  readonly value: number;
}

/** The current values of a metric, in the terms of Prometheus. */
export interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly samples: readonly Sample[];
  /** Set if operations read it, and /metrics leaves it out. */
  readonly isInternal?: boolean;
}

/** The metrics of one process. If there are several, each has a name. */
export interface ProcessMetrics {
  readonly name?: string;
  readonly metrics: readonly Metric[];
}

/** Gathers the metrics of all processes that share a port. */
export type GatherMetrics = () => Promise<readonly ProcessMetrics[]>;

/** The media type of metricsText. */
export const metricsType = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * The metrics of several processes in the text format of Prometheus (version 0.0.4): each metric
 * once, with the samples of all processes. The name of a process is the label `process`.
 */
export function metricsText(processes: readonly ProcessMetrics[]): string {
  const families = new Map<string, { readonly metric: Metric; readonly lines: string[] }>();
  for (const { name: process, metrics } of processes) {
    for (const metric of metrics) {
      if (metric.isInternal === true) continue;
      const family = families.get(metric.name) ?? { metric, lines: [] };
      families.set(metric.name, family);
      for (const { suffix = '', labels, value } of metric.samples) {
        const all = process === undefined ? labels : { ...labels, process };
        family.lines.push(`${metric.name}${suffix}${labelsText(all)} ${valueText(value)}\n`);
      }
    }
  }
  return [...families.values()]
    .map(({ metric: { name, type, help }, lines }) => {
      const escaped = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
      return `# HELP ${name} ${escaped}\n# TYPE ${name} ${type}\n${lines.join('')}`;
    })
    .join('');
}

/** A metric with one sample. */
export function singleMetric(
  type: 'counter' | 'gauge',
  name: string,
  { help, value }: { readonly help: string; readonly value: number },
): Metric {
  return { name, type, help, samples: [{ labels: {}, value }] };
}

/** A histogram of Prometheus. An observation takes a few comparisons and no memory. */
export class Histogram {
  readonly #bounds: readonly number[];
  /** The counts of the buckets; the last one is above all bounds. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** `bounds` are the upper bounds of the buckets, ascending, in the metric's unit. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at += 1;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  /** The samples: cumulative buckets, sum and count. */
  samples(labels: Labels): readonly Sample[] {
    let count = 0;
    const buckets = [...this.#bounds, Infinity].map((bound, at): Sample => {
      count += this.#counts[at] ?? 0;
      return { suffix: '_bucket', labels: { ...labels, le: valueText(bound) }, value: count };
    });
    return [
      ...buckets,
      { suffix: '_sum', labels, value: this.#sum },
      { suffix: '_count', labels, value: count },
    ];
  }
}

/** The metrics of this process, under the names that Prometheus' own clients use. */
export function processMetrics(): readonly Metric[] {
  const { user, system } = process.cpuUsage();
  const { active } = performance.eventLoopUtilization();
  return [
    singleMetric('counter', 'process_cpu_seconds_total', {
      help: 'CPU time of the process.',
      value: (user + system) / 1e6,
    }),
    singleMetric('gauge', 'process_resident_memory_bytes', {
      help: 'Resident memory of the process.',
      value: process.memoryUsage.rss(),
    }),
    singleMetric('gauge', 'process_start_time_seconds', {
      help: 'Start time of the process, in seconds since 1970.',
      value: performance.timeOrigin / 1000,
    }),
    singleMetric('counter', 'waymark_event_loop_active_seconds_total', {
      help: 'Busy time of the event loop: at one second per second, the process is overloaded.',
      value: active / 1000,
    }),
  ];
}

function labelsText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    const escaped = value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
    return `${name}="${escaped}"`;
  });
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function valueText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '+Inf' : '-Inf';
}
