import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import type { Change } from '../../../src/core/log/change.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import type { Json, JsonObject } from '../../../src/core/values/json/json.ts';
import { ruleKinds } from '../../../src/modules/rules/rule.ts';
import type { Store } from '../../../src/core/log/store.ts';
import { exportedHistory, exportedRecords } from '../../../src/modules/transfer/export.ts';
import { placeHookFields } from '../../../src/modules/webhooks/operations/hook-placement.ts';
import { secretDraft } from '../../../src/modules/webhooks/operations/hook-family.ts';
import { readImportLines } from '../../../src/modules/transfer/import-line.ts';
import { importBlocks, type Imported } from '../../../src/modules/transfer/import.ts';
import { placeRuleFields } from '../../../src/modules/rules/operations/placement.ts';
import { randomRuns } from '../../random-runs.ts';
import { commit, edited, inserted, scratchStore } from '../../core/log/scratch.ts';
import { storedHooks } from '../../../src/modules/webhooks/log/family.ts';
import { storedRules } from '../../../src/modules/rules/log/family.ts';

const engines = new Set(['html', 'template']);
const newSecret = () => 'whsec_c2VjcmV0';

/** Imports lines; resolves to the result. */
async function imported(
  store: Store,
  lines: Iterable<string>,
): Promise<Omit<Imported, 'kept' | 'records'>> {
  const bytes = Buffer.from([...lines].join('\n'));
  async function* blocks() {
    await Promise.resolve();
    yield { ...readImportLines(bytes, { first: 1, engines, newId: uuidv7 }), bytes: bytes.length };
  }
  const sum = { imported: 0, unchanged: 0, refused: 0 };
  const refused = [];
  for await (const step of importBlocks({ store, newSecret }, blocks())) {
    sum.imported += step.imported;
    sum.unchanged += step.unchanged;
    refused.push(...step.refused);
  }
  return { ...sum, refused };
}

/** All page rules by their ids. */
function storedIn(store: Store) {
  return [...store.of(storedRules).recordsAfter('')].flatMap(({ stored }) => stored ?? []);
}

/** All page rules, without their places in the log. */
function rulesOf(store: Store) {
  return storedIn(store).map(({ rule }) => rule);
}

/** Writes fields as an operation does: an insert, or an edit of an existing rule. */
async function write(store: Store, id: string, sent: JsonObject): Promise<void> {
  const current = store.of(storedRules).rule(id)?.rule;
  const data = placeRuleFields({ current, sent }, { engines });
  const action = current === undefined ? 'insert' : 'edit';
  await commit(store, { family: 'userinterface', id, action, data });
}

async function sample(t: TestContext): Promise<{ readonly store: Store; readonly id: string }> {
  const store = await scratchStore(t);
  const id = uuidv7();
  await write(store, id, { path: '/a', content: 'x' });
  return { store, id };
}

