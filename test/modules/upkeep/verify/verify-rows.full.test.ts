import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { Draft } from '../../../../src/core/log/change.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import {
  openDatabases,
  openEnvironment,
  type Databases,
} from '../../../../src/core/log/databases.ts';
import { keyOf } from '../../../../src/core/log/encoding.ts';
import {
  indexKey,
  keyPrefix,
  rowInTable,
  rowKey,
  wordKey,
} from '../../../../src/modules/tables/log/index-key.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { temporaryFolder } from '../../../folder.ts';
import { commit, scratchStore } from '../../../core/log/scratch.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';

const definition = { schema: {}, key: 'sku', index: ['price'], search: ['title'] };

function draft(family: 'table' | 'record', action: Draft['action']) {
  return (id: string, data: JsonObject): Draft => ({ family, id, action, data });
}

const insertTable = draft('table', 'insert');
const editTable = draft('table', 'edit');
const insert = draft('record', 'insert');
const edit = draft('record', 'edit');
const invalidate = draft('record', 'invalidate');

/** Two tables, one of them gone; rows that were edited, invalidated and restored. */
async function writeSample(store: Store): Promise<void> {
  await commit(store, insertTable('t', { name: 'lamps', ...definition }));
  await commit(store, insertTable('u', { name: 'former', ...definition }));
  await commit(store, { ...insertTable('u', { rows: [2] }), action: 'invalidate' });
  const data = { table: 'lamps', sku: 'A', price: 5, title: 'A big lamp' };
  await commit(store, insert('a', data), insert('b', { ...data, sku: 'B' }));
  await commit(store, edit('a', { sku: 'C', price: 6 }));
  await commit(store, invalidate('b', { rows: [5] }));
  await commit(store, insert('c', { ...data, sku: 'D' }));
  await commit(store, invalidate('c', { rows: [8] }), invalidate('c', { rows: [9] }));
  await commit(store, editTable('t', { title: 'title' }));
}

async function verified(store: Store): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { differences } of store.part(upkeep).verify()) {
    found.push(...differences.map(({ database, what }) => `${database}: ${what}`));
  }
  return found;
}

