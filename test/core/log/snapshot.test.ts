import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite, test } from 'node:test';
import { Failure } from '../../../src/core/values/failure.ts';
import { commit, inserted, scratchStore } from './scratch.ts';
import { storedRules } from '../../../src/modules/rules/log/family.ts';

suite('a snapshot of the log', () => {
  test('has one state in all turns of the event loop', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('a', { path: '/a' }), inserted('b', { path: '/b' }));
    const seen = await store.inSnapshot(async (reads) => {
      const ids: string[] = [];
      for (const { id } of reads.of(storedRules).recordsAfter('')) {
        ids.push(id);
        await commit(store, inserted(`z${ids.length}`, { path: `/z${ids.length}` }));
        store.refresh();
        await nextTurn();
      }
      return {
        ids,
        seq: reads.seq(),
        later: reads.of(storedRules).rule('z1'),
        live: store.of(storedRules).rule('z1')?.seq,
      };
    });
    assert.deepEqual(seen, { ids: ['a', 'b'], seq: 2, later: undefined, live: 3 });
  });

  test('ends with the store, and refuses to read from it then', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('a', { path: '/a' }), inserted('b', { path: '/b' }));
    const begun = Promise.withResolvers<undefined>();
    const reading = store.inSnapshot(async (reads) => {
      for (const { id } of reads.of(storedRules).recordsAfter('')) {
        begun.resolve(undefined);
        while (reads.of(storedRules).rule(id) !== undefined) await nextTurn();
      }
    });
    await begun.promise;
    const refused = assert.rejects(
      reading,
      (error) => error instanceof Failure && error.code === 'unavailable',
    );
    await store.close();
    await refused;
  });
});
