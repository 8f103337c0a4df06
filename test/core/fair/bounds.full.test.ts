import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { callerRows } from './bounds/callers.ts';
import { contentRows } from './bounds/content.ts';
import { partRows } from './bounds/parts.ts';

const rows = [...callerRows, ...contentRows, ...partRows];

const rounds = 7;

/** The median of the times of some requests one after the other, in ms. */
async function medianMs(ask: (at: number) => Promise<unknown>, from: number): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < rounds; at += 1) {
    const beganMs = performance.now();
    await ask(from + at);
    times.push(performance.now() - beganMs);
  }
  return times.toSorted((one, other) => one - other)[(rounds - 1) / 2] ?? 0;
}

/** What a busy machine may add to any time. */
const noiseMs = 150;

suite('one client takes all that it can, and another is served in twice its time alone', () => {
  for (const { bound, start } of rows) {
    test(bound, async (t) => {
      const { ask, attack } = await start(t);
      await ask(0);
      const alone = await medianMs(ask, 1);
      await attack();
      const beside = await medianMs(ask, 1 + rounds);
      t.diagnostic(`${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside the other`);
      assert.ok(beside <= 2 * alone + noiseMs, `${beside} ms, and ${alone} ms alone`);
    });
  }
});
