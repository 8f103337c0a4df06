import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Draft } from '../../../../src/core/log/change.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import type { Json } from '../../../../src/core/values/json/json.ts';
import { scalarOf } from '../../../../src/modules/tables/row.ts';
import { compareScalars } from '../../../../src/modules/tables/row.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { temporaryFolder } from '../../../folder.ts';
import { openIn } from '../../../core/log/scratch.ts';
import { indexBuilder } from '../../../../src/modules/tables/log/index-build.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';

type Fields = Readonly<Record<string, Json>>;
/** The rows of the table by id, and the names of its indexes. */
interface State {
  readonly rows: ReadonlyMap<string, Fields>;
  readonly index: readonly string[];
  readonly search: readonly string[];
}

const texts = ['a big lamp', 'Lamp of oak', 'oak', '', 'bigger'];
const fields = fc.record({
  sku: fc.constantFrom(1, 2, '1', 'x', null),
  price: fc.constantFrom(1, -2, 10, 'x', true, null, [1]),
  title: fc.constantFrom(...texts),
  note: fc.constantFrom(...texts),
});
const id = fc.constantFrom('a', 'b', 'c', 'd');
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('write' as const), id, fields }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), id }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restore' as const), id }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('index' as const),
      index: fc.subarray(['price', 'title']),
      search: fc.subarray(['title', 'note']),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'reopen' as const }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** The draft of a step, and the state after it; undefined for a step that changes nothing. */
function modelled(
  store: Store,
  state: State,
  one: Exclude<Step, { readonly do: 'reopen' }>,
): { readonly draft: Draft; readonly after: State } | undefined {
  const { rows } = state;
  if (one.do === 'index') {
    const data = { index: one.index, search: one.search };
    return {
      draft: { family: 'table', id: 't', action: 'edit', data },
      after: { ...state, ...data },
    };
  }
  const logged = store.rows('record', one.id);
  const family = 'record';
  if (one.do === 'write') {
    const former = rows.get(one.id);
    // A record is inserted once; an invalidate of its invalidate restores it.
    if (former === undefined && logged.length > 0) return undefined;
    const merged = { ...former, ...one.fields };
    const kept = former === undefined ? merged : withoutNull(merged);
    const action = former === undefined ? 'insert' : 'edit';
    const data = action === 'insert' ? { table: 'lamps', ...one.fields } : one.fields;
    const after = { ...state, rows: new Map([...rows, [one.id, kept]]) };
    return { draft: { family, id: one.id, action, data }, after };
  }
  if ((one.do === 'delete') !== rows.has(one.id) || logged.length === 0) return undefined;
  const seqs = logged.map(({ seq }) => seq);
  if (one.do === 'delete') {
    const after = new Map(rows);
    after.delete(one.id);
    // The newest deletion that counts is what a restore reverts.
    const data = { rows: seqs.filter((seq) => store.inForce(seq)) };
    return {
      draft: { family, id: one.id, action: 'invalidate', data },
      after: { ...state, rows: after },
    };
  }
  const [last] = seqs.slice(-1);
  const before = store.of(storedTables).rowAt(one.id, (last ?? 1) - 1)?.row;
  if (before === undefined) return undefined;
  const { id: _id, table: _table, ...own } = before;
  const after = { ...state, rows: new Map([...rows, [one.id, own as Fields]]) };
  const data = { rows: [last ?? 0] };
  return { draft: { family, id: one.id, action: 'invalidate', data }, after };
}

function withoutNull(row: Fields): Fields {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));
}

/** The id of a row that has the same key as another one. */
function doubleKey({ rows }: State): string | undefined {
  const keys = new Map<unknown, string>();
  for (const [one, { sku = null }] of rows) {
    if (sku !== null && keys.has(sku)) return one;
    keys.set(sku, one);
  }
  return undefined;
}

function wordsIn(text: Json | undefined): readonly string[] {
  return typeof text === 'string' ? text.toLowerCase().split(' ').filter(Boolean) : [];
}