suite('an export', () => {
  test('has the hooks, without their secrets; an import gives them new ones', async (t) => {
    const { store } = await sample(t);
    const [id, gone] = [uuidv7(), uuidv7()];
    const fields = { event: ['sale.completed'], url: 'https://shop.example/', colour: 'blue' };
    const data = placeHookFields({ current: undefined, sent: fields });
    const secret = (hook: string) => secretDraft(hook, { secret: 'whsec_b2xk' });
    await commit(store, { family: 'webhook', id, action: 'insert', data }, secret(id));
    await commit(store, { family: 'webhook', id: gone, action: 'insert', data }, secret(gone));
    const rotated = { rotated_at: '2026-11-21T12:00:00.000Z', _unknowns_: { method: 'FETCH' } };
    await commit(store, { family: 'webhook', id, action: 'edit', data: rotated });
    const takenBack = { family: 'webhook', id: gone, action: 'invalidate' } as const;
    await commit(store, { ...takenBack, data: { rows: [4] } });

    const lines = [...exportedRecords(store)];
    assert.equal(lines.length, 2);
    assert.ok(![...lines, ...exportedHistory(store)].join().includes('whsec_'));
    assert.equal((await imported(store, lines)).unchanged, 2);
    const copy = await scratchStore(t);
    assert.equal((await imported(copy, lines)).imported, 2);
    const { rotated_at: _rotated, ...hook } = store.of(storedHooks).hook(id)?.hook ?? assert.fail();
    assert.deepEqual(copy.of(storedHooks).hook(id)?.hook, hook);
    assert.equal(copy.of(storedHooks).hookSecret(id)?.secret, newSecret());
    assert.deepEqual([...exportedRecords(copy)], lines);
    assert.equal((await imported(copy, lines)).unchanged, 2);
    const others = lines.map((line) => line.replace('"order":false', '"order":true'));
    const { refused } = await imported(copy, others);
    assert.match(refused[0]?.why ?? '', /exists with other fields/);
  });

  test('changes nothing where it comes from, and restores the site with its ids in an empty folder', async (t) => {
    const { store } = await sample(t);
    await write(store, uuidv7(), { path: 'key', kind: 'resolve', enginedata: { target: '/a' } });
    const lines = [...exportedRecords(store)];
    assert.deepEqual(await imported(store, lines), { imported: 0, unchanged: 2, refused: [] });
    const copy = await scratchStore(t);
    assert.deepEqual(await imported(copy, lines), { imported: 2, unchanged: 0, refused: [] });
    assert.deepEqual(rulesOf(copy), rulesOf(store));
    const parsed = (line: string) => JSON.parse(line) as JsonObject;
    assert.deepEqual([...exportedRecords(copy)].map(parsed), lines.map(parsed));
  });

  test('writes paths as in URLs, so that an import reads the same ones', async (t) => {
    const { store, id } = await sample(t);
    for (const [path, written] of [
      ['/50%25', '/50%25'],
      ['/a%2520b', '/a%2520b'],
      ['/what%3F', '/what%3F'],
      ['/a b/käse', '/a b/käse'],
      ['/[x]*', '/[x]*'],
      [`/${'ä'.repeat(2_000)}`, `/${'ä'.repeat(2_000)}`],
    ] as const) {
      await write(store, id, { path });
      const [line = ''] = exportedRecords(store);
      assert.equal((JSON.parse(line) as JsonObject).path, written);
      const copy = await scratchStore(t);
      await imported(copy, [line]);
      assert.equal(
        copy.of(storedRules).rule(id)?.rule.path,
        store.of(storedRules).rule(id)?.rule.path,
      );
    }
  });

  test('keeps the order of inserts, the last criterion of matching', async (t) => {
    const store = await scratchStore(t);
    const ids = [uuidv7(), uuidv7(), uuidv7()].reverse();
    for (const id of ids) await write(store, id, { path: '/same', content: id });
    const copy = await scratchStore(t);
    await imported(copy, exportedRecords(store));
    const order = storedIn(copy).sort((one, other) => one.insertedSeq - other.insertedSeq);
    assert.deepEqual(
      order.map(({ rule }) => rule.id),
      ids,
    );
  });

  test('is a snapshot, even if records are written meanwhile', async (t) => {
    const { store, id } = await sample(t);
    const other = uuidv7();
    await write(store, other, { path: '/other', content: 'x' });
    const lines = exportedRecords(store)[Symbol.iterator]();
    const first = lines.next().value ?? '';
    await write(store, other, { content: 'later' });
    await write(store, uuidv7(), { path: '/later', content: 'x' });
    await commit(store, { family: 'userinterface', id, action: 'invalidate', data: { rows: [1] } });
    const rest = [...{ [Symbol.iterator]: () => lines }];
    const read = [first, ...rest].map((line) => JSON.parse(line) as JsonObject);
    assert.deepEqual(
      read.map(({ path, content }) => [path, content]),
      [
        ['/a', 'x'],
        ['/other', 'x'],
      ],
    );
  });

  test('does not undo later edits when it is imported', async (t) => {
    const { store, id } = await sample(t);
    const lines = [...exportedRecords(store)];
    const copy = await scratchStore(t);
    await imported(copy, lines);
    await write(copy, id, { content: 'edited' });
    assert.equal((await imported(copy, lines)).unchanged, 1, 'this line was imported before');
    assert.equal(copy.of(storedRules).rule(id)?.rule.content, 'edited');
    await write(store, id, { content: 'edited otherwise' });
    const { refused } = await imported(copy, exportedRecords(store));
    assert.deepEqual(refused, [
      { line: 1, why: `rule:${id} exists with other fields, and an import edits no record.` },
    ]);
    await write(store, id, { content: 'edited' });
    assert.equal((await imported(copy, exportedRecords(store))).unchanged, 1);
  });

  test('restores a deleted rule under another id', async (t) => {
    const { store, id } = await sample(t);
    const lines = [...exportedRecords(store)];
    const takenBack = { family: 'userinterface', id, action: 'invalidate' } as const;
    await commit(store, { ...takenBack, data: { rows: [1] } });
    for (const expected of [1, 0]) assert.equal((await imported(store, lines)).imported, expected);
    const [back, ...more] = rulesOf(store);
    assert.deepEqual([back?.path, more.length], ['/a', 0]);
    assert.notEqual(back?.id, id);
    await commit(store, { ...takenBack, data: { rows: [2] } });
    assert.equal(store.of(storedRules).rule(id)?.rule.path, '/a', 'and that can be undone as ever');
  });

  test('keeps both a field and the value of that name that waits', async (t) => {
    const { store, id } = await sample(t);
    await write(store, id, { lang: 'en', rve: 1 });
    await write(store, id, { lang: 5, kind: 'blog', _unknowns_: { colour: { deep: [null] } } });
    const { rule } = store.of(storedRules).rule(id) ?? {};
    assert.deepEqual(rule?._unknowns_, { lang: 5, kind: 'blog', colour: { deep: [null] } });
    const copy = await scratchStore(t);
    await imported(copy, exportedRecords(store));
    assert.deepEqual(copy.of(storedRules).rule(id)?.rule, rule);
  });
});

