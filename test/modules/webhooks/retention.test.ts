import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { expiryMs, outageMsMin, outagesAt } from '../../../src/modules/webhooks/retention.ts';

const day = 86_400_000;
const outage = (from: number, to: number) => ({ fromMs: from * day, toMs: to * day });

suite('with a retention of 30 days, messages from before this day are removed', () => {
  for (const [title, today, outages, expected] of [
    ['always on', 100, [], 70],
    ['off for ten days recently', 100, [outage(85, 95)], 60],
    ['off until now', 100, [outage(40, 100)], 10],
    ['off before that day', 100, [outage(50, 60)], 70],
    ['off twice', 100, [outage(60, 70), outage(80, 90)], 50],
    ['off each night for a long time', 100, [outage(79, 89), outage(90, 100)], 50],
    ['off until a future day, by a wrong clock', 100, [outage(90, 160)], 70],
  ] as const) {
    test(title, () => {
      assert.equal(expiryMs(today * day, 30 * day, outages) / day, expected);
    });
  }
});

suite('outages', () => {
  const start = 100 * day;
  const retentionMs = 30 * day;

  test('end with a start after a long time, but not with the first start', () => {
    const at = (lastMs: number) => outagesAt(start, { lastMs, retentionMs, known: [] });
    assert.deepEqual(at(0), []);
    assert.deepEqual(at(start - outageMsMin + 1), []);
    assert.deepEqual(at(start - day), [outage(99, 100)]);
  });

  test('are stored as long as they affect the retention', () => {
    const known = [outage(20, 40), outage(50, 69), outage(70, 75)];
    assert.deepEqual(outagesAt(start, { lastMs: start, retentionMs, known }), [
      outage(50, 69),
      outage(70, 75),
    ]);
  });
});
