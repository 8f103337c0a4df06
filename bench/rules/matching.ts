import { fileURLToPath } from 'node:url';
import { spreadOf } from '../figures.ts';
import { reportOf } from '../load.ts';

/** Times in microseconds. */
export interface Percentiles {
  readonly median: number;
  readonly p99: number;
}

/** Of a process that has just started, whose pages come into its memory one by one, and later on. */
export interface MatchTimes {
  readonly first: Percentiles;
  readonly then: Percentiles;
}

const program = fileURLToPath(new URL('./matching-process.ts', import.meta.url));

/** What bin/waymark.js gives `serve`. */
const serveFlags = [
  '--max-semi-space-size=8',
  '--no-parallel-scavenge',
  '--no-allocation-site-pretenuring',
];

/**
 * How long a match takes in a data folder of so many rules, the log and all else closed: candidates
 * and winner. It is timed in a process of its own, with nothing in it of who filled the folder and
 * V8 as `serve` has it; what that says is kept in `folder`.
 */
export function measureMatching(folder: string, data: string, rules: number): Promise<MatchTimes> {
  const parts = { core: undefined, folder };
  const args = [...serveFlags, program, data, String(rules)];
  return reportOf<MatchTimes>(parts, process.execPath, args);
}

/** Median and 99th percentile of some times. */
export function percentilesOf(times: readonly number[]): Percentiles {
  const sorted = times.toSorted((one, other) => one - other);
  return {
    median: spreadOf(sorted).median,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? NaN,
  };
}
