import { families } from '../../../../src/families.ts';
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { listOutbox } from '../../../../src/modules/nodes/operations/outbox.ts';
import { queueRows } from '../../../../src/modules/nodes/operations/taken-rows.ts';
import type { Call } from '../../../../src/core/operations/operation.ts';
import type { RowParts } from '../../../../src/modules/tables/rows/row-family.ts';
import { openStore } from '../../../../src/core/log/open.ts';
import { temporaryFolder } from '../../../folder.ts';
import { someVisitor } from '../../../visitor.ts';

test('the outbox shows of a row that waits only its table', async (t) => {
  const { store, send } = await counter(t);
  await send('A1');
  const listed = (await listOutbox.run({ store })({}, call)) as { readonly data: Listed };
  assert.deepEqual(
    listed.data.rows.map(({ a, v }) => [a, v]),
    [['svc1.record.insert', { table: 'orders' }]],
  );
});

test('a repeated row is no conflict with its own key while outbox and log both have it', async (t) => {
  const { send, insert } = await counter(t);
  const { data } = await send('A1');
  await insert('record', data.id, { table: 'orders', no: 'A1' });
  const again = await send('A1');
  assert.deepEqual([again.data.id, again.replayed], [data.id, true]);
  await insert('record', uuidv7(), { table: 'orders', no: 'A2' });
  await assert.rejects(send('A2'), { code: 'conflict' });
});

interface Listed {
  readonly rows: readonly { readonly a: string; readonly v: object }[];
}

/** A store with a table, whose inserts of rows go into the outbox. */
async function counter(t: TestContext) {
  const store = await openStore({
    families,
    folder: await temporaryFolder(t),
    now: Date.now,
    newId: uuidv7,
  });
  t.after(() => store.close());
  const schema = { type: 'object', properties: { no: { type: 'string' } } };
  const insert = (family: 'table' | 'record', id: string, data: object) =>
    store.commit('test', () => ({
      drafts: [{ family, id, action: 'insert', data: { ...data } }],
      answer: () => undefined,
    }));
  await insert('table', uuidv7(), { name: 'orders', schema, key: 'no' });
  const parts = { store, newId: uuidv7, isOwnOrigin: () => true } as unknown as RowParts;
  const take = queueRows(parts, Date.now);
  const send = async (no: string) => {
    const outcome = await take({ table: 'orders', no }, { ...call, vk: `order ${no}` });
    return outcome as { readonly data: { readonly id: string }; readonly replayed?: boolean };
  };
  return { store, insert, send };
}

const call: Call = {
  caller: { scopes: new Set(['admin']), keyId: 'key', rate: undefined, address: '127.0.0.1' },
  vk: undefined,
  qk: undefined,
  origin: 'http://localhost',
  fields: {},
  visitor: someVisitor({}),
  transport: 'http',
  signal: () => new AbortController().signal,
};
