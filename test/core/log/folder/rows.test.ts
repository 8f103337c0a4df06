import { openData } from '../../../../src/cli/open-data.ts';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { secretRecordId } from '../../../../src/modules/webhooks/hook.ts';
import { purgeSecrets } from '../../../../src/modules/upkeep/purge.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { temporaryFolder } from '../../../folder.ts';
import { commit, scratchStore } from '../scratch.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';

/** Two rows of a table, one of which was edited, and one invalidated row. */
async function writeRows(store: Store): Promise<void> {
  const table = { name: 'lamps', schema: {}, key: 'sku', index: ['price'], search: ['title'] };
  const [insert, edit] = [
    { family: 'record', action: 'insert' },
    { family: 'record', action: 'edit' },
  ] as const;
  await commit(store, { family: 'table', id: 't', action: 'insert', data: table });
  for (const id of ['a', 'b', 'c']) {
    const headers = { authorization: 'a field of a row, not of a request' };
    const data = { table: 'lamps', sku: id, price: 5, title: 'Lamp', headers };
    await commit(store, { ...insert, id, data });
  }
  await commit(store, { ...edit, id: 'a', data: { price: 6, headers: null } });
  await commit(store, { family: 'record', id: 'c', action: 'invalidate', data: { rows: [4] } });
}

async function requireRows(store: Store): Promise<void> {
  assert.deepEqual(
    [...store.of(storedTables).rowsByIndex('lamps', { field: 'price' })].map(({ id }) => id),
    ['b', 'a'],
  );
  assert.equal(store.of(storedTables).rowByKey('lamps', 'b')?.row.id, 'b');
  assert.equal([...store.of(storedTables).searchRows('lamps', 'lamp')].length, 2);
  assert.deepEqual(store.of(storedTables).rowAt('c', 4)?.row.headers, {
    authorization: 'a field of a row, not of a request',
  });
  for await (const { differences } of store.part(upkeep).verify())
    assert.deepEqual(differences, []);
}

suite('a folder with rows of tables', () => {
  test('is backed up with them', async (t) => {
    const folder = await temporaryFolder(t);
    const store = await scratchStore(t, { folder });
    await writeRows(store);
    const target = join(folder, 'copy');
    await store.part(upkeep).backUp(target);
    await requireRows(await scratchStore(t, { folder: target }));
  });

  test('keeps them when secrets are purged', async (t) => {
    const folder = await temporaryFolder(t);
    const store = await scratchStore(t, { folder });
    await writeRows(store);
    const hook = { event: ['a.b'], url: 'https://x.example/', method: 'POST', filter: {} };
    await commit(store, { family: 'webhook', id: 'h', action: 'insert', data: hook });
    const secret = { family: 'secret', id: secretRecordId('h') } as const;
    await commit(store, { ...secret, action: 'insert', data: { secret: 'one' } });
    await commit(store, { ...secret, action: 'edit', data: { secret: 'two' } });
    await store.close();
    const parts = {
      folder,
      now: Date.now,
      newId: uuidv7,
      by: 'test',
      dryRun: false,
      openStore: openData,
    };
    const { rows } = await purgeSecrets({ ...parts, selects: () => true });
    assert.deepEqual(rows, [8]);
    await requireRows(await scratchStore(t, { folder }));
  });
});
