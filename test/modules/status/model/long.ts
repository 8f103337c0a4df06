// The long run of the model: compares each answer to random sequences of operations on page rules
// with a naive replay. `npm run model [-- --runs N] [--steps N] [--seed N] [--websocket]` prints its
// progress, and exits with 1 and the shortest sequence with a difference.
import { parseArgs } from 'node:util';
import { assertAgreement } from './agreement.ts';
import { inProcess, overWebsockets } from './systems.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    steps: { type: 'string', default: '60' },
    seed: { type: 'string' },
    websocket: { type: 'boolean', default: false },
  },
});
const [runs, stepsMax] = [Number(values.runs), Number(values.steps)];
/** Runs with one seed; the progress is printed after each. */
const portion = 100;

const cleanings: (() => unknown)[] = [];
const open = values.websocket
  ? overWebsockets
  : await inProcess({ after: (clean) => cleanings.push(clean) });
try {
  const first = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
  for (let done = 0; done < runs; done += portion) {
    const seed = first + done / portion;
    const languages = !values.websocket;
    await assertAgreement(open, {
      runs: Math.min(portion, runs - done),
      stepsMax,
      seed,
      languages,
    });
    const soFar = Math.min(done + portion, runs);
    process.stdout.write(`${soFar} sequences as the model has them, the last by seed ${seed}\n`);
  }
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 1;
} finally {
  for (const clean of cleanings) await clean();
}
