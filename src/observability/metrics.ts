/** Names and values that tell the samples of a metric apart. */
type Labels = Readonly<Record<string, string>>;

/** One number of a metric. */
export interface Sample {
  /** What follows the metric's name: of a histogram `_bucket`, `_sum` or `_count`. */
  readonly suffix?: string;
  readonly labels: Labels;
  readonly value: number;
}

/** A metric as it stands at one moment, in the terms of Prometheus. */
export interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly samples: readonly Sample[];
}

/** The metrics of one process; of several, each has a name. */
export interface ProcessMetrics {
  readonly name?: string;
  readonly metrics: readonly Metric[];
}

/** Asks all processes that share a port for their metrics. */
export type Gather = () => Promise<readonly ProcessMetrics[]>;

/** The media type of the text below. */
export const metricsType = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * The metrics of several processes in the text format of Prometheus (version 0.0.4): each metric
 * once, with the samples of all. A process that has a name has it as the label `process`.
 */
export function metricsText(processes: readonly ProcessMetrics[]): string {
  const families = new Map<string, { readonly metric: Metric; readonly lines: string[] }>();
  for (const { name: process, metrics } of processes) {
    for (const metric of metrics) {
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

/** A metric of a single number. */
export function single(
  type: 'counter' | 'gauge',
  name: string,
  { help, value }: { readonly help: string; readonly value: number },
): Metric {
  return { name, type, help, samples: [{ labels: {}, value }] };
}

/** Counts values by size: a few comparisons each, no memory. */
export class Histogram {
  readonly #bounds: readonly number[];
  /** By bucket, the one above all bounds last. */
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

  /** Buckets that hold what is below them, as Prometheus has it, then sum and count. */
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

/** What is known of a process, under the names that Prometheus' own clients use. */
export function processMetrics(): readonly Metric[] {
  const { user, system } = process.cpuUsage();
  const { active } = performance.eventLoopUtilization();
  return [
    single('counter', 'process_cpu_seconds_total', {
      help: 'CPU time that the process has used.',
      value: (user + system) / 1e6,
    }),
    single('gauge', 'process_resident_memory_bytes', {
      help: 'Memory of the process that is resident.',
      value: process.memoryUsage.rss(),
    }),
    single('gauge', 'process_start_time_seconds', {
      help: 'When the process started, in seconds since 1970.',
      value: performance.timeOrigin / 1000,
    }),
    single('counter', 'waymark_event_loop_active_seconds_total', {
      help: 'Time that the event loop was busy: near one second a second, the process is full.',
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
