/** A point of metrics.series. */
export interface Point {
  readonly time: string;
  readonly requests: number;
  readonly status: Readonly<Record<string, number>>;
  readonly sources: Readonly<Record<'disk' | 'rule' | 'none' | 'svc1', number>>;
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly cache: { readonly hits: number; readonly requests: number };
  readonly bytes: number;
  readonly hooks: { readonly completed: number; readonly failed: number };
}

/** The answer of metrics.series. */
export interface Series {
  readonly from: string;
  readonly until: string;
  readonly step_ms: number;
  readonly points: readonly Point[];
}

/** What stands out in a time: its points follow each other. */
export interface Anomaly {
  readonly kind: 'errors' | 'slow' | 'hooks';
  /** ISO 8601. */
  readonly from: string;
  readonly until: string;
  /** Server errors, the greatest p99 in ms, or failed deliveries. */
  readonly value: number;
}

const errorsMin = 3;
const errorShareMin = 0.05;
const slowMsMin = 500;
const slowFactorMin = 5;
const shownOfKind = 3;

/** The times of a series that stand out, the newest first, a few of each kind. */
export function anomaliesOf({ points, step_ms: stepMs }: Series): readonly Anomaly[] {
  const usual = medianOf(points.flatMap(({ p99_ms: ms }) => (ms === null ? [] : [ms])));
  const kinds = {
    errors: ({ status, requests }: Point) => {
      const errors = status['5xx'] ?? 0;
      return errors >= errorsMin && errors >= errorShareMin * requests ? errors : 0;
    },
    slow: ({ p99_ms: ms }: Point) =>
      ms !== null && ms >= slowMsMin && ms >= slowFactorMin * usual ? ms : 0,
    hooks: ({ hooks }: Point) => hooks.failed,
  };
  return Object.entries(kinds).flatMap(([kind, valueOf]) =>
    runsOf(points, { kind: kind as Anomaly['kind'], valueOf, stepMs }).slice(0, shownOfKind),
  );
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

/** Points in a row with a value above 0 become one anomaly; the newest comes first. */
function runsOf(
  points: readonly Point[],
  run: {
    readonly kind: Anomaly['kind'];
    readonly valueOf: (point: Point) => number;
    readonly stepMs: number;
  },
): readonly Anomaly[] {
  const { kind, valueOf, stepMs } = run;
  const found: Anomaly[] = [];
  for (const point of points) {
    const value = valueOf(point);
    if (value === 0) continue;
    const until = new Date(Date.parse(point.time) + stepMs).toISOString();
    const last = found.at(-1);
    if (last?.until === point.time) {
      const both = kind === 'slow' ? Math.max(last.value, value) : last.value + value;
      found[found.length - 1] = { ...last, until, value: both };
    } else found.push({ kind, from: point.time, until, value });
  }
  return found.toReversed();
}
