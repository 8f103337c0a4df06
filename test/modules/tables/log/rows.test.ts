import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { Draft } from '../../../../src/core/log/change.ts';
import type { Json, JsonObject } from '../../../../src/core/values/json/json.ts';
import { scalarOf, type Scalar } from '../../../../src/modules/tables/row.ts';
import { isExactNumber, numberOf } from '../../../../src/core/values/json/exact-number.ts';
import { orderedValue, orderedValueEnd } from '../../../../src/modules/tables/log/index-key.ts';
import { compareScalars } from '../../../../src/modules/tables/row.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import type { IndexRange, IndexStep } from '../../../../src/modules/tables/log/reads.ts';
import { commit, scratchStore } from '../../../core/log/scratch.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';

const products: Draft = {
  family: 'table',
  id: 't',
  action: 'insert',
  data: { name: 'products', schema: {}, key: 'sku', index: ['price', 'shop'], search: ['title'] },
};

function row(id: string, fields: JsonObject): Draft {
  return { family: 'record', id, action: 'insert', data: { table: 'products', ...fields } };
}

function edit(id: string, data: JsonObject): Draft {
  return { family: 'record', id, action: 'edit', data };
}

async function invalidate(store: Store, family: 'table' | 'record', id: string): Promise<void> {
  const seqs = store.rows(family, id).map(({ seq }) => seq);
  await commit(store, { family, id, action: 'invalidate', data: { rows: seqs } });
}

function idsIn(store: Store, range: IndexRange): readonly string[] {
  return [...store.of(storedTables).rowsByIndex('products', range)].map(({ id }) => id);
}

function found(store: Store, text: string): readonly string[] {
  return [...store.of(storedTables).searchRows('products', text)].flatMap(({ id }) => id ?? []);
}

suite('tables', () => {
  test('a table is found by its name and by its id, now and in the past', async (t) => {
    const store = await scratchStore(t);
    await commit(store, products);
    await commit(store, { family: 'table', id: 't', action: 'edit', data: { title: 'sku' } });
    assert.equal(store.of(storedTables).table('products')?.table.title, 'sku');
    assert.equal(store.of(storedTables).tableById('t')?.seq, 2);
    assert.equal(store.of(storedTables).tableAt('t', 1)?.table.title, undefined);
    assert.equal(store.of(storedTables).tableNamedAt('products', 1)?.seq, 1);
    assert.equal(store.of(storedTables).tableNamedAt('products', 0), undefined);
    assert.deepEqual(
      [...store.of(storedTables).tablesAfter('')].map(({ table }) => table.name),
      ['products'],
    );
  });

  test('a name has one table at a time', async (t) => {
    const store = await scratchStore(t);
    await commit(store, products);
    const again = { ...products, id: 'u' };
    await assert.rejects(commit(store, again), { code: 'conflict', field: 'name' });
    await invalidate(store, 'table', 't');
    assert.equal(store.of(storedTables).table('products'), undefined);
    await commit(store, again);
    assert.equal(store.of(storedTables).table('products')?.table.id, 'u');
    assert.equal(store.of(storedTables).tableNamedAt('products', 1)?.table.id, 't');
    const restored = { family: 'table', id: 't', action: 'invalidate' } as const;
    await assert.rejects(commit(store, { ...restored, data: { rows: [2] } }), { code: 'conflict' });
  });

  test('a table with rows stays, and so does its key', async (t) => {
    const store = await scratchStore(t);
    await commit(store, products, row('a', { sku: 'A' }));
    await assert.rejects(invalidate(store, 'table', 't'), {
      code: 'conflict',
      message: 'The table products has 1 row. Invalidate them first.',
    });
    const key = { family: 'table', id: 't', action: 'edit', data: { key: 'shop' } } as const;
    await assert.rejects(commit(store, key), { code: 'conflict', field: 'key' });
    await invalidate(store, 'record', 'a');
    await commit(store, key);
    await invalidate(store, 'table', 't');
    await assert.rejects(commit(store, row('b', {})), { code: 'conflict', field: 'table' });
    const restored = { family: 'record', id: 'a', action: 'invalidate' } as const;
    await assert.rejects(commit(store, { ...restored, data: { rows: [3] } }), { code: 'conflict' });
  });
});

