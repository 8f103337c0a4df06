import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { LeastRate } from '../../../src/core/server/least-rate.ts';

/** Looks once a second: the bytes that moved since the look before, or undefined for no waiting. */
function slowAt(moved: readonly (number | undefined)[]): number[] {
  const rate = new LeastRate({ bytesPerSecond: 10, windowMs: 3_000 });
  const slow: number[] = [];
  let bytes = 1_000_000;
  for (const [second, more] of moved.entries()) {
    bytes += more ?? 0;
    const isWaiting = more !== undefined;
    if (rate.isTooSlow(second * 1_000, { bytes, isWaiting })) slow.push(second);
  }
  return slow;
}

suite('the least rate', () => {
  for (const [name, moved, slow] of [
    ['passes who is fast enough', [0, 10, 10, 10, 30, 0, 0, 10, 20, 0], []],
    ['ends who is slow over a whole window', [0, 9, 9, 9], [3]],
    ['has no say at the first look, however long ago it began', [5, 10, 10, 10], []],
    ['counts only while the server waits', [0, 1, 1, undefined, 0, 1, 1, undefined, 0], []],
    ['leaves who moves nothing to other limits', [0, 0, 0, 0, 0, 0, 0], []],
    ['counts a pause to a byte after it', [0, 0, 0, 0, 0, 0, 1], [6]],
    ['takes a burst after a pause', [0, 0, 0, 0, 0, 0, 60], []],
    ['begins again after each window', [0, 50, 0, 0, 1, 1, 1], [6]],
  ] as const) {
    test(name, () => {
      assert.deepEqual(slowAt(moved), slow);
    });
  }
});
