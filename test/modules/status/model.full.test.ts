import { suite, test } from 'node:test';
import { assertAgreement } from './model/agreement.ts';
import { inProcess, overWebsockets } from './model/systems.ts';

// Many commits, each as slow as the disk; shrinking a counterexample takes many more. `npm run
// model` makes thousands of runs.
const patient = { timeout: 360_000 };

suite(
  'whatever is written, taken back and read in whatever order is as a naive replay has it',
  () => {
    test('called directly', patient, async (t) => {
      await assertAgreement(await inProcess(t), { runs: 20, stepsMax: 30, languages: true });
    });

    test('over websockets', patient, async () => {
      await assertAgreement(overWebsockets, { runs: 10, stepsMax: 15, languages: false });
    });
  },
);
