import { families } from '../../../../src/families.ts';
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createRowChecks } from '../../../../src/modules/tables/operations/row-checks.ts';
import {
  tableWarnings,
  writeConfiguredTables,
} from '../../../../src/modules/tables/operations/configured-tables.ts';
import { newId } from '../../../../src/core/values/clock.ts';
import { silentLog } from '../../../../src/core/report/log.ts';
import { openStore } from '../../../../src/core/log/open.ts';
import { temporaryFolder, writeFiles } from '../../../folder.ts';
import { readTestConfig, startSite, type TestSite } from '../../../harness.ts';
import { testTasks } from '../../../core/background/test-tasks.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';

const schema = (price: object, more: object = {}) => ({
  type: 'object',
  required: ['sku'],
  properties: { sku: { type: 'string' }, price, ...more },
});
const ini = '[table.products]\nschema = products.json\nkey = sku\nindex = price\n';

async function reload(site: TestSite, change: (ini: string) => string): Promise<void> {
  await writeFile(site.iniFile, change(await readFile(site.iniFile, 'utf8')));
  site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
}

test('a table of the ini file is there at once, also for the rules and rows of the first import', async (t) => {
  const site = await startSite(t, {
    ini,
    files: { 'products.json': JSON.stringify(schema({ type: 'number' })) },
    rules: [{ path: '/', content: 'x' }],
  });
  const { rows } = (await site.call('table.list', {})).data;
  assert.deepEqual(
    rows.map(({ name, key, index }: { name: string; key: string; index: string[] }) => {
      return [name, key, index];
    }),
    [['products', 'sku', ['price']]],
  );
  assert.equal((await site.call('userinterface.list', {})).data.rows.length, 1);
  const edited = await site.call('table.edit', { id: rows[0].id, index: [] });
  assert.deepEqual([edited.error?.code, edited.error?.field], ['conflict', 'name']);
  assert.match(edited.error?.message ?? '', /\[table\.products\]/);
  const deleted = await site.call('table.invalidate', { id: rows[0].id });
  assert.equal(deleted.error?.code, 'conflict');
});

test('a reload changes a table, moves values that are no longer valid, and says so', async (t) => {
  const file = { 'products.json': JSON.stringify(schema({ type: 'number' })) };
  const site = await startSite(t, { ini, files: file });
  const table = 'products';
  const inserted = await site.call('record.insert', { table, sku: 'A', price: 1.5 });
  await site.call('record.insert', { table, sku: 'B', price: 2 });
  await writeFile(
    join(site.folder, 'products.json'),
    JSON.stringify(schema({ type: 'integer' }, { title: { type: 'string' } })),
  );
  await reload(site, (text) => text.replace('index = price', 'index = price, title'));
  await site.untilLogged(/Of 2 rows, 1 has values that the schema does not permit \(price of 1\)/);
  await site.untilLogged(/Checked the rows of the table products by its new schema/);
  const moved = await site.call('record.read', { table, sku: 'A' });
  assert.deepEqual(moved.data._unknowns_, { price: 1.5 });
  const history = await site.call('record.read', { table, id: moved.data.id }, { qk: 'history' });
  assert.equal(history.data.rows[0].by, 'server');
  assert.equal((await site.call('record.read', { table, sku: 'B' })).data.price, 2);
  const { rows } = (await site.call('table.list', {})).data;
  assert.deepEqual([rows[0].index, rows[0].rows_pending], [['price', 'title'], undefined]);
  assert.equal(inserted.error, undefined);

  await reload(site, (text) => text.replace(/\[table[^]*$/, ''));
  await site.untilLogged(/no longer has \[table\.products\]: the table stays/);
  const edited = await site.call('table.edit', { id: rows[0].id, index: ['price'] });
  assert.equal(edited.error, undefined, JSON.stringify(edited.error));
});

test('a key that rows forbid to change stays, and the log says why', async (t) => {
  const file = { 'products.json': JSON.stringify(schema({ type: 'number' })) };
  const site = await startSite(t, { ini, files: file });
  await site.call('record.insert', { table: 'products', sku: 'A', price: 1 });
  await reload(site, (text) => text.replace('key = sku', ''));
  await site.untilLogged(/Cannot apply \[table\.products\]; the table stays as it is: .*key sku/);
  const { rows } = (await site.call('table.list', {})).data;
  assert.equal(rows[0].key, 'sku');
});

test('a schema that changes while the server is stopped moves the values at the next start', async (t) => {
  const folder = await temporaryFolder(t);
  const iniFile = join(folder, 'server.ini');
  const write = (price: object) =>
    writeFiles(folder, {
      'server.ini': `[server]\nlisten = 127.0.0.1:0\ndata = data\n${ini}`,
      'products.json': JSON.stringify(schema(price)),
    });
  await write({ type: 'number' });
  const store = await openStore({ families, folder: join(folder, 'data'), now: Date.now, newId });
  const parts = { store, newId, log: silentLog };
  await writeConfiguredTables(await readTestConfig(iniFile), parts);
  const id = newId();
  const data = { table: 'products', sku: 'A', price: 1.5 };
  await store.commit('test', () => ({
    drafts: [{ family: 'record', id, action: 'insert', data }],
    answer: () => undefined,
  }));
  await write({ type: 'integer' });
  const config = await readTestConfig(iniFile);
  assert.match((await tableWarnings(config.tables, store)).join(), /Of 1 row, 1 has values/);
  // The process ends after it has applied the schema, and before it has checked the rows.
  await writeConfiguredTables(config, parts);
  assert.equal(store.of(storedTables).row(id)?.row.price, 1.5);
  assert.equal(store.of(storedTables).table('products')?.table.rows_pending, true);
  const checks = createRowChecks({ store, log: silentLog });
  const { stop } = testTasks().start(checks.task);
  while (store.of(storedTables).table('products')?.table.rows_pending === true) {
    await store.waitForRows(store.seq(), AbortSignal.timeout(10_000), 10);
  }
  await stop();
  assert.deepEqual(store.of(storedTables).row(id)?.row._unknowns_, { price: 1.5 });
  await store.close();
});

test('of two reloads at once, the later one decides', async (t) => {
  const file = { 'products.json': JSON.stringify(schema({ type: 'number' })) };
  const site = await startSite(t, { ini, files: file });
  const text = await readFile(site.iniFile, 'utf8');
  const configs = [];
  for (const index of ['', 'index = price']) {
    await writeFile(site.iniFile, text.replace('index = price', index));
    configs.push(await readTestConfig(site.iniFile));
  }
  for (const config of configs) site.waymark.reload({ ok: true, config });
  await site.untilLogged(/(?:as \[table\.products\] says[^]*){3}/);
  const { rows } = (await site.call('table.list', {})).data;
  assert.deepEqual(rows[0].index, ['price']);
});
