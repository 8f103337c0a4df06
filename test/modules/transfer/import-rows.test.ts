import { families } from '../../../src/families.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore } from '../../../src/core/log/open.ts';
import { exportedRecords } from '../../../src/modules/transfer/export.ts';
import { startSite, type TestSite } from '../../harness.ts';

const schema = {
  type: 'object',
  required: ['sku'],
  properties: {
    sku: { type: 'string' },
    price: { type: 'number' },
    pin: { type: 'string', writeOnly: true },
  },
};
const table = { a: 'svc1.table.insert', v: { name: 'products', schema, key: 'sku' } };
const row = (v: object, more: object = {}) => ({
  a: 'svc1.record.insert',
  v: { table: 'products', ...v },
  ...more,
});

function importLines(
  site: TestSite,
  lines: readonly object[],
  more: { readonly dry_run?: boolean; readonly apikey?: string } = {},
) {
  const { apikey = site.adminKey, ...v } = more;
  const ndjson = lines.map((line) => JSON.stringify(line)).join('\n');
  return site.call('userinterface.import', { ndjson, ...v }, { apikey });
}

test('an import of a table and its rows is one transaction, with dry run and undo', async (t) => {
  const site = await startSite(t);
  const lines = [table, row({ sku: 'A', price: 1 }), row({ sku: 'B', price: 'dear', colour: 1 })];
  const dry = await importLines(site, lines, { dry_run: true });
  assert.deepEqual(
    [dry.data.done, dry.data.imported, dry.data.kept, dry.data.refused],
    [false, 3, 1, 0],
  );
  assert.deepEqual(dry.data.unknowns[0].names.toSorted(), ['colour', 'price']);
  assert.equal(dry.data.unknowns[0].line, 3);
  assert.equal((await site.call('table.list', {})).data.rows.length, 0);

  const done = await importLines(site, lines);
  assert.equal(done.data.imported, 3, JSON.stringify(done));
  const listed = await site.call('record.list', { table: 'products' });
  assert.equal(listed.data.rows.length, 2);
  assert.deepEqual((await importLines(site, lines)).data.unchanged, 3);

  const { txn } = done.data;
  const undo = await site.call('record.invalidate', { table: 'products', txn });
  assert.equal(undo.data.gone, 2);
  const { digest: confirm } = undo.data;
  await site.call('record.invalidate', { table: 'products', txn, confirm });
  const after = await site.call('record.list', { table: 'products', count: true });
  assert.equal(after.data.count, 0);
});

test('a reference that names no row is a problem of its line, and its row is imported', async (t) => {
  const site = await startSite(t);
  const properties = { sku: { type: 'string' }, shop: { type: 'string', 'x-table': 'shops' } };
  const lamps = { name: 'lamps', schema: { type: 'object', properties }, key: 'sku' };
  const shops = {
    name: 'shops',
    schema: { properties: { code: { type: 'string' } } },
    key: 'code',
  };
  for (const v of [lamps, shops]) await site.call('table.insert', v);
  const { data: mill } = await site.call('record.insert', { table: 'shops', code: 'mill' });
  const insert = (v: object) => ({ a: 'svc1.record.insert', v });
  const lines = [
    insert({ table: 'lamps', sku: 'A', shop: 'mill' }),
    insert({ table: 'lamps', sku: 'B', shop: 'harbour' }),
    insert({ table: 'lamps', sku: 'C', shop: 'nowhere' }),
    insert({ table: 'lamps', sku: 'D', shop: mill.id }),
    insert({ table: 'shops', code: 'harbour' }),
  ];
  const of = ({ data }: Awaited<ReturnType<typeof importLines>>): unknown =>
    (data.unknowns as { line: number; problems: { field: string; reason: string }[] }[]).map(
      ({ line, problems }) => [line, problems.map(({ field, reason }) => [field, reason])],
    );
  assert.deepEqual(of(await importLines(site, lines, { dry_run: true })), [
    [3, [['shop', 'no_row']]],
  ]);
  // A row that the caller may not read is none, as in an insert.
  const scopes = ['design', 'record.write'];
  const { data: key } = await site.call('key.insert', { name: 'x', scopes });
  const blind = await importLines(site, lines, { dry_run: true, apikey: key.key });
  const every = [1, 2, 3, 4].map((line) => [line, [['shop', 'no_row']]]);
  assert.deepEqual(of(blind), every);
  const done = await importLines(site, lines);
  assert.deepEqual([done.data.imported, done.data.kept], [5, 1]);
  const { data } = await site.call('record.read', { table: 'lamps', sku: 'C' });
  assert.equal(data.shop, 'nowhere');
});

