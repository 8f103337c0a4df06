import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import { commit, scratchStore } from '../../../core/log/scratch.ts';
import { storedHooks } from '../../../../src/modules/webhooks/log/family.ts';

function insert(id: string, event: readonly string[]) {
  const data: JsonObject = { event: [...event], url: 'http://127.0.0.1/', method: 'POST' };
  return { family: 'webhook', id, action: 'insert', data } as const;
}

test('the cache holds a hook for all events once, not for each type of event', async (t) => {
  const store = await scratchStore(t);
  await commit(store, insert('all', ['*']), insert('sales', ['sale.completed', 'sale.undone']));
  const ids = (type: string) =>
    store
      .of(storedHooks)
      .hooksFor(type)
      .map(({ hook }) => hook.id);
  assert.deepEqual(ids('sale.completed'), ['sales', 'all']);
  assert.deepEqual(ids('stock.counted'), ['all']);
  const [one, other] = ['a.b', 'c.d'].map((type) => store.of(storedHooks).hooksFor(type)[0]);
  assert.ok(one !== undefined && one === other);
  await commit(store, { family: 'webhook', id: 'all', action: 'edit', data: { event: ['a.b'] } });
  assert.deepEqual(ids('a.b'), ['all']);
  assert.deepEqual(ids('sale.undone'), ['sales']);
});
