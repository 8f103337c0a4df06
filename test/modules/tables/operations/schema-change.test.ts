import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../../../harness.ts';

const properties = { sku: { type: 'string' }, price: { type: 'number' }, note: {} };
const products = { name: 'products', schema: { type: 'object', properties }, key: 'sku' };
const table = 'products';

test('an edit that makes values invalid reports them first, and moves them when confirmed', async (t) => {
  const site = await startSite(t);
  const { data: made } = await site.call('table.insert', products);
  const { data: dear } = await site.call('record.insert', { table, sku: 'A', price: 1.5 });
  await site.call('record.insert', { table, sku: 'B', price: 2, note: 'x' });
  const narrow = { sku: properties.sku, price: { type: 'integer' }, note: {} };
  const edit = { id: made.id, schema: { type: 'object', properties: narrow } };
  const { data: report } = await site.call('table.edit', edit);
  const { digest } = report;
  assert.deepEqual(report, {
    ...{ done: false, rows: 2, invalid: 1, fields: { price: 1 }, digest },
    first: [{ id: dear.id, fields: ['price'] }],
  });
  const other = await site.call('table.edit', { ...edit, confirm: 'other' });
  assert.deepEqual([other.error?.code, other.error?.field], ['precondition_failed', 'confirm']);

  await site.call('record.insert', { table, sku: 'C', price: 2.5 });
  const late = await site.call('table.edit', { ...edit, confirm: digest });
  assert.equal(late.error?.code, 'precondition_failed', 'a row came in meanwhile');
  const { data: again } = await site.call('table.edit', edit);
  const done = await site.call('table.edit', { ...edit, confirm: again.digest });
  assert.equal(done.error, undefined, JSON.stringify(done.error));
  await site.untilLogged(/Checked the rows of the table products/);
  const moved = await site.call('record.read', { table, sku: 'A' });
  assert.deepEqual([moved.data.price, moved.data._unknowns_], [undefined, { price: 1.5 }]);

  // The undo of the change brings the values back.
  const undo = { id: made.id, from: String(done.data.seq), until: String(done.data.seq) };
  const { data: dry } = await site.call('table.invalidate', undo);
  await site.call('table.invalidate', { ...undo, confirm: dry.digest });
  await site.untilLogged(/Checked the rows[^]*Checked the rows/);
  assert.equal((await site.call('record.read', { table, sku: 'A' })).data.price, 1.5);
});

test('a renamed field keeps its values, and a change without harm needs no confirm', async (t) => {
  const site = await startSite(t);
  const { data: made } = await site.call('table.insert', products);
  await site.call('record.insert', { table, sku: 'A', price: 1.5, colour: 'red' });
  const renamed = {
    sku: properties.sku,
    note: {},
    cost: { type: 'number', 'x-renamed-from': 'price' },
    colour: { type: 'string' },
  };
  const edit = { id: made.id, schema: { type: 'object', properties: renamed } };
  const done = await site.call('table.edit', edit);
  assert.equal(done.data.rows_pending, true, JSON.stringify(done));
  await site.untilLogged(/Checked the rows of the table products/);
  const { data } = await site.call('record.read', { table, sku: 'A' });
  assert.deepEqual([data.cost, data.colour, data.price], [1.5, 'red', undefined]);
  assert.equal(data._unknowns_, undefined);
});

const invalid: readonly (readonly [object, string, RegExp])[] = [
  [{ schema: { type: 'object', properties: { a: { type: 'strng' } } } }, 'schema', /properties\/a/],
  [{ schema: { properties: { a: { maxLenght: 3 } } } }, 'schema', /Did you mean maxLength/],
  [{ schema: { properties: { a: { $ref: '#/$defs/b' } } } }, 'schema', /no schema at #\/\$defs\/b/],
  [{ schema: { properties: { a: { $ref: 'https://x.example/' } } } }, 'schema', /same schema/],
  [
    {
      schema: {
        properties: { a: { $ref: '#/$defs/a' } },
        $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } },
      },
    },
    'schema',
    /circle/,
  ],
  [{ schema: { properties: { a: { pattern: '(?=a)b' } } } }, 'schema', /linear time/],
  [{ schema: { properties: { a: { pattern: '(' } } } }, 'schema', /properties\/a.*[Ii]nvalid/],
  [{ schema: { properties: { if_seq: {} } } }, 'schema', /if_seq/],
  [{ schema: { type: 'array' } }, 'schema', /object/],
  [{ key: 'skuu' }, 'key', /Did you mean sku/],
  [{ index: ['note'] }, 'index', /needs a type/],
  [{ search: ['price'] }, 'search', /a string/],
  [{ read: ['user'] }, 'read', /owner/],
  [{ name: 'webhook' }, 'name', /family/],
  [{ name: 'A b' }, 'name', /lower-case/],
  [
    { schema: { properties: { sku: { type: 'string', writeOnly: true } } }, key: 'sku' },
    'key',
    /writeOnly/,
  ],
];

test('a definition with a mistake is refused, with its field', async (t) => {
  const site = await startSite(t);
  for (const [change, field, message] of invalid) {
    const { error } = await site.call('table.insert', { ...products, ...change });
    assert.deepEqual([error?.code, error?.field], ['invalid', field], JSON.stringify(change));
    assert.match(error?.message ?? '', message);
  }
  const { data: made } = await site.call('table.insert', products);
  const renamed = await site.call('table.edit', { id: made.id, name: 'lamps' });
  assert.deepEqual([renamed.error?.code, renamed.error?.field], ['conflict', 'name']);
  const twice = await site.call('table.insert', { ...products, index: [] });
  assert.deepEqual([twice.error?.code, twice.error?.field], ['conflict', 'name']);
});

test('a table with rows cannot be deleted', async (t) => {
  const site = await startSite(t);
  const { data: made } = await site.call('table.insert', products);
  await site.call('record.insert', { table, sku: 'A' });
  // The dry run already says so.
  const { error } = await site.call('table.invalidate', { id: made.id });
  assert.equal(error?.code, 'conflict');
  assert.match(error.message, /1 row/);
});
