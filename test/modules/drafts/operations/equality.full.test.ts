import { suite, test } from 'node:test';
import { assertEquality } from './equality.ts';

suite(
  'compare calls equal what a publication does not change, and a preview is what it serves',
  () => {
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
      test(`with the seed ${seed}`, { timeout: 240_000 }, async (t) => {
        await assertEquality(t, { seed, runs: 25 });
      });
    }
  },
);
