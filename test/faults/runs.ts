import { Random } from '../fuzz/random.ts';
import type { Cleaning } from '../folder.ts';

/** A run that injects faults into processes while clients write. */
export interface FaultRun {
  /** How many faults to inject. */
  readonly faults: number;
  /** Chooses the faults. It does not choose the load, so a seed repeats the plan of faults only. */
  readonly random: Random;
  readonly context: Cleaning;
  /** A sentence for each broken promise; the first one ends the run. */
  readonly violations: string[];
  /** How many faults of each kind were injected. */
  readonly injected: Record<string, number>;
}

/** The number of runs on the command line; ends the process with a message if it is no number. */
export function runsAsked(argument: string | undefined): number {
  const runs = Number(argument ?? 200);
  if (Number.isSafeInteger(runs) && runs > 0) return runs;
  process.stderr.write(`How many runs? A whole number from 1 on, not ${argument ?? ''}.\n`);
  process.exit(2);
}

/**
 * Runs `act` with the number of faults and the seed of the command line, and prints a line of JSON:
 * the faults, the seed, the duration, what `act` has counted, and the violations. Ends the process,
 * with 1 if there is a violation or an error.
 */
export async function runFaults(
  [faults, seed]: readonly string[],
  act: (run: FaultRun) => Promise<object>,
): Promise<never> {
  const cleanings: (() => unknown)[] = [];
  const asked = { faults: runsAsked(faults), seed: Number(seed ?? Date.now() % 1_000_000) };
  const run: FaultRun = {
    faults: asked.faults,
    random: new Random(asked.seed),
    context: {
      after: (clean) => {
        cleanings.unshift(clean);
      },
    },
    violations: [],
    injected: {},
  };
  const started = performance.now();
  let counts = {};
  try {
    counts = await act(run);
  } catch (error) {
    run.violations.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  } finally {
    for (const clean of cleanings) await clean();
  }
  const { injected, violations } = run;
  const seconds = Math.round((performance.now() - started) / 1_000);
  process.stdout.write(`${JSON.stringify({ ...asked, seconds, injected, counts, violations })}\n`);
  process.exit(violations.length === 0 ? 0 : 1);
}
