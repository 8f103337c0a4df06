import { test } from 'node:test';
import fc from 'fast-check';
import { startSite } from '../../harness.ts';
import { startReceiver } from '../../modules/webhooks/receiver.ts';
import { checkCopies, prepare, runSteps, steps } from './round-trip.ts';

test('what is read is what was sent, or a problem names it, for long', async (t) => {
  const receiver = await startReceiver(t);
  const site = await startSite(t, { ini: '[webhook]\nallow_private = 127.0.0.0/8\n' });
  const written = await prepare(site, receiver);
  await fc.assert(
    fc.asyncProperty(steps, (all) => runSteps(site, all, written)),
    { numRuns: 40 },
  );
  await checkCopies(site, receiver, written);
});
