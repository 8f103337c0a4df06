import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Draft } from '../../../../src/core/log/change.ts';
import type { SiteDraft } from '../../../../src/modules/drafts/draft.ts';
import type { Json } from '../../../../src/core/values/json/json.ts';
import { draftChangesMax, draftStore } from '../../../../src/modules/drafts/log/draft-store.ts';
import type { Reads, Store } from '../../../../src/core/log/store.ts';
import { temporaryFolder } from '../../../folder.ts';
import { commit, edited, inserted, openIn, scratchStore } from '../../../core/log/scratch.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedDrafts } from '../../../../src/modules/drafts/log/family.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';

type Fields = Readonly<Record<string, Json>>;
type Records = Map<string, Fields | undefined>;

async function makeDraft(store: Store, id = 'draft', name = id): Promise<SiteDraft> {
  await commit(store, { family: 'draft', id, action: 'insert', data: { name } });
  const draft = store.of(storedDrafts).draft(id);
  assert.ok(draft);
  return draft;
}

async function verified(store: Store): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { differences } of store.part(upkeep).verify()) {
    found.push(...differences.map(({ database, what }) => `${database}: ${what}`));
  }
  return found;
}

const table: Draft = {
  family: 'table',
  id: 't',
  action: 'insert',
  data: { name: 'lamps', key: 'sku', index: ['price'], search: ['title'] },
};

function row(id: string, data: Fields): Draft {
  return { family: 'record', id, action: 'insert', data: { table: 'lamps', ...data } };
}

/** Compares what the indexes find with the records themselves. */
function compare(reads: Reads, rules: Records, rows: Records): void {
  const there = [...rules].filter(([, fields]) => fields !== undefined).map(([id]) => id);
  assert.deepEqual(
    [...reads.of(storedRules).recordsAfter('')].map(({ id }) => id),
    there.toSorted(),
  );
  for (const [id, fields] of rules) {
    const { id: _id, ...found } = { ...reads.of(storedRules).rule(id)?.rule } as unknown as Fields;
    assert.deepEqual(found, fields ?? {}, id);
  }
  for (const path of paths) {
    const isAt = (one: string): boolean => rules.get(one)?.path === path;
    const exact = path.endsWith('*') ? [] : reads.of(storedRules).exactRules('*', path);
    const wild = [...reads.of(storedRules).wildcardRules('*', path.replace('*', ''))].flat();
    const found = path.endsWith('*') ? wild.filter((one) => one.path === path) : exact;
    assert.deepEqual(found.map(({ id }) => id).toSorted(), there.filter(isAt).toSorted(), path);
  }
  for (const descending of [false, true]) {
    const all = [...reads.of(storedRules).rulesByPath({ after: undefined, descending })];
    assert.deepEqual(all.map(({ id }) => id).toSorted(), there.toSorted());
    const places = all.map(({ stored }) => stored?.rule.path.replace('*', '') ?? '');
    const sorted = places.toSorted((one, other) => (one < other ? -1 : 1));
    assert.deepEqual(places, descending ? sorted.toReversed() : sorted);
  }
  const existing = [...rows].flatMap(([id, fields]) => (fields ? [{ ...fields, id }] : []));
  assert.deepEqual(
    [...reads.of(storedTables).rowsAfter('lamps', '')].map(({ id }) => id),
    existing.map(({ id }) => id).toSorted(),
  );
  assert.equal(reads.of(storedTables).tableCounts('lamps').rows, existing.length);
  for (const price of [1, 2]) {
    const end = { value: price, inclusive: true };
    const range = { field: 'price', from: end, to: end };
    const found = [...reads.of(storedTables).rowsByIndex('lamps', range)].map(({ id }) => id);
    const having = existing.filter((one: Fields) => one.price === price);
    assert.deepEqual(found, having.map(({ id }) => id).toSorted(), `price ${price}`);
    assert.equal(reads.of(storedTables).countByIndex('lamps', range, 100), having.length);
  }
  for (const word of ['oak', 'lamp']) {
    const found = [...reads.of(storedTables).searchRows('lamps', word)].flatMap(
      ({ id }) => id ?? [],
    );
    const having = existing.filter((one: Fields) => JSON.stringify(one.title).includes(word));
    assert.deepEqual(found.toSorted(), having.map(({ id }) => id).toSorted(), word);
  }
  for (const { sku, id } of existing as readonly Fields[]) {
    if (typeof sku === 'string') assert.equal(reads.of(storedTables).rowIdByKey('lamps', sku), id);
  }
}

