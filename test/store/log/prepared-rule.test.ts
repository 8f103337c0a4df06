import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import type { JsonObject } from '../../../src/model/json.ts';
import { openDatabases, openEnvironment } from '../../../src/store/databases.ts';
import { prepareRule } from '../../../src/store/log/prepared-rule.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Decision } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../folder.ts';
import { commit, inserted, scratchStore } from '../scratch.ts';

const id = (at: number) => `00000000-0000-7000-8000-${String(at).padStart(12, '0')}`;
const vk = (at: number) => ({ vk: `vk ${at} ä`, requestHash: 'a'.repeat(64) });

/** All entries of all databases after one decision in an empty folder. */
async function entriesAfter(t: TestContext, drafts: Decision<void>['drafts']) {
  const folder = await temporaryFolder(t);
  const store = await openStore({ folder, now: () => 1_000_000, newId: () => 'txn' });
  await store.commit('test', () => ({ drafts, answer: () => undefined }));
  await store.close();
  const environment = openEnvironment(folder);
  t.after(() => environment.close());
  const { environment: _, ...databases } = environment.transactionSync(() =>
    openDatabases(environment),
  );
  return Object.entries(databases).map(([name, database]) => [name, [...database.getRange()]]);
}

suite('a page rule that another thread has prepared', () => {
  const cases: readonly JsonObject[] = [
    { origin: '*', path: '/a', kind: 'content', content: 'x' },
    { kind: 'content', content: 'ä\ud800 "\n', path: '/käse', origin: 'https://a.example' },
    { origin: '*', path: '/a/*', kind: 'content.fetch', lang: 'en', rve: -0.5 },
    { origin: '*', path: '*', kind: 'resolve', designed_at: '2026-01-01T00:00:00Z' },
    { origin: '*', path: `/${'long'.repeat(600)}`, kind: 'content', designed_at: 'never' },
    { origin: '*', path: '/\ud800', kind: 'content', lang: 'x'.repeat(500) },
    {
      origin: '*',
      path: '/u',
      kind: 'content',
      _unknowns_: JSON.parse('{"7":1,"__proto__":{"a":[null]},"constructor":2}') as JsonObject,
    },
  ];

  test('is stored byte for byte as one that the store prepares itself', async (t) => {
    const plain = cases.map((data, at) => {
      return { family: 'userinterface', id: id(at), action: 'insert', data, vk: vk(at) } as const;
    });
    const prepared = cases.map((data, at) => ({
      id: id(at),
      prepared: prepareRule(data),
      vk: vk(at),
    }));
    const expected = await entriesAfter(t, plain);
    assert.deepEqual(await entriesAfter(t, prepared), expected);
    const mixed = cases.map((_, at) => (at % 2 === 0 ? plain[at] : prepared[at])).filter(Boolean);
    assert.deepEqual(await entriesAfter(t, mixed as typeof plain), expected);
  });

  test('gets a seq of its own also among other commits of the batch', async (t) => {
    const store = await scratchStore(t);
    const data = { origin: '*', path: '/a', kind: 'content', content: 'x' };
    const prepared = [1, 2].map((at) => ({ id: id(at), prepared: prepareRule(data), vk: vk(at) }));
    const [, changes] = await Promise.all([
      store.commit('import', () => ({ drafts: prepared, answer: () => undefined })),
      commit(store, inserted('plain', { path: '/b' })),
    ]);
    assert.deepEqual(
      changes.map(({ seq }) => seq),
      [3],
    );
    assert.deepEqual(
      [1, 2, 3].map((seq) => store.change(seq)?.id),
      [id(1), id(2), 'plain'],
    );
    for await (const { differences } of store.verify()) assert.deepEqual(differences, []);
  });

  test('is refused while it is prepared, not in the commit', () => {
    const [rule = {}] = cases;
    for (const [more, message] of [
      [{ lang: 'x'.repeat(1_900) }, /^lang is too long/],
      [{ path: `/${'x'.repeat(2_000)}*` }, /^path is too long/],
      [{ path: '/\ud800*' }, /^path has to be Unicode text/],
    ] as const) {
      assert.throws(() => prepareRule({ ...rule, ...more }), { message });
    }
  });
});