test('an export keeps valid values that wait', async (t) => {
  const { store, id } = await sample(t);
  await write(store, id, { engine: 'html' });
  await write(store, id, { kind: 'resolve', lang: 'de' });
  await write(store, id, { engine: 'template', table: 't' });
  const change = { family: 'userinterface', id, action: 'invalidate' } as const;
  await commit(store, { ...change, data: { rows: [3] } });
  const { rule } = store.of(storedRules).rule(id) ?? {};
  assert.deepEqual([rule?.kind, rule?.engine], ['content', 'html']);
  assert.deepEqual(rule?._unknowns_, { engine: 'template', table: 't' });
  const copy = await scratchStore(t);
  await imported(copy, exportedRecords(store));
  assert.deepEqual(copy.of(storedRules).rule(id)?.rule, rule);
});

suite('an export of the history', () => {
  test('has every change in order, and whether it was invalidated', async (t) => {
    const store = await scratchStore(t);
    const data = { name: 'ci', scopes: ['read'], hash: 'f'.repeat(64), created: '2026' };
    await commit(store, { family: 'key', id: 'key', action: 'insert', data });
    await commit(store, inserted('a', { path: '/a' }), edited('a', { lang: 'en' }));
    const [mark] = await commit(store, {
      family: 'userinterface',
      id: 'a',
      action: 'invalidate',
      data: { rows: [3] },
    });
    const rows = [...exportedHistory(store)].map((line) => JSON.parse(line) as JsonObject);
    const changes = [1, 2, 3, 4].map((seq) => store.change(seq) as unknown as Change);
    const { hash: _hash, ...open } = data;
    assert.deepEqual(rows, [
      { ...changes[0], data: open },
      changes[1],
      withoutData(changes[2], mark?.dtu_stored),
      changes[3],
    ]);
  });
});

