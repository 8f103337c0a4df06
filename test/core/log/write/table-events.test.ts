import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Draft } from '../../../../src/core/log/change.ts';
import { eventOf } from '../../../../src/core/log/events/event.ts';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { commit, scratchStore } from '../scratch.ts';

const schema = {
  type: 'object',
  properties: { sku: { type: 'string' }, stock: { type: 'integer' }, status: { type: 'string' } },
};

const products: Draft = {
  family: 'table',
  id: 'products',
  action: 'insert',
  data: {
    ...{ name: 'products', schema, key: 'sku' },
    events: {
      'stock.level_changed': { field: 'stock', crosses: 0 },
      'order.sent': { field: 'status', becomes: 'sent' },
    },
  },
};

function draft(action: Draft['action'], id: string, data: JsonObject): Draft {
  return { family: 'record', id, action, data };
}

function inserted(id: string, fields: JsonObject): Draft {
  return draft('insert', id, { table: 'products', sku: id, ...fields });
}

/** The events after a seq that tables declare. */
function raised(store: Store, after: number): readonly object[] {
  const events = [];
  for (let seq = after + 1; seq <= store.seq(); seq += 1) {
    const change = store.change(seq);
    const event = change?.family === 'event' ? eventOf(change) : undefined;
    if (event !== undefined) events.push({ type: event.type, table: event.table, ...event.data });
  }
  return events;
}

test('a change of a row and the events of its table are one transaction', async (t) => {
  const store = await scratchStore(t);
  await commit(store, products, inserted('P-1', { stock: 2 }));
  const [edit] = await commit(store, draft('edit', 'P-1', { stock: 0, status: 'sent' }));
  const row = { table: 'products', id: 'P-1' };
  assert.deepEqual(raised(store, edit?.seq ?? 0), [
    { type: 'stock.level_changed', ...row, product: 'P-1', level: 0, previous: 2 },
    { type: 'order.sent', ...row, key: 'P-1', field: 'status', value: 'sent' },
  ]);
  assert.deepEqual(store.txnSeqs(edit?.txn ?? ''), { first: 3, last: 5 });
  const [again] = await commit(store, draft('edit', 'P-1', { stock: -1 }));
  assert.deepEqual(raised(store, again?.seq ?? 0), []);
});

test('an undo that takes a value back over its level raises the event again', async (t) => {
  const store = await scratchStore(t);
  await commit(store, products, inserted('P-1', { stock: 2 }));
  const [edit] = await commit(store, draft('edit', 'P-1', { stock: 0 }));
  const after = store.seq();
  await commit(store, draft('invalidate', 'P-1', { rows: [edit?.seq ?? 0] }));
  const [event, ...others] = raised(store, after) as readonly JsonObject[];
  assert.deepEqual([event?.level, event?.previous, others], [2, 0, []]);
});

test('rows that one transaction inserts or changes twice raise their events in its order', async (t) => {
  const store = await scratchStore(t);
  await commit(
    store,
    products,
    inserted('P-1', { stock: 1, status: 'sent' }),
    draft('edit', 'P-1', { stock: 0 }),
    inserted('P-2', { status: 'sent' }),
  );
  assert.deepEqual(
    raised(store, 4).map((event) => Object.values(event).slice(0, 3)),
    [
      ['order.sent', 'products', 'P-1'],
      ['stock.level_changed', 'products', 'P-1'],
      ['order.sent', 'products', 'P-2'],
    ],
  );
});

test('record.changed names the table and the fields of each change of a row', async (t) => {
  const store = await scratchStore(t);
  const data = { name: 'secrets', schema: { properties: { pin: { writeOnly: true } } } };
  await commit(
    store,
    { family: 'table', id: 't', action: 'insert', data },
    draft('insert', 'r', { table: 'secrets', pin: 'not to be seen' }),
    draft('edit', 'r', { pin: '5678', _unknowns_: { table: 'x' } }),
    draft('invalidate', 'r', { rows: [2, 3] }),
    draft('invalidate', 'r', { rows: [4] }),
  );
  const seqs = [1, 2, 3, 4, 5];
  const changes = seqs.flatMap((seq) => store.change(seq) ?? []);
  const events = changes.flatMap((change): readonly JsonObject[] => {
    const event = eventOf(change);
    return event === undefined ? [] : [event.data];
  });
  assert.deepEqual(
    events.map(({ table, id, action, fields, seq }) => [table, id, action, fields, seq]),
    [
      ['table', 't', 'insert', ['name', 'schema'], 1],
      ['secrets', 'r', 'insert', ['pin'], 2],
      ['secrets', 'r', 'edit', ['pin', '_unknowns_'], 3],
      ['secrets', 'r', 'invalidate', undefined, 4],
      ['secrets', 'r', 'invalidate', undefined, 5],
    ],
  );
  assert.ok(!JSON.stringify(events).includes('not to be seen'));
});
