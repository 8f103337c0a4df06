import type { LoadResult } from './load.ts';

/** What a load generator has counted. */
interface Counted {
  /** Milliseconds of `performance.now()`. */
  readonly startedMs: number;
  readonly latenciesMs: number[];
  readonly bytes: number;
  readonly refused: number;
  readonly broken: number;
}

/** Prints the LoadResult of a load generator, without the CPU time, as JSON. */
export function printResult({ startedMs, latenciesMs, ...counts }: Counted): void {
  const seconds = (performance.now() - startedMs) / 1_000;
  latenciesMs.sort((a, b) => a - b);
  const percentileUs = (share: number): number =>
    Math.round((latenciesMs[Math.floor(latenciesMs.length * share)] ?? 0) * 1_000);
  const result: Omit<LoadResult, 'cpuUs'> = {
    requests: latenciesMs.length,
    seconds,
    p50Us: percentileUs(0.5),
    p99Us: percentileUs(0.99),
    ...counts,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