test('an export of the history is a snapshot, even if changes are reverted meanwhile', async (t) => {
  const store = await scratchStore(t);
  const invalidate = (id: string, ...rows: number[]) =>
    commit(store, { family: 'userinterface', id, action: 'invalidate', data: { rows } });
  await commit(store, inserted('a', { path: '/a' }), inserted('b', { path: '/b' }));
  await commit(store, edited('a', { lang: 'en' }), edited('b', { lang: 'en' }));
  await invalidate('b', 4);
  const expected = [...exportedHistory(store)];
  const lines = exportedHistory(store)[Symbol.iterator]();
  const first = lines.next().value ?? '';
  await invalidate('a', 3);
  await invalidate('b', 5);
  assert.deepEqual([first, ...{ [Symbol.iterator]: () => lines }], expected);
});

function withoutData(change: Change | undefined, invalidated: string | undefined) {
  const { data, ...row } = change ?? assert.fail();
  return { ...row, invalidated, data_invalidated: data };
}

const path = fc
  .array(
    fc.constantFrom('a', '%25', '%41', ' ', 'ä', '%C3%A4', '%3F', '%23', '[', '|', '𝄞', '/', '+'),
  )
  .map((parts) => `/x${parts.join('')}`);
const anything = fc.constantFrom<Json>(1, 'x', '𝄞"\\', {}, { a: [null] }, false, '');
const field = fc.oneof(
  fc.tuple(
    fc.constant('path'),
    fc.oneof(
      path,
      path.map((text) => `${text}*`),
    ),
  ),
  fc.tuple(fc.constant('kind'), fc.constantFrom<Json>(...ruleKinds, 'blog')),
  fc.tuple(fc.constant('origin'), fc.constantFrom<Json>('*', 'HTTP://Bücher.example:80', 'x')),
  fc.tuple(
    fc.constant('content'),
    fc.oneof(fc.string(), fc.constant({ base64: 'AAEC' }), anything),
  ),
  fc.tuple(fc.constant('designed_at'), fc.constantFrom<Json>('2026-01-02T03:04+05:00', 'soon')),
  fc.tuple(fc.constant('lang'), fc.constantFrom<Json>('EN-gb', '!')),
  fc.tuple(fc.constant('rve'), fc.oneof(fc.double({ noNaN: true }), anything)),
  fc.tuple(fc.constant('enginedata'), fc.constantFrom<Json>({ html: 'x' }, { source: 1 }, 'x')),
  fc.tuple(
    fc.constantFrom(
      'engine',
      'table',
      'vk',
      'a',
      'v',
      'id',
      '__proto__',
      '_unknowns_',
      'constructor',
    ),
    fc.oneof(anything, fc.constant('html')),
  ),
);
const sent = fc
  .array(field, { minLength: 1, maxLength: 5 })
  .map((entries): JsonObject => Object.fromEntries(entries));

test('an export and its import give equal rules after any writes', async (t) => {
  const property = fc.asyncProperty(
    fc.array(fc.tuple(fc.nat(2), sent), { minLength: 1, maxLength: 8 }),
    async (writes) => {
      const [store, copy] = [await scratchStore(t), await scratchStore(t)];
      const ids = [uuidv7(), uuidv7(), uuidv7()];
      for (const [which, fields] of writes) {
        const id = ids[which] ?? '';
        const first =
          store.of(storedRules).rule(id) === undefined ? { path: '/x', content: 'x' } : {};
        // JSON has no infinity, and only one zero.
        const asJson = JSON.parse(JSON.stringify({ ...first, ...fields })) as JsonObject;
        try {
          await write(store, id, asJson);
        } catch (thrown) {
          assert.ok(thrown instanceof Failure);
        }
      }
      const lines = [...exportedRecords(store)];
      const count = lines.length;
      assert.deepEqual(await imported(copy, lines), { imported: count, unchanged: 0, refused: [] });
      assert.deepEqual(rulesOf(copy), rulesOf(store));
      assert.deepEqual(await imported(store, lines), {
        imported: 0,
        unchanged: count,
        refused: [],
      });
      assert.deepEqual([...exportedRecords(copy)].length, count);
      await Promise.all([store.close(), copy.close()]);
    },
  );
  await fc.assert(property, { numRuns: randomRuns(100) });
});
