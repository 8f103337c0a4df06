import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite, type TestSite } from '../../../harness.ts';

const list = 'svc1.userinterface.list';

interface Row {
  readonly id: string;
  readonly origin: string;
  readonly path: string;
  readonly kind: string;
  readonly _unknowns_?: { readonly origin?: unknown };
}

/** Numbers that look random and are the same in each run. */
let state = 20_261_124;
function below(limit: number): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
  return Math.floor((state / 0x8000_0000) * limit);
}

function oneOf<T>(values: readonly T[]): T {
  return values[below(values.length)] as T;
}

const origins = ['*', 'http://a.example', 'http://a.example:81', 'https://ab.example', 'no origin'];
const names = ['a', 'b', 'ab', 'é', '日本', '!x', '(x)', '~', 'x'.repeat(995)];

/** Page rules with equal places, wildcards, keys of breadcrumbs, waiting origins and long paths. */
function randomRule(): object {
  const origin = oneOf(origins);
  if (below(8) === 0) {
    const path = `${oneOf(names.slice(0, -1))}-${below(5)}`;
    return { origin, path, kind: 'resolve', enginedata: { target: '/a' } };
  }
  const path = Array.from({ length: 1 + below(3) }, () => `/${oneOf(names)}`).join('');
  const lang = oneOf([undefined, 'de', 'en']);
  const end = path.length > 900 ? '' : oneOf(['', '', '/', '*', '/*']);
  return { origin, path: path + end, kind: 'content', content: 'x', ...(lang && { lang }) };
}

const started = (async () => {
  const site = await startSite({ after });
  const call: TestSite['call'] = (operation, v) => site.call(operation, v);
  const wildcards = ['de', 'en', 'fr', 'it'].map((lang) => ({ path: '/a*', content: 'x', lang }));
  const rules = [...wildcards, ...Array.from({ length: 400 }, randomRule)];
  const ndjson = rules.map((rule) => `${JSON.stringify(rule)}\n`).join('');
  const { error } = await call('svc1.userinterface.import', { ndjson });
  assert.equal(error, undefined);
  const { data } = await call(list, { limit: 1_000 });
  for (const { id } of (data.rows as Row[]).filter((_row, at) => at % 80 === 0)) {
    const report = await call('svc1.userinterface.invalidate', { id });
    await call('svc1.userinterface.invalidate', { id, confirm: report.data.digest });
  }
  for (const { id } of (data.rows as Row[]).filter((_row, at) => at % 60 === 1)) {
    await call('svc1.userinterface.edit', { id, path: `/moved/${below(5)}` });
  }
  return site;
})();

async function call(...given: Parameters<TestSite['call']>): ReturnType<TestSite['call']> {
  return (await started).call(...given);
}

async function walk(v: object): Promise<readonly Row[]> {
  const rows: Row[] = [];
  let next: string | null | undefined;
  do {
    const { data, error } = await call(list, { ...v, ...(next && { after: next }) });
    assert.equal(error, undefined);
    rows.push(...data.rows);
    next = data.next;
  } while (next !== null);
  return rows;
}

/** Whether the index has a hash of the place instead of its text. */
function isHashed({ origin, path, _unknowns_: unknowns }: Row): boolean {
  return unknowns?.origin !== undefined || Buffer.byteLength(`${origin}\0${path}`) > 1_978;
}

function byPath(one: Row, other: Row): number {
  const place = ({ origin, path }: Row): Buffer =>
    Buffer.from(`${origin}\0${path.replace(/^(\/.*)\*$/s, '$1')}`);
  return (
    Buffer.compare(place(one), place(other)) ||
    Number(one.path.endsWith('*')) - Number(other.path.endsWith('*')) ||
    (one.id < other.id ? -1 : 1)
  );
}

const filters = [
  {},
  { origin: 'http://a.example' },
  { origin: 'http://a.example', path: '/a' },
  { origin: '*', path: '/a*' },
  { path: '/b' },
  { kind: 'resolve' },
  { text: 'moved' },
];

suite('userinterface.list by sort', () => {
  for (const filter of filters) {
    test(`has the rows of a plain sort, page by page: ${JSON.stringify(filter)}`, async () => {
      const inserted = await walk({ ...filter, limit: 1_000 });
      assert.ok(inserted.length > 1, `${inserted.length} rows`);
      assert.deepEqual(await walk({ ...filter, limit: 7, sort: 'inserted' }), inserted);
      const newest = await walk({ ...filter, limit: 7, sort: '-inserted' });
      assert.deepEqual(newest, inserted.toReversed());
      const paths = await walk({ ...filter, limit: 7, sort: 'path' });
      const hashed = inserted.filter(isHashed).length;
      assert.ok(paths.slice(0, hashed).every(isHashed), 'those without a readable key come first');
      const readable = inserted.filter((row) => !isHashed(row)).toSorted(byPath);
      assert.deepEqual(paths.slice(hashed), readable);
      const descending = await walk({ ...filter, limit: 7, sort: '-path' });
      assert.deepEqual(descending, paths.toReversed());
    });
  }

  test('has rules without a readable key, and several at one place', async () => {
    const rows = await walk({ limit: 1_000 });
    const places = new Set(rows.map(({ origin, path }) => `${origin} ${path}`));
    assert.ok(places.size < rows.length);
    assert.ok(rows.some((row) => row._unknowns_?.origin !== undefined));
    assert.ok(rows.some(({ path }) => path.length > 1_978));
  });

  test('refuses the cursor of another order, and a damaged one', async () => {
    const sorts = ['inserted', '-inserted', 'path', '-path'];
    for (const sort of sorts) {
      const { data } = await call(list, { limit: 2, sort });
      for (const other of sorts.filter((one) => one !== sort)) {
        const { error } = await call(list, { sort: other, after: data.next });
        assert.deepEqual([error?.code, error?.field], ['invalid', 'after'], `${sort}, ${other}`);
        assert.match(error?.message ?? '', /with the same sort/);
      }
    }
    for (const damaged of ['path:', 'path:x', 'path:e.AA', '-path:q.AA.id']) {
      const sort = damaged.slice(0, damaged.indexOf(':'));
      const { error } = await call(list, { sort, after: damaged });
      const expected = damaged === 'path:' ? undefined : 'after';
      assert.equal(error?.field, expected, damaged);
    }
  });

  test('refuses another order, and an order of the past', async () => {
    const unknown = await call(list, { sort: 'kind' });
    assert.deepEqual([unknown.error?.code, unknown.error?.field], ['invalid', 'sort']);
    const past = await call(list, { sort: 'path', as_of: '5' });
    assert.deepEqual([past.error?.code, past.error?.field], ['invalid', 'sort']);
    const { data } = await call(list, { sort: 'inserted', as_of: '5' });
    assert.ok(data.rows.length > 0);
  });

  test('continues after a rule that is removed between two pages', async () => {
    for (const sort of ['-inserted', 'path', '-path']) {
      const all = await walk({ limit: 1_000, sort });
      const { data } = await call(list, { limit: 20, sort });
      const id = all[19]?.id ?? '';
      const report = await call('svc1.userinterface.invalidate', { id });
      await call('svc1.userinterface.invalidate', { id, confirm: report.data.digest });
      const after = await call(list, { limit: 20, sort, after: data.next });
      assert.deepEqual(after.data.rows, all.slice(20, 40));
    }
  });
});
