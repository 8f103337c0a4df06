import { uuidv7 } from 'uuidv7';
import { contendersFor, inOrder } from '../../src/site/matcher.ts';
import { openStore } from '../../src/store/open.ts';
import { spreadOf } from '../figures.ts';
import { visitOf } from './fill.ts';

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

const matches = 100_000;
const matchesPerTurn = 16;

/**
 * How long a match takes in a folder of so many rules, the log and all else closed: candidates and
 * winner, a few matches a turn as requests come.
 */
export async function measureMatching(folder: string, rules: number): Promise<MatchTimes> {
  const store = await openStore({ folder, now: Date.now, newId: uuidv7 });
  const times: number[] = [];
  let at = 1;
  for (let done = 0; done < 2 * matches; done += 1) {
    // A walk over all rules that no cache foresees.
    at = (at * 48_271) % 2_147_483_647;
    const visit = visitOf(at % rules);
    const started = performance.now();
    const [winner] = inOrder(
      contendersFor(store, visit, () => true),
      {},
    );
    times.push((performance.now() - started) * 1000);
    if (winner === undefined) throw new Error(`nothing matches ${visit.origin}${visit.path}`);
    if (done % matchesPerTurn === 0) await new Promise(setImmediate);
  }
  await store.close();
  return {
    first: percentilesOf(times.slice(matches / 10, matches)),
    then: percentilesOf(times.slice(matches)),
  };
}

/** Median and 99th percentile of some times. */
export function percentilesOf(times: readonly number[]): Percentiles {
  const sorted = times.toSorted((one, other) => one - other);
  return {
    median: spreadOf(sorted).median,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? NaN,
  };
}
