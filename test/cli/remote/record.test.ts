import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startClient } from '../here.ts';

const products = JSON.stringify({
  name: 'products',
  schema: { properties: { sku: { type: 'string' }, price: { type: 'number' } } },
  key: 'sku',
  index: ['price'],
});

test('waymark table and waymark record insert, list, edit and delete', async (t) => {
  const { waymark, out } = await startClient(t);
  await out('table', 'insert', products);
  const tables = (await out('table', 'list')).trim().split('\n');
  assert.match(tables[0] ?? '', /^ID +NAME +KEY +FIELDS$/);
  assert.match(tables[1] ?? '', / products +sku +sku,price$/);

  const inserted = await waymark('record', 'insert', 'products', '{"sku":"A","price":2}');
  assert.equal(inserted.code, 0, inserted.err);
  const { id } = JSON.parse(inserted.out) as { id: string };
  await out('record', 'insert', 'products', '{"sku":"B","price":3}');
  const cheap = ['record', 'list', 'products', '--where', '{"price":{"<":3}}'];
  const listed = (await out(...cheap)).trim().split('\n');
  assert.deepEqual([listed.length, listed[1]?.split(/ {2,}/)[2]], [2, '{"sku":"A","price":2}']);
  await out('record', 'edit', 'products', id, '{"price":4}');
  assert.match(await out('record', 'read', 'products', id), /"price": ?4/);
  assert.equal((await out('record', 'history', 'products', id)).trim().split('\n').length, 3);
  assert.match(await out('record', 'get', 'products', '--sort', '-price'), /"sku": ?"A"/);
  assert.match(await out('record', 'schema', 'products'), /"key": ?"sku"/);

  const dry = await out('record', 'invalidate', 'products', id);
  const digest = /--confirm (\S+)/.exec(dry)?.[1] ?? '';
  const done = await out('record', 'invalidate', 'products', id, '--confirm', digest);
  assert.match(done, /To undo this: waymark record invalidate products --txn /);
  const missing = await waymark('record', 'read', 'products', id);
  assert.equal(missing.code, 1);
});

test('waymark record names a row by its key, too', async (t) => {
  const { waymark, out } = await startClient(t);
  await out('table', 'insert', products);
  await out('record', 'insert', 'products', '{"sku":"L-1","price":2}');
  await out('record', 'edit', 'products', 'L-1', '{"price":4}');
  assert.match(await out('record', 'read', 'products', 'L-1'), /"price": ?4/);
  assert.match(await out('record', 'read', 'products', 'L-1', '--as-of', '4'), /"sku": ?"L-1"/);
  assert.equal((await out('record', 'history', 'products', 'L-1')).trim().split('\n').length, 3);
  const renamed = await waymark('record', 'edit', 'products', 'L-1', '{"sku":"L-2"}');
  assert.equal(renamed.code, 2);
  assert.match(renamed.err, /name the row by its id to change its sku/);

  const dry = await out('record', 'invalidate', 'products', 'L-1');
  const digest = /--confirm (\S+)/.exec(dry)?.[1] ?? '';
  await out('record', 'invalidate', 'products', 'L-1', '--confirm', digest);
  const missing = await waymark('record', 'read', 'products', 'L-1');
  assert.equal(missing.code, 1);

  await out(
    'table',
    'insert',
    '{"name":"years","key":"n","schema":{"properties":{"n":{"type":"integer"}}}}',
  );
  await out('record', 'insert', 'years', '{"n":1999}');
  assert.match(await out('record', 'read', 'years', '1999'), /"n": ?1999/);
});
