import { test } from 'node:test';
import { assertEquality } from './equality.ts';

// `equality.full.test.ts` has many seeds.
test('compare calls equal what a publication does not change, and a preview is what it serves', async (t) => {
  await assertEquality(t, { seed: 40, runs: 3 });
});