suite('rows', () => {
  test('a row is found by its id and by its key, now and in the past', async (t) => {
    const store = await scratchStore(t);
    await commit(store, products, row('a', { sku: 'A', price: 1 }));
    await commit(store, edit('a', { sku: 'B' }));
    await commit(store, row('b', { sku: 'A' }));
    assert.equal(store.of(storedTables).rowByKey('products', 'A')?.row.id, 'b');
    assert.equal(store.of(storedTables).rowByKey('products', 'B')?.row.id, 'a');
    assert.equal(store.of(storedTables).rowByKey('products', 'C'), undefined);
    assert.equal(store.of(storedTables).rowByKeyAt('products', 'A', 2)?.row.id, 'a');
    assert.equal(store.of(storedTables).rowByKeyAt('products', 'A', 3), undefined);
    assert.equal(store.of(storedTables).rowByKeyAt('products', 'B', 3)?.row.id, 'a');
    assert.deepEqual(store.of(storedTables).rowAt('a', 2)?.row, {
      id: 'a',
      table: 'products',
      sku: 'A',
      price: 1,
    });
    assert.deepEqual(store.of(storedTables).tableCounts('products'), { rows: 2, words: 0 });
  });

  test('two rows never have the same key', async (t) => {
    const store = await scratchStore(t);
    await commit(store, products, row('a', { sku: 'A' }));
    await assert.rejects(commit(store, row('b', { sku: 'A' })), {
      code: 'conflict',
      field: 'sku',
      message: 'The table products has a row with sku = "A" already (a).',
    });
    await assert.rejects(commit(store, row('b', { sku: 'B' }), row('c', { sku: 'B' })));
    // One decision may give the key of one row to another.
    await commit(store, edit('a', { sku: 'B' }), row('b', { sku: 'A' }));
    await invalidate(store, 'record', 'b');
    await commit(store, row('c', { sku: 'A' }));
    const restored = { family: 'record', id: 'b', action: 'invalidate' } as const;
    const newest = store.rows('record', 'b').at(-1)?.seq ?? 0;
    await assert.rejects(commit(store, { ...restored, data: { rows: [newest] } }), {
      code: 'conflict',
      field: 'sku',
    });
    await commit(store, row('d', {}), row('e', {}));
    assert.equal(store.of(storedTables).tableCounts('products').rows, 4, 'rows without a key');
  });

  test('decisions of one transaction, refused ones among them, count and index rows', async (t) => {
    const store = await scratchStore(t);
    await commit(store, products, row('a', { sku: 'A', price: 1 }));
    const index = { index: ['price', 'shop', 'size'] };
    const results = await Promise.allSettled([
      commit(store, row('b', { sku: 'B', price: 2 })),
      commit(store, row('c', { sku: 'C' }), row('d', { sku: 'A' })),
      commit(store, row('e', { sku: 'E', price: 3 })),
      commit(store, { family: 'table', id: 't', action: 'edit', data: index }),
      commit(store, row('f', { sku: 'F', price: 4, size: 5 })),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled'],
    );
    assert.equal(store.seq(), 6);
    assert.equal(store.of(storedTables).tableCounts('products').rows, 4);
    assert.deepEqual(idsIn(store, { field: 'price' }), ['a', 'b', 'e', 'f']);
    for await (const { differences } of store.part(upkeep).verify())
      assert.deepEqual(differences, []);
    assert.equal(store.of(storedTables).indexBuild('products', 'size')?.phase, 'empty');
  });

  test('one decision inserts rows, changes one of them, and inserts further ones', async (t) => {
    const store = await scratchStore(t);
    await commit(
      store,
      ...[products, row('a', { sku: 'A', price: 1 }), row('b', { sku: 'B', price: 2 })],
      edit('a', { sku: 'C', price: 3 }),
      ...[row('c', { sku: 'A', price: 1 }), row('d', { price: 4 })],
    );
    const keys = ['A', 'B', 'C'].map(
      (sku) => store.of(storedTables).rowByKey('products', sku)?.row.id,
    );
    assert.deepEqual(keys, ['c', 'b', 'a']);
    assert.deepEqual(idsIn(store, { field: 'price' }), ['c', 'b', 'a', 'd']);
    assert.equal(store.of(storedTables).row('a')?.row.price, 3);
    for await (const { differences } of store.part(upkeep).verify())
      assert.deepEqual(differences, []);
  });

  test('a table has its rows in the order of their ids, now and in the past', async (t) => {
    const store = await scratchStore(t);
    const letters = { ...products, id: 'l', data: { name: 'products-old', schema: {} } };
    await commit(store, products, letters);
    await commit(store, row('b', { sku: 1 }), row('a', { sku: 2 }), row('c', { sku: 3 }));
    await commit(store, { ...row('d', {}), data: { table: 'products-old' } });
    await invalidate(store, 'record', 'b');
    const ids = (steps: Iterable<{ readonly id: string; readonly stored: unknown }>) =>
      [...steps].flatMap(({ id, stored }) => (stored === undefined ? [] : id));
    assert.deepEqual(ids(store.of(storedTables).rowsAfter('products', '')), ['a', 'c']);
    assert.deepEqual(ids(store.of(storedTables).rowsAfter('products', 'a')), ['c']);
    assert.deepEqual(ids(store.of(storedTables).rowsAt('products', '', 5)), ['a', 'b', 'c']);
    assert.deepEqual(ids(store.of(storedTables).rowsAt('products', '', 3)), ['b']);
  });
});

function placesOf(steps: readonly IndexStep[]): readonly (readonly [string, string])[] {
  return steps.map(({ id, cursor }) => [id, cursor]);
}

const value: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom(null, true, false, 0, -1, 1.5, 'a', 'ab', 'a\0', 'b', '', '\u{1f600}', '\uffff'),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  // Whole numbers beyond 2⁵³, and others that no double holds.
  fc.bigInt().map((one) => numberOf(String(one)) ?? null),
  fc.tuple(fc.bigInt(), fc.integer({ min: -400, max: 400 })).map(([digits, power]) => {
    return numberOf(`${digits}e${power}`) ?? null;
  }),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.string({ maxLength: 4 }).map((end) => 'x'.repeat(398) + end),
);