const paths = ['/a', '/b', '/a*', '/b/*'] as const;
const ruleFields = fc.record({
  path: fc.constantFrom(...paths),
  content: fc.constantFrom('1', '2'),
});
const rowFields = fc.record({
  price: fc.constantFrom(1, 2),
  title: fc.constantFrom('oak', 'lamp of oak', 'lamp'),
  moves: fc.boolean(),
});
const step = fc.record({
  inDraft: fc.boolean(),
  isRow: fc.boolean(),
  isRemoved: fc.boolean(),
  id: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  rule: ruleFields,
  row: rowFields,
});

/** The state of a draft: the live records with what the draft has done to each. */
interface Model {
  readonly live: Records;
  readonly edits: Map<string, Fields>;
  readonly removed: Set<string>;
  readonly own: Records;
}

function newModel(): Model {
  return { live: new Map(), edits: new Map(), removed: new Set(), own: new Map() };
}

function drafted({ live, edits, removed, own }: Model): Records {
  const all = new Map<string, Fields | undefined>();
  for (const [id, fields] of live) {
    const isThere = fields !== undefined && !removed.has(id);
    all.set(id, isThere ? { ...fields, ...edits.get(id) } : undefined);
  }
  for (const [id, fields] of own) all.set(id, fields);
  return all;
}

/** Does a step in the store and in the model. */
async function take(
  stores: { readonly live: Store; readonly draft: Store },
  models: { readonly rules: Model; readonly rows: Model },
  { inDraft, isRow, isRemoved, id: name, rule, row: { moves, ...given } }: StepOf<typeof step>,
): Promise<void> {
  const model = isRow ? models.rows : models.rules;
  const family = isRow ? 'record' : 'userinterface';
  const store = inDraft ? stores.draft : stores.live;
  const id = `${isRow ? 'row' : 'rule'}-${name}`;
  const now = inDraft ? drafted(model).get(id) : model.live.get(id);
  if (now === undefined) {
    if (isRemoved || model.live.has(id) || model.own.has(id) || model.removed.has(id)) return;
    const sku = { sku: `${id} ${inDraft ? 'draft' : 'live'}` };
    const insert = isRow ? row(id, { ...given, ...sku }) : inserted(id, rule);
    await commit(store, insert);
    (inDraft ? model.own : model.live).set(id, insert.data);
  } else if (isRemoved) {
    const rows = store.rows(family, id).map(({ seq }) => seq);
    const inForce = rows.filter((seq) => store.inForce(seq));
    await commit(store, { family, id, action: 'invalidate', data: { rows: inForce } });
    if (!inDraft) model.live.set(id, undefined);
    else if (model.own.has(id)) model.own.set(id, undefined);
    else model.removed.add(id);
  } else {
    const sku = moves ? { sku: `${id} ${inDraft ? 'draft' : 'live'} ${given.price}` } : {};
    const data = isRow ? { ...given, ...sku } : rule;
    await commit(store, { family, id, action: 'edit', data });
    const own = inDraft && model.own.get(id);
    if (!inDraft) model.live.set(id, { ...now, ...data });
    else if (own !== false && own !== undefined) model.own.set(id, { ...own, ...data });
    else model.edits.set(id, { ...model.edits.get(id), ...data });
  }
}

type StepOf<A> = A extends fc.Arbitrary<infer S> ? S : never;

test('the reads of a draft are those of the live state with its changes on top', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 24 }), async (steps) => {
      const store = await openIn(await temporaryFolder(t));
      try {
        await commit(store, table);
        const draft = draftStore(store, await makeDraft(store));
        const models = { rules: newModel(), rows: newModel() };
        for (const one of steps) {
          await take({ live: store, draft }, models, one);
          store.refresh();
          compare(store, models.rules.live, models.rows.live);
          compare(draft, drafted(models.rules), drafted(models.rows));
        }
        assert.deepEqual(await verified(store), []);
        await commit(store, { family: 'draft', id: 'draft', action: 'invalidate', data: {} });
        assert.deepEqual(
          [...store.of(storedDrafts).draftRecords({ ...draftOf(store), state: 'open' })],
          [],
        );
        assert.deepEqual(await verified(store), []);
      } finally {
        await store.close();
      }
    }),
    { numRuns: 6 },
  );
});

