import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Reads, Store } from '../../../../src/core/log/store.ts';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import { compileTable } from '../../../../src/modules/tables/compiled-table.ts';
import type { Row } from '../../../../src/modules/tables/row.ts';
import type { RowTable } from '../../../../src/modules/tables/rows/compiled-tables.ts';
import { sortedRowsMax } from '../../../../src/modules/tables/rows/index-walk.ts';
import { selectRows } from '../../../../src/modules/tables/rows/row-list.ts';
import { commit, scratchStore } from '../../../core/log/scratch.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';
import { withReads } from '../../../../src/core/log/reads.ts';
import type { TableReads } from '../../../../src/modules/tables/log/reads.ts';

const definition = {
  id: 't',
  name: 'lamps',
  key: 'sku',
  index: ['shop', 'price'],
  schema: {
    properties: {
      sku: { type: 'string' },
      shop: { type: 'string' },
      price: { type: ['number', 'null'] },
    },
  },
};
const table: RowTable = {
  ...compileTable(definition),
  ...{ stored: undefined as never, hidden: new Set<string>() },
};
const rows = 4_000;

/** Lamp number `at`: nine in ten are in the shop `big`, and prices repeat. */
function lampAt(at: number): JsonObject {
  const shop = at % 10 === 0 ? `small-${at % 400}` : 'big';
  return { sku: `S${at}`, shop, ...(at % 7 !== 0 && { price: (at * 7_919) % 500 }) };
}

/** The store, counting the rows that are read. */
function counting(store: Store): { readonly reads: Reads; readonly count: () => number } {
  let count = 0;
  const rowStep: TableReads['rowStep'] = (id) => {
    count += 1;
    return store.of(storedTables).rowStep(id);
  };
  const of = withReads(store, storedTables, { rowStep });
  return { reads: { ...store, of }, count: () => count };
}

interface Selected {
  readonly where?: JsonObject;
  readonly sort?: string;
}

function* listed(reads: Reads, { where = {}, sort }: Selected, cursor = '') {
  const filters = { where, ...(sort !== undefined && { sort }) };
  const access = { isVisible: () => true, seesAll: true };
  const steps = selectRows({ filters, seq: undefined }, table, reads, access).stepsAfter(cursor);
  for (const step of steps) {
    if (step.stored !== undefined) yield { row: step.stored.record, cursor: step.cursor ?? '' };
  }
}

test('a list with where and sort', async (t) => {
  const store = await scratchStore(t);
  const { id, ...data } = definition;
  await commit(store, { family: 'table', id, action: 'insert', data });
  const drafts = Array.from({ length: rows }, (_, at) => {
    const data = { table: 'lamps', ...lampAt(at) };
    return { family: 'record', id: `r${at}`, action: 'insert', data } as const;
  });
  await commit(store, ...drafts);

  await t.test('reads only the rows of a condition that few rows meet', () => {
    for (const sort of ['price', '-price', 'sku']) {
      const { reads, count } = counting(store);
      const found = [...listed(reads, { where: { shop: 'small-40' }, sort })];
      assert.equal(found.length, 10);
      assert.equal(count(), 10, sort);
    }
    const { reads, count } = counting(store);
    assert.deepEqual([...listed(reads, { where: { shop: 'none' }, sort: 'price' })], []);
    assert.equal(count(), 0);
  });

  await t.test('reads rows in their order if each condition has many', () => {
    for (const where of [{ shop: 'big' }, { shop: 'big', price: { '>=': 490 } }]) {
      const { reads, count } = counting(store);
      const [first] = listed(reads, { where, sort: '-price' });
      assert.equal(first?.row.price, 499);
      assert.ok(count() < sortedRowsMax / 10, `${count()} rows`);
    }
  });

  await t.test('has the same rows in the same order and pages, whichever way it reads them', () => {
    const shops = fc.constantFrom(
      'big',
      'none',
      ...Array.from({ length: 5 }, (_, n) => `small-${n}0`),
    );
    const prices = fc.oneof(
      fc.integer({ min: 0, max: 500 }).map((price) => ({ '>=': price })),
      fc.integer({ min: 0, max: 500 }).map((price) => ({ '<': price })),
      fc
        .array(fc.integer({ min: 0, max: 20 }), { maxLength: 9 })
        .map((all) => ({ in: [7, ...all] })),
      fc.constant(null),
    );
    const where = fc.record({ shop: shops, price: prices }, { requiredKeys: [] });
    const sort = fc.constantFrom('price', '-price', 'shop', '-shop', 'sku', '-sku');
    fc.assert(
      fc.property(where, sort, fc.integer({ min: 0, max: 60 }), (where, sort, skipped) => {
        const all = [...listed(store, { where, sort })];
        // The index of the order alone, without conditions.
        const expected = [...listed(store, { sort })].filter(({ row }) => meets(row, where));
        assert.deepEqual(
          all.map(({ row }) => row.id),
          expected.map(({ row }) => row.id),
        );
        const last = all[Math.min(skipped, all.length - 1)];
        if (last === undefined) return;
        const rest = [...listed(store, { where, sort }, last.cursor)];
        assert.deepEqual(rest, all.slice(all.indexOf(last) + 1));
      }),
      { numRuns: 30 },
    );
  });
});

function meets(row: Row, where: JsonObject): boolean {
  const { shop, price } = where as { shop?: string; price?: JsonObject | null };
  if (shop !== undefined && row.shop !== shop) return false;
  if (price === undefined) return true;
  if (price === null) return row.price === undefined;
  if (typeof row.price !== 'number') return false;
  if (Array.isArray(price.in)) return price.in.includes(row.price);
  return price['>='] === undefined
    ? row.price < Number(price['<'])
    : row.price >= Number(price['>=']);
}
