import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { rowsCheckedAtOnce } from '../../src/modules/tables/operations/row-checks.ts';
import { openIn } from '../core/log/scratch.ts';
import { openSocket, postOperation } from '../harness.ts';
import { type Served, runWaymark, serverFolder, startServed } from '../process.ts';
import { storedTables } from '../../src/modules/tables/log/family.ts';

const table = 'products';
const rowCount = 10_000;
const rowsAtOnce = 5_000;
const sku = { type: 'string' };
const before = { sku, price: { type: 'number' }, colour: { type: 'string' } };
const after = { sku, cost: { type: 'number', 'x-renamed-from': 'price' } };

test('rows that a kill interrupts while they move to a new schema all move after a restart', async (t) => {
  const { folder, iniFile } = await serverFolder(t, '');
  const first = await startServed(t, iniFile);
  const { adminKey } = first;
  const id = await fill(first);
  await killAfterFirstMove(t, first, { id, schema: { type: 'object', properties: after } });

  await assertSound(iniFile);
  const moved = await movedRows(join(folder, 'data'));
  assert.ok(moved > 0 && moved < rowCount, `${moved} rows were moved before the kill`);
  assert.equal(moved % rowsCheckedAtOnce, 0, 'each transaction is there as a whole');

  const second = await startServed(t, iniFile, { first: false });
  while (!second.out().includes('Checked the rows'))
    await once(second.child.stdout ?? second.child, 'data');
  const { data } = await postOperation(second.url, 'svc1.table.read', { id }, { apikey: adminKey });
  assert.equal(data.rows_pending, undefined);
  second.child.kill('SIGTERM');
  await second.closed;
  assert.equal(await movedRows(join(folder, 'data')), rowCount);
  await assertSound(iniFile);
});

/** Makes the table and its rows; resolves to the id of the table. */
async function fill({ url, adminKey: apikey }: Served): Promise<string> {
  const definition = { name: table, schema: { type: 'object', properties: before }, key: 'sku' };
  const made = await postOperation(url, 'svc1.table.insert', definition, { apikey });
  for (let from = 0; from < rowCount; from += rowsAtOnce) {
    const lines = Array.from({ length: rowsAtOnce }, (_, at) => {
      const v = { table, sku: `S${from + at}`, price: from + at, colour: 'red' };
      return JSON.stringify({ a: 'svc1.record.insert', v });
    });
    const v = { ndjson: lines.join('\n') };
    const { data } = await postOperation(url, 'svc1.userinterface.import', v, { apikey });
    assert.equal(data.imported, rowsAtOnce);
  }
  return made.data.id as string;
}

/** Changes the schema, and kills the server when it has moved the first rows. */
async function killAfterFirstMove(t: TestContext, served: Served, v: object): Promise<void> {
  const { url, adminKey: apikey } = served;
  const socket = await openSocket(t, `${url.replace('http', 'ws')}/svc1/ws`, apikey);
  const killed = new Promise<void>((resolve) => {
    socket.websocket.on('message', (bytes: Buffer) => {
      if (!bytes.toString().includes('svc1.record.change')) return;
      served.child.kill('SIGKILL');
      resolve();
    });
    socket.websocket.on('error', () => undefined);
  });
  await socket.call('svc1.record.subscribe', { table });
  const report = await postOperation(url, 'svc1.table.edit', v, { apikey });
  const { digest: confirm } = report.data as { readonly digest?: string };
  if (confirm !== undefined) {
    await postOperation(url, 'svc1.table.edit', { ...v, confirm }, { apikey });
  }
  await killed;
  await served.closed;
}

/** Counts the rows that have moved; asserts that each row is wholly the old or the new one. */
async function movedRows(data: string): Promise<number> {
  const store = await openIn(data);
  try {
    let [moved, all] = [0, 0];
    for (const { stored } of store.of(storedTables).rowsAfter(table, '')) {
      assert.ok(stored);
      const { id, table: _table, ...row } = stored.row;
      const number = Number((row.sku as string).slice(1));
      const isMoved = 'cost' in row;
      const waiting = { _unknowns_: { colour: 'red' } };
      const value = isMoved ? { cost: number, ...waiting } : { price: number, colour: 'red' };
      assert.deepEqual(row, { sku: `S${number}`, ...value }, id);
      if (isMoved) moved += 1;
      all += 1;
    }
    assert.equal(all, rowCount);
    return moved;
  } finally {
    await store.close();
  }
}

async function assertSound(iniFile: string): Promise<void> {
  const { code, err, out } = await runWaymark(['check', '--data', '--config', iniFile]);
  assert.equal(code, 0, out + err);
}
