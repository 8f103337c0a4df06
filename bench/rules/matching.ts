import { fileURLToPath } from 'node:url';
import { spreadOf } from '../figures.ts';
import { reportOf } from '../load.ts';

/** Times in microseconds. */
export interface Percentiles {
  readonly median: number;
  readonly p99: number;
}

/**
 * Times in a process that has just started, where the kernel maps each page at its first use, and
 * in the same process later.
 */
export interface MatchTimes {
  readonly first: Percentiles;
  readonly then: Percentiles;
}

const program = fileURLToPath(new URL('./matching-process.ts', import.meta.url));

/** The flags of V8 with which bin/waymark.js starts `serve`. */
const serveFlags = [
  '--max-semi-space-size=16',
  '--no-parallel-scavenge',
  '--no-allocation-site-pretenuring',
];

/**
 * Measures a match (candidates and winner) in a data folder with this number of rules, without a
 * server. A new process does it, with the flags of V8 that `serve` has; its output is in `folder`.
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