function draftOf(store: Store): SiteDraft {
  const draft = store.of(storedDrafts).draft('draft');
  assert.ok(draft);
  return draft;
}

test('a row of a draft takes the key that another one has given up', async (t) => {
  const store = await scratchStore(t);
  await commit(store, table, row('a', { sku: '1' }), row('b', { sku: '2' }));
  const draft = draftStore(store, await makeDraft(store));
  const edit = (id: string, sku: string): Draft => {
    return { family: 'record', id, action: 'edit', data: { sku } };
  };
  await assert.rejects(commit(draft, edit('b', '1')), { code: 'conflict' });
  await commit(draft, edit('a', '3'), edit('b', '1'));
  await commit(store, { family: 'record', id: 'a', action: 'edit', data: { price: 5 } });
  assert.deepEqual(
    ['1', '2', '3'].map((sku) => draft.of(storedTables).rowIdByKey('lamps', sku)),
    ['b', undefined, 'a'],
  );
  assert.deepEqual(
    ['1', '2', '3'].map((sku) => store.of(storedTables).rowIdByKey('lamps', sku)),
    ['a', 'b', undefined],
  );
  assert.deepEqual(await verified(store), []);
  await commit(store, row('c', { sku: '3' }));
  await commit(store, { family: 'record', id: 'a', action: 'edit', data: { price: 6 } });
  assert.equal(draft.of(storedTables).rowIdByKey('lamps', '3'), 'a');
  assert.deepEqual(await verified(store), []);
});

test('a vk of a draft is its own, and its rows have the history of both', async (t) => {
  const store = await scratchStore(t);
  const vk = { vk: 'v', requestHash: 'f'.repeat(64) };
  await commit(store, inserted('a', { path: '/a' }), inserted('b', { path: '/b' }));
  const draft = draftStore(store, await makeDraft(store));
  const [change] = await commit(draft, { ...edited('a', { rve: 1 }), vk });
  assert.equal(change?.family, 'userinterface');
  assert.equal(store.vkClaim('v'), undefined);
  assert.deepEqual(draft.vkClaim('v'), { ...vk, id: 'a', by: 'test', seq: change.seq });
  await commit(store, edited('a', { rve: 2, content: 'live' }));
  assert.equal(draft.of(storedRules).rule('a')?.rule.rve, 1);
  assert.equal(draft.of(storedRules).rule('a')?.rule.content, 'live');
  assert.equal(draft.of(storedRules).rule('a')?.seq, store.seq());
  const page = { before: undefined, limit: 10 };
  assert.deepEqual(
    draft.history('userinterface', 'a', page).map(({ data }) => data.rve),
    [2, 1, undefined],
  );
  assert.equal(store.history('userinterface', 'a', page).length, 2);
});

test('a draft changes one record so often, and the state of it follows from each edit', async (t) => {
  const store = await scratchStore(t);
  await commit(store, inserted('a', { path: '/a' }), inserted('b', { path: '/b' }));
  const draft = draftStore(store, await makeDraft(store));
  const edits = Array.from({ length: draftChangesMax }, (_, at) => edited('a', { rve: at }));
  await commit(draft, ...edits.slice(0, 2));
  const [undone] = await commit(draft, edits[2] ?? edited('a', {}));
  await commit(draft, {
    ...{ family: 'userinterface', id: 'a', action: 'invalidate' },
    data: { rows: [undone?.seq ?? 0] },
  });
  await commit(draft, edited('a', { content: 'after an undo' }));
  assert.deepEqual(
    [draft.of(storedRules).rule('a')?.rule.rve, draft.of(storedRules).rule('a')?.rule.content],
    [1, 'after an undo'],
  );
  assert.equal(draft.inForce(undone?.seq ?? 0), false);
  assert.deepEqual(await verified(store), []);
  await commit(draft, ...edits.slice(5));
  await assert.rejects(commit(draft, edited('a', { rve: 0 })), {
    code: 'conflict',
    field: 'draft',
  });
  await commit(draft, edited('b', { rve: 0 }));
  await commit(store, edited('a', { title: 'live' }));
  assert.equal(draft.of(storedRules).rule('a')?.rule.rve, draftChangesMax - 1);
  assert.deepEqual(await verified(store), []);
});
