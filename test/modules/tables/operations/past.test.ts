import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../../../harness.ts';

const properties = { sku: { type: 'string' }, price: { type: 'number' } };
const products = { name: 'products', schema: { type: 'object', properties }, key: 'sku' };
const letters = { name: 'letters', schema: { type: 'object', properties: { text: {} } } };

test('a list with as_of has the tables and schemas of then, deleted ones too', async (t) => {
  const site = await startSite(t);
  const list = async (v: object): Promise<string[]> =>
    (await site.call('table.list', v)).data.rows.map(
      ({ name, schema }: { name: string; schema: { properties: object } }) =>
        `${name}: ${Object.keys(schema.properties).join()}`,
    );

  const { data: first } = await site.call('table.insert', products);
  const { data: second } = await site.call('table.insert', letters);
  const schema = { type: 'object', properties: { ...properties, stock: { type: 'integer' } } };
  const edited = await site.call('table.edit', { id: first.id, schema });
  const deleting = { id: second.id };
  const { data: dry } = await site.call('table.invalidate', deleting);
  const deleted = await site.call('table.invalidate', { ...deleting, confirm: dry.digest });
  assert.equal(deleted.error, undefined);

  assert.deepEqual(await list({}), ['products: sku,price,stock']);
  assert.deepEqual(await list({ as_of: String(edited.data.seq) }), [
    'products: sku,price,stock',
    'letters: text',
  ]);
  assert.deepEqual(await list({ as_of: String(second.seq) }), [
    'products: sku,price',
    'letters: text',
  ]);
  assert.deepEqual(await list({ as_of: String(first.seq) }), ['products: sku,price']);
  assert.deepEqual(await list({ as_of: String(second.seq), name: 'letters' }), ['letters: text']);
  assert.deepEqual(await list({ as_of: String(second.seq), after: first.id }), ['letters: text']);
  assert.deepEqual(await list({ as_of: String(first.seq - 1) }), []);
});
