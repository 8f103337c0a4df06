import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dispatchComparedMax } from '../../../../src/modules/webhooks/log/dispatch.ts';
import { commit, inserted, scratchStore } from '../../../core/log/scratch.ts';
import { eventDrafts } from '../deliverer-rig.ts';
import { deliveriesPart } from '../../../../src/modules/webhooks/log/delivery-log.ts';

test('a dispatch compares events with a bounded number of hooks, whether or not their filters match', async (t) => {
  const store = await scratchStore(t);
  const data = { event: ['a.b'], url: 'http://127.0.0.1/', method: 'POST', filter: { shop: 1 } };
  const hooks = Array.from({ length: 200 }, (_, at) => ({
    ...({ family: 'webhook', action: 'insert' } as const),
    ...{ id: `hook-${at}`, data },
  }));
  await commit(store, ...hooks);
  const deliveries = store.part(deliveriesPart);
  await deliveries.begin();
  const dispatch = async () => (await deliveries.dispatch({ role: 'all', name: '' })).upTo;
  assert.equal(await dispatch(), hooks.length);
  const atOnce = dispatchComparedMax / hooks.length;
  await commit(store, ...eventDrafts(3 * atOnce));
  for (const turn of [1, 2, 3]) assert.equal(await dispatch(), hooks.length + turn * atOnce);
});

test('a hook with tables gets only the changes of their records', async (t) => {
  const store = await scratchStore(t);
  const hookDraft = (id: string, table: readonly string[]) => ({
    ...({ family: 'webhook', action: 'insert', id } as const),
    data: {
      event: ['record.changed'],
      url: 'http://127.0.0.1/',
      method: 'POST',
      filter: {},
      table,
    },
  });
  const drafts = [hookDraft('rules', ['userinterface']), hookDraft('hooks', ['webhook', 'stock'])];
  const [rules, hooks] = await commit(store, ...drafts);
  await store.part(deliveriesPart).begin();
  await store.part(deliveriesPart).dispatch({ role: 'all', name: '' });
  await commit(store, inserted('page', { path: '/' }), hookDraft('other', ['key']));
  const { grown } = await store.part(deliveriesPart).dispatch({ role: 'all', name: '' });
  assert.deepEqual([...grown], [rules?.seq, hooks?.seq]);
});