/** Compares all reads of rows, now and at each earlier moment, with the model. */
function compare(store: Store, { rows, index, search }: State): void {
  const ids = [...rows.keys()].toSorted();
  assert.deepEqual(
    [...store.of(storedTables).rowsAfter('lamps', '')].map((one) => one.id),
    ids,
  );
  assert.equal(store.of(storedTables).tableCounts('lamps').rows, ids.length);
  for (const one of ['a', 'b', 'c', 'd']) {
    const own = rows.get(one);
    assert.deepEqual(
      store.of(storedTables).row(one)?.row,
      own && { id: one, table: 'lamps', ...own },
    );
  }
  for (const sku of [1, 2, '1', 'x']) {
    const [holder] = [...rows].filter(([, row]) => row.sku === sku);
    assert.equal(store.of(storedTables).rowByKey('lamps', sku)?.row.id, holder?.[0]);
  }
  for (const field of ['sku', ...index]) {
    const valueOf = (one: string) => scalarOf(rows.get(one)?.[field]);
    const sorted = ids.toSorted((one, other) => compareScalars(valueOf(one), valueOf(other)));
    const found = [...store.of(storedTables).rowsByIndex('lamps', { field })].map(
      (each) => each.id,
    );
    assert.deepEqual(found, sorted, field);
  }
  for (const sought of ['lamp', 'big', 'oak', 'lamp oa']) {
    const [last = '', ...others] = sought.split(' ').toReversed();
    const expected = ids.filter((one) => {
      const words = search.flatMap((field) => wordsIn(rows.get(one)?.[field]));
      return others.every((word) => words.includes(word)) && words.some((w) => w.startsWith(last));
    });
    const found = [...store.of(storedTables).searchRows('lamps', sought)].flatMap(
      (each) => each.id ?? [],
    );
    assert.deepEqual(found.toSorted(), expected, sought);
  }
}

function comparePast(store: Store, past: ReadonlyMap<number, State>): void {
  for (const [seq, { rows }] of past) {
    const then = [...store.of(storedTables).rowsAt('lamps', '', seq)].filter(
      ({ stored }) => stored !== undefined,
    );
    assert.deepEqual(
      then.map((one) => one.id),
      [...rows.keys()].toSorted(),
    );
    for (const sku of [1, 2, '1', 'x']) {
      const [holder] = [...rows].filter(([, row]) => row.sku === sku);
      assert.equal(store.of(storedTables).rowByKeyAt('lamps', sku, seq)?.row.id, holder?.[0]);
    }
  }
}

test('rows, keys, indexes and search agree with a model, now and in the past', async (t) => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    const folder = await temporaryFolder(t);
    let store = await openIn(folder);
    const data = { name: 'lamps', schema: {}, key: 'sku' };
    const commit = (draft: Draft) =>
      store.commit('test', () => ({ drafts: [draft], answer: () => undefined }));
    await commit({ family: 'table', id: 't', action: 'insert', data });
    let state: State = { rows: new Map(), index: [], search: [] };
    const past = new Map<number, State>();
    try {
      for (const one of steps) {
        if (one.do === 'reopen') {
          await store.close();
          store = await openIn(folder);
          continue;
        }
        const next = modelled(store, state, one);
        if (next === undefined) continue;
        const isDouble = doubleKey(next.after) !== undefined;
        const refused = await commit(next.draft).then(
          () => false,
          (error: unknown) => error instanceof Failure && error.code === 'conflict',
        );
        assert.equal(refused, isDouble);
        if (!isDouble) state = next.after;
        await store.part(indexBuilder).build(t.signal, () => undefined);
        compare(store, state);
        past.set(store.seq(), state);
      }
      comparePast(store, past);
      for await (const { differences } of store.part(upkeep).verify())
        assert.deepEqual(differences, []);
    } finally {
      await store.close();
    }
  });
  await fc.assert(property, { numRuns: 60 });
});