suite('indexes', () => {
  test('the bytes of values sort as the values', () => {
    const whole = value.map(scalarOf).filter((one) => JSON.stringify(one).length < 500);
    fc.assert(
      fc.property(whole, whole, (one, other) => {
        const bytes = Buffer.compare(orderedValue(one), orderedValue(other));
        assert.equal(Math.sign(bytes), Math.sign(compareScalars(one, other)));
        if (isExactNumber(one))
          assert.equal(orderedValueEnd(orderedValue(one)), orderedValue(one).length);
        if (typeof one === 'number' && typeof other === 'number') {
          // Of -0 and 0, the difference may be -0.
          assert.equal(bytes, Math.sign(one - other) + 0);
        }
      }),
    );
  });

  test('a range has the rows whose values are in it, in their order', async (t) => {
    const store = await scratchStore(t);
    await commit(store, products);
    let count = 0;
    const end = fc.option(fc.record({ value, inclusive: fc.boolean() }), { nil: undefined });
    const ranges = fc.record({ from: end, to: end, descending: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(
        fc.array(value, { maxLength: 12 }),
        fc.array(ranges),
        async (values, all) => {
          const ids = values.map(() => `r${(count += 1).toString().padStart(6, '0')}`);
          await commit(store, ...ids.map((id, at) => row(id, { price: values[at] ?? null })));
          for (const { from, to, descending } of all) {
            const range = {
              ...{ field: 'price', descending },
              from: from && { ...from, value: scalarOf(from.value) },
              to: to && { ...to, value: scalarOf(to.value) },
            };
            const scanned = [...store.of(storedTables).rowsByIndex('products', range)];
            const expected = ids.filter((_, at) => isIn(scalarOf(values[at]), range));
            const rows = ids.flatMap((id) => store.of(storedTables).row(id)?.row ?? []);
            assert.deepEqual(
              placesOf(store.of(storedTables).placesInIndex('products', range, rows)),
              placesOf(scanned),
            );
            assert.deepEqual(scanned.map(({ id }) => id).sort(), expected);
            assert.ok(
              store.of(storedTables).countByIndex('products', range, 100) >= expected.length,
            );
            const shown = scanned.map(({ id }) =>
              scalarOf(store.of(storedTables).row(id)?.row.price),
            );
            assertSorted(descending ? shown.toReversed() : shown);
            const [first] = scanned;
            if (first !== undefined) {
              const rest = idsIn(store, { ...range, after: first.cursor });
              assert.deepEqual(
                rest,
                scanned.slice(1).map(({ id }) => id),
              );
              const later = { ...range, after: first.cursor };
              const places = placesOf(
                store.of(storedTables).placesInIndex('products', later, rows),
              );
              assert.deepEqual(places, placesOf(scanned.slice(1)));
            }
          }
          for (const id of ids) await invalidate(store, 'record', id);
          assert.deepEqual(idsIn(store, { field: 'price' }), []);
        },
      ),
      { numRuns: 40 },
    );
  });

  test('a row without a value has null, and the key is an index', async (t) => {
    const store = await scratchStore(t);
    await commit(store, products, row('a', { sku: 'b', price: 2 }), row('b', { sku: 'a' }));
    await commit(store, row('c', { shop: [1] }));
    assert.deepEqual(idsIn(store, { field: 'price' }), ['b', 'c', 'a']);
    assert.deepEqual(idsIn(store, { field: 'sku' }), ['c', 'b', 'a']);
    assert.deepEqual(idsIn(store, { field: 'sku', descending: true }), ['a', 'b', 'c']);
    const [, second] = [...store.of(storedTables).rowsByIndex('products', { field: 'sku' })];
    assert.deepEqual(idsIn(store, { field: 'sku', after: second?.cursor }), ['a']);
    assert.deepEqual(idsIn(store, { field: 'title' }), []);
    await commit(store, edit('b', { price: 3 }));
    assert.deepEqual(idsIn(store, { field: 'price' }), ['c', 'a', 'b']);
    for (const after of ['', '!', 'AA=', 'A'.repeat(4_000)]) {
      assert.throws(() => idsIn(store, { field: 'price', after }), { field: 'after' });
    }
  });

  test('a prefix selects the strings that begin with it', async (t) => {
    const store = await scratchStore(t);
    const long = 'x'.repeat(400);
    await commit(store, products);
    const values = ['la', 'lamp', 'lamps', 'lan', 'Lamp', `${long}a`, `${long}b`, 5];
    await commit(store, ...values.map((price, at) => row(`r${at}`, { price })));
    assert.deepEqual(idsIn(store, { field: 'price', prefix: 'lamp' }), ['r1', 'r2']);
    assert.deepEqual(idsIn(store, { field: 'price', prefix: `${long}b` }), ['r6']);
    assert.equal(idsIn(store, { field: 'price', prefix: '' }).length, 7);
  });
});

suite('search', () => {
  test('finds the rows that have all words, the most relevant first', async (t) => {
    const store = await scratchStore(t);
    await commit(store, products);
    const titles = [
      'A lamp for the table',
      'Lamp, lamp, LAMP',
      'Table of oak',
      'Größe 5: a Café table for a lamp with a very long description of what it is',
    ];
    await commit(store, ...titles.map((title, at) => row(`r${at}`, { title })));
    assert.deepEqual(found(store, 'lamp'), ['r1', 'r0', 'r3']);
    assert.deepEqual(found(store, 'table lamp'), ['r0', 'r3']);
    assert.deepEqual(found(store, 'café lam'), ['r3']);
    assert.deepEqual(found(store, 'GRÖSSE'), [], 'ß stays ß');
    assert.deepEqual(found(store, 'gröss'), []);
    assert.deepEqual(found(store, 'Größ'), ['r3'], 'the last word may be incomplete');
    assert.deepEqual(found(store, 'lam table'), [], 'only the last one');
    assert.deepEqual(found(store, ' , '), []);
    await commit(store, edit('r1', { title: 'A chair' }));
    assert.deepEqual(found(store, 'lamp'), ['r0', 'r3']);
    await invalidate(store, 'record', 'r0');
    assert.deepEqual(found(store, 'lamp'), ['r3']);
    assert.deepEqual(found(store, 'chair'), ['r1']);
  });

  test('goes on after a cursor', async (t) => {
    const store = await scratchStore(t);
    await commit(store, products);
    const ids = Array.from({ length: 30 }, (_, at) => `r${at}`);
    const title = (at: number) => `lamp ${'big '.repeat(at % 4)}`;
    await commit(store, ...ids.map((id, at) => row(id, { title: title(at) })));
    const all = [...store.of(storedTables).searchRows('products', 'la')].filter(
      ({ id }) => id !== undefined,
    );
    assert.equal(all.length, 30);
    for (const [at, { cursor }] of all.entries()) {
      const rest = [...store.of(storedTables).searchRows('products', 'la', { after: cursor })];
      assert.deepEqual(rest, all.slice(at + 1));
    }
    assert.throws(() => [...store.of(storedTables).searchRows('products', 'la', { after: 'x' })], {
      field: 'after',
    });
  });
});

function isIn(one: Scalar, { from, to }: IndexRange): boolean {
  const types = [from, to].flatMap((bound) => (bound === undefined ? [] : [typeOf(bound.value)]));
  if (types.length === 1 && types[0] !== typeOf(one)) return false;
  const [above, below] = [from, to].map((bound) => bound && compareScalars(one, bound.value));
  if (above !== undefined && above < (from?.inclusive === true ? 0 : 1)) return false;
  return below === undefined || below <= (to?.inclusive === true ? 0 : -1);
}

function typeOf(one: Scalar): string {
  if (isExactNumber(one)) return 'number';
  return typeof one === 'boolean' ? String(one) : one === null ? 'null' : typeof one;
}

/** Asserts an order in which long strings count with their first bytes. */
function assertSorted(values: readonly Scalar[]): void {
  for (const [at, one] of values.slice(1).entries()) {
    const [before, after] = [values[at] ?? null, one].map((each) =>
      typeof each === 'string' ? Buffer.from(each).subarray(0, 400) : each,
    );
    const order =
      Buffer.isBuffer(before) && Buffer.isBuffer(after)
        ? Buffer.compare(before, after)
        : compareScalars(values[at] ?? null, one);
    assert.ok(order <= 0);
  }
}

test('page rules of the past are found among rows, whose changes are not read', async (t) => {
  const store = await scratchStore(t);
  const rule = (id: string, data: JsonObject): Draft => {
    const fields = { origin: '*', path: `/${id}`, kind: 'content' };
    return { family: 'userinterface', id, action: 'insert', data: { ...fields, ...data } };
  };
  await commit(store, products);
  // The history has a hash in place of this id.
  const odd = 'n\0ul';
  for (const one of [rule('a', { rve: 0 }), row('b', { sku: 'B' }), rule('c', {})]) {
    await commit(store, one);
  }
  await commit(store, row('d', { sku: 'D' }));
  await commit(store, rule(odd, { path: '/odd' }));
  // More changes than an iteration reads one by one.
  for (let rve = 1; rve <= 20; rve += 1) {
    await commit(store, { family: 'userinterface', id: 'a', action: 'edit', data: { rve } });
    await commit(store, edit('b', { price: rve }));
  }
  const past = store.of(storedRules).at(store.seq());
  const shown = (after: string) =>
    [...past.recordsAfter(after)].map(({ id, stored, size }) => {
      return [id, stored?.rule.rve ?? stored?.rule.path, size > 0];
    });
  const [hashed, ...others] = shown('');
  assert.deepEqual(hashed, [odd, '/odd', true]);
  assert.deepEqual(others, [
    ['a', 20, true],
    ['b', undefined, false],
    ['c', '/c', true],
    ['d', undefined, false],
    ['t', undefined, true],
  ]);
  assert.deepEqual(shown('b'), others.slice(2));
});
