import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Store } from '../../../../src/core/log/store.ts';
import { commit, edited, inserted, scratchStore } from '../scratch.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';

/** Writes a page, then edits it as the first commit left it. */
async function writeTwice(store: Store): Promise<readonly number[]> {
  const [first] = await commit(store, inserted('a', { path: '/a', content: 'one' }));
  assert.equal(store.of(storedRules).rule('a')?.rule.content, 'one');
  const [second] = await commit(store, edited('a', { content: 'two' }));
  return [first?.seq ?? 0, second?.seq ?? 0];
}

test('commits that belong together see each other, and have one transaction', async (t) => {
  const store = await scratchStore(t);
  await commit(store, inserted('before', { path: '/before', content: 'x' }));
  const { result, seqOf } = await store.together(writeTwice, () => true);
  assert.deepEqual(result.map(seqOf), [2, 3]);
  store.refresh();
  assert.equal(store.of(storedRules).rule('a')?.rule.content, 'two');
  const txn = store.change(2)?.txn ?? '';
  assert.equal(store.change(3)?.txn, txn);
  assert.deepEqual(store.txnSeqs(txn), { first: 2, last: 3 });
  for await (const { differences } of store.part(upkeep).verify())
    assert.deepEqual(differences, []);
});

for (const [name, run, isKept] of [
  ['that are only tried', writeTwice, false],
  [
    'of which one fails',
    async (store: Store) => {
      await writeTwice(store);
      throw new Error('the third one fails');
    },
    true,
  ],
] as const) {
  test(`commits ${name} leave nothing behind`, async (t) => {
    const store = await scratchStore(t);
    const done = store.together<unknown>(run, () => isKept);
    if (isKept) await assert.rejects(done, /the third one fails/);
    else await done;
    store.refresh();
    assert.deepEqual([store.seq(), store.of(storedRules).rule('a')], [0, undefined]);
    await commit(store, inserted('a', { path: '/a', content: 'later' }));
    assert.equal(store.of(storedRules).rule('a')?.rule.content, 'later');
    for await (const { differences } of store.part(upkeep).verify())
      assert.deepEqual(differences, []);
  });
}
