import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../../harness.ts';
import { startCollector } from './collector.ts';

test('[telemetry] keeps no request waiting for a collector that does not answer', async (t) => {
  const collector = await startCollector(t);
  collector.answer = () => undefined;
  const site = await startSite(t, { ini: collector.ini });
  for (let turn = 0; turn < 600; turn += 1) {
    assert.equal((await fetch(`${site.url}/none`)).status, 404);
  }
  const beganMs = performance.now();
  await site.waymark.stop(1_000);
  assert.ok(performance.now() - beganMs < 15_000);
});
