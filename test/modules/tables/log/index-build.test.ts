import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Draft } from '../../../../src/core/log/change.ts';
import { openDatabases, openEnvironment } from '../../../../src/core/log/databases.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import { indexBuilder, indexBuildRowsMax } from '../../../../src/modules/tables/log/index-build.ts';
import { commit, scratchStore } from '../../../core/log/scratch.ts';
import { temporaryFolder } from '../../../folder.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';

const rowsMade = indexBuildRowsMax * 2 + 10;

function table(action: Draft['action'], data: JsonObject): Draft {
  return { family: 'table', id: 't', action, data };
}

function row(action: Draft['action'], number: number, data: JsonObject): Draft {
  return { family: 'record', id: idOf(number), action, data };
}

function idOf(number: number): string {
  return `r${String(number).padStart(6, '0')}`;
}

/** A table without indexes and its rows, which have odd numbers. */
async function filledStore(store: Store): Promise<void> {
  await commit(store, table('insert', { name: 'lamps', schema: {} }));
  const rows = Array.from({ length: rowsMade }, (_, at) =>
    row('insert', 2 * at + 1, { table: 'lamps', price: at % 10, title: `Lamp ${at}` }),
  );
  await commit(store, ...rows);
}

/** Builds one piece, or all. */
async function build(store: Store, pieces = Infinity): Promise<void> {
  const stop = new AbortController();
  let left = pieces;
  await store.part(indexBuilder).build(stop.signal, () => {
    left -= 1;
    if (left === 0) stop.abort();
  });
}

async function findings(store: Store): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { differences } of store.part(upkeep).verify()) {
    found.push(...differences.map(({ what }) => what));
  }
  return found;
}

function countOf(store: Store, price: number): number {
  const end = { value: price, inclusive: true };
  return store
    .of(storedTables)
    .countByIndex('lamps', { field: 'price', from: end, to: end }, 100_000);
}

function foundBy(store: Store, text: string): readonly string[] {
  return [...store.of(storedTables).searchRows('lamps', text)].flatMap(({ id }) => id ?? []);
}

suite('building indexes', { timeout: 360_000 }, () => {
  test('a table with rows gets an index in pieces, which writes maintain', async (t) => {
    const folder = await temporaryFolder(t);
    const first = await scratchStore(t, { folder });
    await filledStore(first);
    await commit(first, table('edit', { index: ['price'], search: ['title'] }));
    assert.deepEqual(
      first
        .of(storedTables)
        .indexBuilds('lamps')
        .map(({ index, phase, done, of }) => [index, phase, done, of]),
      [
        ['', 'empty', 0, rowsMade],
        ['price', 'empty', 0, rowsMade],
      ],
    );
    assert.deepEqual(await findings(first), []);
    await build(first, 2);
    const [words] = first.of(storedTables).indexBuilds();
    assert.equal(words?.done, indexBuildRowsMax);
    assert.deepEqual(await findings(first), []);
    // Rows before the position of the build and after it.
    const last = 2 * rowsMade - 1;
    await commit(first, row('edit', 1, { title: 'Chair', price: 77 }));
    await commit(first, row('edit', last, { title: 'Chair', price: 77 }));
    await commit(first, row('insert', 2, { table: 'lamps', title: 'Chair', price: 77 }));
    await commit(first, row('insert', last + 1, { table: 'lamps', title: 'Chair', price: 77 }));
    await commit(first, row('invalidate', 3, { rows: [3] }));
    await commit(first, row('invalidate', last - 2, { rows: [rowsMade] }));
    assert.deepEqual(await findings(first), []);
    await first.close();

    const second = await scratchStore(t, { folder });
    await build(second);
    assert.deepEqual(second.of(storedTables).indexBuilds(), []);
    assert.deepEqual(await findings(second), []);
    assert.equal(countOf(second, 77), 4);
    assert.equal(foundBy(second, 'chair').length, 4);
  });

  test('an index that the table no longer has is emptied', async (t) => {
    const store = await scratchStore(t);
    await filledStore(store);
    await commit(store, table('edit', { index: ['price'], search: ['title'] }));
    await build(store, 3);
    await commit(store, table('edit', { index: null, search: null }));
    assert.deepEqual(await findings(store), []);
    await build(store);
    assert.deepEqual(await findings(store), []);
    assert.deepEqual(store.of(storedTables).tableCounts('lamps'), { rows: rowsMade, words: 0 });
    // It gets the index again while the old one is being emptied.
    await commit(store, table('edit', { index: ['price'] }));
    await build(store);
    await commit(store, table('edit', { index: null }));
    await build(store, 1);
    await commit(store, table('edit', { index: ['price'] }));
    await commit(store, row('edit', 1, { price: 77 }));
    await build(store);
    assert.deepEqual(await findings(store), []);
    assert.equal(countOf(store, 77), 1);
  });

  test('two processes build the same index together', async (t) => {
    const folder = await temporaryFolder(t);
    const [one, other] = [
      await scratchStore(t, { folder }),
      await scratchStore(t, { folder }),
    ] as const;
    await filledStore(one);
    await commit(one, table('edit', { index: ['price'], search: ['title'] }));
    other.refresh();
    await Promise.all([build(one), build(other)]);
    assert.deepEqual(await findings(one), []);
    assert.equal(foundBy(one, 'lamp 12').length, 111, '12, 120 to 129, 1200 to 1299');
  });

  test('words are indexed again after an update of ICU', async (t) => {
    const folder = await temporaryFolder(t);
    const before = await scratchStore(t, { folder });
    await commit(before, table('insert', { name: 'lamps', schema: {}, search: ['title'] }));
    await commit(before, row('insert', 1, { table: 'lamps', title: 'Lamp' }));
    await before.close();
    const environment = openEnvironment(folder);
    environment.transactionSync(() => {
      openDatabases(environment).meta.putSync('words', 'older rules');
    });
    await environment.close();
    const store = await scratchStore(t, { folder });
    assert.equal(store.of(storedTables).indexBuilds('lamps').length, 1);
    await build(store);
    assert.deepEqual(foundBy(store, 'lamp'), [idOf(1)]);
    assert.deepEqual(await findings(store), []);
    await store.close();
    assert.deepEqual((await scratchStore(t, { folder })).of(storedTables).indexBuilds(), []);
  });
});
