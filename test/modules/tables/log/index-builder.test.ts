import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../../src/core/report/log.ts';
import { indexBuilding } from '../../../../src/modules/tables/log/index-build.ts';
import { testTasks } from '../../../core/background/test-tasks.ts';
import { commit, scratchStore } from '../../../core/log/scratch.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';

test('a running server builds the indexes that a change of a table needs', async (t) => {
  const store = await scratchStore(t);
  const table = { family: 'table', id: 't' } as const;
  await commit(
    store,
    { ...table, action: 'insert', data: { name: 'lamps', schema: {} } },
    { family: 'record', id: 'a', action: 'insert', data: { table: 'lamps', price: 5 } },
  );
  const built = Promise.withResolvers<string>();
  const log = {
    ...silentLog,
    info: (_fields: object, message: string) => {
      if (message.startsWith('Built')) built.resolve(message);
    },
  };
  const { stop } = testTasks().start(indexBuilding({ store, log }));
  await commit(store, { ...table, action: 'edit', data: { index: ['price'] } });
  assert.equal(await built.promise, 'Built the index price of lamps.');
  await stop();
  assert.deepEqual(store.of(storedTables).indexBuilds(), []);
  assert.deepEqual(
    [...store.of(storedTables).rowsByIndex('lamps', { field: 'price' })].map(({ id }) => id),
    ['a'],
  );
});