/** Kinds of damage, each with all its findings. */
const damages: readonly (readonly [
  name: string,
  damage: (databases: Databases) => void,
  ...says: readonly string[],
])[] = [
  [
    'a changed table',
    ({ table }) => {
      table.putSync(keyOf('t'), '{"table":{"id":"t","name":"lamps"},"seq":11}');
    },
    'table: t differs from the fold of the log',
  ],
  [
    'a table that is not in the log',
    ({ table }) => {
      table.putSync(keyOf('x'), '{"table":{"id":"x","name":"x"},"seq":1}');
    },
    'table: x is not in the fold of the log',
  ],
  [
    'a name of a table that is gone',
    ({ tablename }) => {
      tablename.putSync(keyOf('former'), 'u 3 x');
    },
    'tablename: former is not in the fold of the log',
  ],
  [
    'a missing former name',
    ({ evertablename }) => evertablename.removeSync(keyOf('former'), 'u'),
    'evertablename: former: u is missing',
  ],
  [
    'a name that a table never had',
    ({ evertablename }) => {
      evertablename.putSync(keyOf('other'), 'u');
    },
    'evertablename: other: u is not in the fold of the log',
  ],
  [
    'a changed row',
    ({ row }) => {
      row.putSync(keyOf('a'), '{"row":{"id":"a","table":"lamps"},"seq":6}');
    },
    'row: a differs from the fold of the log',
  ],
  [
    'a row that is not in the log',
    ({ row }) => {
      row.putSync(keyOf('x'), '{"row":{"id":"x","table":"lamps"},"seq":6}');
    },
    'row: x is not in the fold of the log',
  ],
  [
    'a row that is missing in its table',
    ({ tablerow }) => tablerow.removeSync(rowInTable('lamps', 'a')),
    'tablerow: lamps a is missing',
  ],
  [
    'an invalidated row in its table',
    ({ tablerow }) => {
      tablerow.putSync(rowInTable('lamps', 'b'), '');
    },
    'tablerow: lamps b is not in the fold of the log',
  ],
  [
    'a former row that is missing in its table',
    ({ evertablerow }) => evertablerow.removeSync(rowInTable('lamps', 'b')),
    'evertablerow: lamps b is missing',
  ],
  [
    'a former row in another table',
    ({ evertablerow }) => {
      evertablerow.putSync(rowInTable('former', 'b'), '');
    },
    'evertablerow: former b is not in the fold of the log',
  ],
  [
    'a missing key',
    ({ rowkey }) => rowkey.removeSync(rowKey('lamps', 'C', 'a')),
    'rowkey: lamps C is missing',
  ],
  [
    'a key of an invalidated row',
    ({ rowkey }) => {
      rowkey.putSync(rowKey('lamps', 'B', 'b'), 'b');
    },
    'rowkey: lamps B is not in the fold of the log',
  ],
  [
    'a missing former key',
    ({ everrowkey }) => everrowkey.removeSync(rowKey('lamps', 'A', 'a'), 'a'),
    'everrowkey: lamps A: a is missing',
  ],
  [
    'a key that a row never had',
    ({ everrowkey }) => {
      everrowkey.putSync(rowKey('lamps', 'X', 'a'), 'a');
    },
    'everrowkey: lamps X: a is not in the fold of the log',
  ],
  [
    'a row that is missing in an index',
    ({ rowindex }) => rowindex.removeSync(indexKey('lamps', 'price', 6, 'a')),
    'rowindex: lamps price a is missing',
  ],
  [
    'a former value in an index',
    ({ rowindex }) => {
      rowindex.putSync(indexKey('lamps', 'price', 5, 'a'), '');
    },
    'rowindex: lamps price a is not in the fold of the log',
  ],
  [
    'an index of a field that has none',
    ({ rowindex }) => {
      rowindex.putSync(indexKey('lamps', 'title', 5, 'a'), '');
    },
    'rowindex: lamps title a is not in the fold of the log',
  ],
  [
    'a missing word',
    ({ rowword }) => rowword.removeSync(wordKey('lamps', 'big', 'a')),
    'rowword: lamps big a is missing',
  ],
  [
    'a word that a row does not have',
    ({ rowword }) => {
      rowword.putSync(wordKey('lamps', 'oak', 'a'), '1 3');
    },
    'rowword: lamps oak a is not in the fold of the log',
  ],
  [
    'a wrong count of words',
    ({ tablecount }) => {
      tablecount.putSync(keyOf('lamps'), '{"rows":2,"words":7}');
    },
    'tablecount: lamps differs from the fold of the log: {"rows":2,"words":7}, not {"rows":2,"words":6}',
  ],
  [
    'a missing count',
    ({ tablecount }) => tablecount.removeSync(keyOf('lamps')),
    'tablecount: lamps is missing',
  ],
  [
    'a damaged state of an index',
    ({ indexbuild }) => {
      indexbuild.putSync(keyPrefix('lamps', 'title'), '{"index":"x"}');
    },
    'indexbuild: lamps title is not the state of an index',
  ],
];

suite('verifying tables and rows', () => {
  test('finds nothing if all data agrees with the log', async (t) => {
    const store = await scratchStore(t);
    await writeSample(store);
    assert.deepEqual(await verified(store), []);
  });

  for (const [name, damage, ...says] of damages) {
    test(`finds ${name}`, async (t) => {
      const folder = await temporaryFolder(t);
      const store = await scratchStore(t, { folder });
      await writeSample(store);
      await store.close();
      const environment = openEnvironment(folder);
      environment.transactionSync(() => {
        damage(openDatabases(environment));
      });
      await environment.close();
      const found = await verified(await scratchStore(t, { folder }));
      assert.deepEqual(found, says);
    });
  }
});

const step = fc.record({
  id: fc.constantFrom('a', 'b', 'c'),
  sku: fc.constantFrom(1, 2, 'x', null),
  price: fc.constantFrom(1, 'x', true, null, 'y'.repeat(500)),
  title: fc.constantFrom('a lamp', 'a big, big lamp', ''),
  rows: fc.option(fc.subarray([1, 2, 3, 4, 5, 6, 7, 8]), { nil: undefined, freq: 3 }),
});

test('verifying finds nothing after random changes of rows and undos', async (t) => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
    const store = await scratchStore(t);
    await commit(store, insertTable('t', { name: 'lamps', ...definition }));
    for (const { id, rows, ...fields } of steps) {
      const own = store.rows('record', id).map(({ seq }) => seq);
      const named = own.filter((_, index) => rows?.includes(index + 1));
      const change =
        rows !== undefined && own.length > 0
          ? invalidate(id, { rows: named })
          : store.of(storedTables).row(id) === undefined
            ? insert(id, { table: 'lamps', ...fields })
            : edit(id, fields);
      if (change.action === 'insert' && own.length > 0) continue;
      await commit(store, change).catch((error: unknown) => {
        assert.ok(error instanceof Failure && error.code === 'conflict', String(error));
      });
    }
    assert.deepEqual(await verified(store), []);
    await store.close();
  });
  await fc.assert(property, { numRuns: 60 });
});
