import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../../../harness.ts';

test('record.check returns the problems that a write would have, and writes nothing', async (t) => {
  const site = await startSite(t);
  const properties = {
    sku: { type: 'string', minLength: 2 },
    price: { type: 'number', minimum: 0 },
    like: { type: 'string', 'x-table': 'lamps' },
  };
  const schema = { type: 'object', required: ['sku'], properties };
  await site.call('svc1.table.insert', { name: 'lamps', schema, key: 'sku' });
  const table = 'lamps';
  const check = async (v: object) => {
    const { data, error } = await site.call('svc1.record.check', { table, ...v });
    if (error !== undefined) return error.code;
    const fields = (data.problems as { field: string }[]).map(({ field }) => field);
    return { refused: data.refused as boolean, fields };
  };
  assert.deepEqual(await check({ sku: 'tern', price: 1 }), { refused: false, fields: [] });
  const several = await check({ price: -1, like: 'none' });
  assert.deepEqual(several, { refused: true, fields: ['sku', 'price'] });
  const waiting = await check({ sku: 'tern', price: 'dear', like: 'none', colour: 'red' });
  assert.deepEqual(waiting, { refused: false, fields: ['price', 'like', 'colour'] });
  const { data } = await site.call('svc1.record.insert', { table, sku: 'tern', price: 2 });
  assert.deepEqual(await check({ sku: 'tern' }), { refused: true, fields: ['sku'] });
  assert.deepEqual(await check({ id: data.id, price: 3 }), { refused: false, fields: [] });
  assert.deepEqual(await check({ id: data.id, sku: null }), { refused: true, fields: ['sku'] });
  assert.equal(await check({ id: 'none', price: 3 }), 'not_found');
  const { data: list } = await site.call('svc1.record.list', { table, count: true });
  assert.equal(list.count, 1);
  assert.equal(list.rows[0].price, 2);
  assert.deepEqual((await site.call('svc1.table.counts', {})).data.rows, [
    { name: table, rows: 1 },
  ]);
});
