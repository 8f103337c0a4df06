import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';
import { randomRuns } from '../../../random-runs.ts';

type Fields = Readonly<Record<string, string | number>>;

/** The state of a row right after a change: undefined if it was deleted. */
interface Version {
  readonly seq: number;
  readonly txn: string | undefined;
  readonly fields: Fields | undefined;
}

interface ModelRow {
  readonly id: string;
  readonly versions: Version[];
}

/** A model of a table, to compare with the table of the server. */
interface World {
  readonly site: TestSite;
  readonly table: string;
  readonly rows: ModelRow[];
  readonly claims: Map<string, { readonly v: JsonObject; readonly id: string }>;
}

const sku = fc.constantFrom('a', 'b', 'c');
const price = fc.constantFrom(1, 2, 3);
const at = fc.nat(5);
const step = fc.oneof(
  fc.record({
    do: fc.constant('insert' as const),
    v: fc.record({ sku, price }, { requiredKeys: ['sku'], noNullPrototype: true }),
    vk: fc.option(fc.constantFrom('k1', 'k2'), { nil: undefined }),
  }),
  fc.record({
    do: fc.constant('edit' as const),
    at,
    v: fc.record({ sku, price: fc.option(price) }, { requiredKeys: [], noNullPrototype: true }),
    version: fc.constantFrom('none', 'now', 'stale'),
  }),
  fc.record({ do: fc.constant('delete' as const), at }),
  fc.record({ do: fc.constant('restore' as const), at }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

function now({ versions }: ModelRow): Fields | undefined {
  return versions.at(-1)?.fields;
}

function holder({ rows }: World, key: unknown): ModelRow | undefined {
  return rows.find((row) => now(row)?.sku === key);
}

function call({ site, table }: World, verb: string, v: object, more?: object): Promise<Answer> {
  return site.call(`svc1.record.${verb}`, { table, ...v }, more);
}

async function insert(world: World, { v, vk }: Step & { do: 'insert' }): Promise<void> {
  const claim = vk === undefined ? undefined : world.claims.get(vk);
  const { data, error } = await call(world, 'insert', v, { vk: vk && `${world.table} ${vk}` });
  if (claim !== undefined) {
    const isSame = JSON.stringify(claim.v) === JSON.stringify(v);
    assert.equal(error?.code ?? data.id, isSame ? claim.id : 'conflict');
    return;
  }
  assert.equal(error?.code, holder(world, v.sku) === undefined ? undefined : 'conflict');
  if (error !== undefined) return;
  const { id, seq } = data;
  world.rows.push({ id, versions: [{ seq, txn: undefined, fields: v }] });
  if (vk !== undefined) world.claims.set(vk, { v, id });
}

async function edit(world: World, row: ModelRow, one: Step & { do: 'edit' }): Promise<void> {
  const former = now(row);
  const { seq = 0 } = row.versions.at(-1) ?? {};
  const ifSeq = { none: undefined, now: seq, stale: seq - 1 }[one.version];
  const { data, error } = await call(world, 'edit', { id: row.id, ...one.v, if_seq: ifSeq });
  const other = one.v.sku === undefined ? undefined : holder(world, one.v.sku);
  const isTaken = other !== undefined && other !== row;
  if (former === undefined) assert.equal(error?.code, 'not_found');
  else if (one.version === 'stale') assert.equal(error?.code, 'precondition_failed');
  else assert.equal(error?.code, isTaken ? 'conflict' : undefined);
  if (error !== undefined) return;
  const entries = Object.entries({ ...former, ...one.v }).filter(([, value]) => value !== null);
  const fields = Object.fromEntries(entries) as Fields;
  if (data.seq !== seq) row.versions.push({ seq: data.seq, txn: undefined, fields });
  else assert.deepEqual(fields, former);
}

/** Carries out a revert after its report; resolves to its answer. */
async function revert(world: World, v: object): Promise<Answer> {
  const dry = await call(world, 'invalidate', v);
  if (dry.error !== undefined) return dry;
  return call(world, 'invalidate', { ...v, confirm: dry.data.digest });
}

async function remove(world: World, row: ModelRow): Promise<void> {
  if (now(row) === undefined) return;
  const { data, error } = await revert(world, { id: row.id });
  assert.equal(error, undefined, JSON.stringify(error));
  row.versions.push({ seq: data.seq, txn: data.txn, fields: undefined });
}

async function restore(world: World, row: ModelRow): Promise<void> {
  const { txn, fields } = row.versions.at(-1) ?? {};
  if (txn === undefined || fields !== undefined) return;
  const before = row.versions.at(-2)?.fields;
  const { data, error } = await revert(world, { txn });
  const isTaken = holder(world, before?.sku) !== undefined;
  assert.equal(error?.code, isTaken ? 'conflict' : undefined);
  if (error === undefined) row.versions.push({ seq: data.seq, txn: undefined, fields: before });
}

function shown({ id, table: _table, seq: _seq, ...fields }: JsonObject): unknown {
  return [id, fields];
}

/** Compares lists, reads by key, and each row as of each of its versions. */
async function holdWhole(world: World): Promise<void> {
  const rows = world.rows.filter((row) => now(row) !== undefined);
  const all = await call(world, 'list', { count: true });
  const expected = rows.map((row) => [row.id, now(row)]);
  assert.deepEqual(all.data.rows.map(shown), expected);
  assert.equal(all.data.count, rows.length);
  for (const value of [1, 2, 3]) {
    const { data } = await call(world, 'list', { where: { price: value } });
    const found = rows.filter((row) => now(row)?.price === value);
    const ids = (data.rows as { id: string }[]).map(({ id }) => id);
    assert.deepEqual(ids.toSorted(), found.map(({ id }) => id).toSorted());
  }
  for (const key of ['a', 'b', 'c']) {
    const { data, error } = await call(world, 'get', { sku: key });
    const row = holder(world, key);
    assert.deepEqual(error?.code ?? shown(data), row ? [row.id, now(row)] : 'not_found');
  }
}

async function holdPast(world: World): Promise<void> {
  for (const { id, versions } of world.rows) {
    for (const { seq, fields } of versions) {
      const { data, error } = await call(world, 'read', { id, as_of: String(seq) });
      assert.deepEqual(error?.code ?? shown(data), fields ? [id, fields] : 'not_found');
    }
  }
}

test('rows are as a naive model of the same calls has them, now and in the past', async (t) => {
  const site = await startSite(t);
  const properties = { sku: { type: 'string' }, price: { type: 'integer' } };
  const schema = { type: 'object', required: ['sku'], properties };
  let tables = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20, size: 'max' }), async (steps) => {
      tables += 1;
      const world: World = { site, table: `t${tables}`, rows: [], claims: new Map() };
      const definition = { name: world.table, schema, key: 'sku', index: ['price'] };
      const made = await site.call('svc1.table.insert', definition);
      assert.equal(made.error, undefined);
      for (const one of steps) {
        if (one.do === 'insert') {
          await insert(world, one);
          continue;
        }
        const row = world.rows[one.at % Math.max(1, world.rows.length)];
        if (row === undefined) continue;
        if (one.do === 'edit') await edit(world, row, one);
        else await (one.do === 'delete' ? remove : restore)(world, row);
      }
      await holdWhole(world);
      await holdPast(world);
    }),
    { numRuns: randomRuns(20) },
  );
});