test('lines that cannot be imported are named, and none is then', async (t) => {
  const site = await startSite(t);
  await importLines(site, [table, row({ sku: 'A' })]);
  const bad = [
    row({ sku: 'C' }),
    row({ sku: 'A', price: 2 }),
    row({ price: 2 }),
    row({ sku: 'C', price: 3 }),
    { a: 'svc1.record.insert', v: { table: 'nothing', sku: 'x' } },
    { a: 'svc1.table.insert', v: { name: 'products', schema: { type: 'object' } } },
    { a: 'svc1.table.insert', v: { name: 'other', schema: { type: 'strng' } } },
  ];
  const dry = await importLines(site, bad, { dry_run: true });
  assert.deepEqual(
    dry.data.refusals.map(({ line, why }: { line: number; why: string }) => [line, why]),
    [
      [2, 'products has a row with the sku "A" already.'],
      [3, 'sku is missing: every row of products has it.'],
      [4, 'products has a row with the sku "C" already.'],
      [5, 'there is no table "nothing".'],
      [6, 'the table products exists with other fields, and an import edits no record.'],
      [
        7,
        'schema at /type: It has to be one of ' +
          'array, boolean, integer, null, number, object, string.',
      ],
    ],
  );
  assert.equal((await importLines(site, bad)).error?.code, 'invalid');
  const listed = await site.call('record.list', { table: 'products', count: true });
  assert.equal(listed.data.count, 1);
});

test('rows and tables need the scopes of their inserts', async (t) => {
  const site = await startSite(t);
  const keyOf = async (...scopes: string[]): Promise<string> =>
    (await site.call('key.insert', { name: 'x', scopes })).data.key;
  const lines = [table, row({ sku: 'A' })];
  const design = await keyOf('design');
  const refused = await importLines(site, lines, { apikey: design, dry_run: true });
  assert.equal(refused.data.refusals[0].why, 'a table needs the scope admin.');
  await importLines(site, [table]);
  const rows = await importLines(site, [row({ sku: 'A' })], { apikey: design, dry_run: true });
  assert.equal(rows.data.refusals[0].why, 'a row of products needs the scope record.write.');
  const writer = await keyOf('design', 'record.write:products');
  const done = await importLines(site, [row({ sku: 'A' })], { apikey: writer });
  assert.equal(done.data.imported, 1, JSON.stringify(done));
});

test('an export has tables and rows with all of their fields, and an import restores them', async (t) => {
  const site = await startSite(t);
  await importLines(site, [table, row({ sku: 'A', price: 'dear', pin: 's3cret' })]);
  const store = await openStore({
    families,
    folder: `${site.folder}/data`,
    now: Date.now,
    newId: () => 'unused',
    readOnly: true,
  });
  t.after(() => store.close());
  const lines = [...exportedRecords(store)].map((line) => JSON.parse(line) as object);
  const { id } = (await site.call('record.read', { table: 'products', sku: 'A' })).data;
  assert.deepEqual(lines.at(-1), {
    a: 'svc1.record.insert',
    v: { table: 'products', sku: 'A', pin: 's3cret', _unknowns_: { price: 'dear' } },
    vk: `record:${id}`,
  });
  const other = await startSite(t);
  const done = await importLines(other, lines);
  assert.equal(done.data.imported, 2, JSON.stringify(done));
  const restored = await other.call('record.read', { table: 'products', sku: 'A' });
  assert.deepEqual([restored.data.id, restored.data._unknowns_], [id, { price: 'dear' }]);
  assert.equal((await importLines(other, lines)).data.unchanged, 2);
});
