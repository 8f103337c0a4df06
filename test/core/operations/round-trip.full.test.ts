import { test } from 'node:test';
import fc from 'fast-check';
import { startSite } from '../../harness.ts';
import { prepare, runSteps, steps } from './round-trip.ts';

test('what is read is what was sent, or a problem names it, for long', async (t) => {
  const site = await startSite(t);
  await prepare(site);
  await fc.assert(
    fc.asyncProperty(steps, (all) => runSteps(site, all)),
    { numRuns: 80 },
  );
});
