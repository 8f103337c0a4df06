import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { Draft, HistoryRow } from '../../../src/core/log/change.ts';
import { mergeFields } from '../../../src/core/log/change.ts';
import type { Json, JsonObject } from '../../../src/core/values/json/json.ts';
import type { Rule } from '../../../src/modules/rules/rule.ts';
import type { Store } from '../../../src/core/log/store.ts';
import { temporaryFolder } from '../../folder.ts';
import { commit, edited, inserted, scratchStore } from './scratch.ts';
import { storedRules } from '../../../src/modules/rules/log/family.ts';

suite('the history of a record', () => {
  test('is newest first, a page at a time, and of one family', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('a', { path: '/0' }), inserted('aa', { path: '/' }));
    await commit(store, inserted('a\0', { path: '/' }), inserted('b', { path: '/' }));
    for (let n = 1; n < 10; n += 1) await commit(store, edited('a', { path: `/${n}` }));
    const seqs = (before: number | undefined, limit: number, id = 'a') =>
      store.history('userinterface', id, { before, limit }).map(({ seq }) => seq);
    assert.deepEqual(seqs(undefined, 3), [13, 12, 11]);
    assert.deepEqual(seqs(11, 4), [10, 9, 8, 7]);
    assert.deepEqual(seqs(6, 9), [5, 1]);
    assert.deepEqual(seqs(1, 9), []);
    assert.deepEqual(seqs(0, 9), []);
    assert.deepEqual(seqs(2 ** 40, 1), [13]);
    assert.deepEqual(seqs(undefined, 9, 'aa'), [2]);
    assert.deepEqual(seqs(undefined, 9, 'a\0'), [3]);
    assert.deepEqual(seqs(undefined, 9, 'x'.repeat(9_999)), []);
    assert.deepEqual(store.history('key', 'a', { before: undefined, limit: 9 }), []);
    const [, , , oldest] = store.history('userinterface', 'a', { before: 8, limit: 4 });
    assert.deepEqual(oldest?.data, { origin: '*', kind: 'content', path: '/0' });
  });

  test('has the rule as it was after each change', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('a', { path: '/a', _unknowns_: { one: 1 } }));
    await commit(store, edited('a', { path: '/b', _unknowns_: { one: null } }));
    await commit(store, inserted('b', { path: '/x' }), edited('a', { lang: 'en' }));
    const base = { id: 'a', origin: '*', kind: 'content' };
    const first = { ...base, path: '/a', _unknowns_: { one: 1 } };
    assert.deepEqual(store.of(storedRules).ruleAt('a', 1), { rule: first, seq: 1, insertedSeq: 1 });
    assert.deepEqual(store.of(storedRules).ruleAt('a', 2), {
      rule: { ...base, path: '/b' },
      seq: 2,
      insertedSeq: 1,
    });
    assert.deepEqual(store.of(storedRules).ruleAt('a', 4), store.of(storedRules).rule('a'));
    assert.equal(store.of(storedRules).ruleAt('a', 0), undefined);
    assert.equal(store.of(storedRules).ruleAt('nobody', 4), undefined);
  });
});

suite('keys', () => {
  test('are found by id and hash until they are revoked; their history stays', async (t) => {
    const store = await scratchStore(t);
    const data = { name: 'ci', scopes: ['design'], hash: 'f00d', created: '2026-01-01T00:00:00Z' };
    await commit(store, { family: 'key', id: 'k', action: 'insert', data });
    await commit(store, {
      family: 'key',
      id: 'l',
      action: 'insert',
      data: { ...data, hash: 'beef' },
    });
    assert.deepEqual(store.key('k'), { id: 'k', ...data });
    assert.deepEqual(store.keyByHash('f00d'), { id: 'k', ...data });
    assert.deepEqual([store.keys().length, store.counts().keys], [2, 2]);
    await commit(store, { family: 'key', id: 'k', action: 'invalidate', data: {} });
    assert.deepEqual([store.key('k'), store.keyByHash('f00d')], [undefined, undefined]);
    assert.deepEqual(
      store.keys().map(({ id }) => id),
      ['l'],
    );
    const rows = store.history('key', 'k', { before: undefined, limit: 9 });
    assert.deepEqual(
      rows.map(({ action }) => action),
      ['invalidate', 'insert'],
    );
    await commit(store, { family: 'key', id: 'l', action: 'edit', data: { hash: 'cafe' } });
    assert.deepEqual([store.keyByHash('beef'), store.keyByHash('cafe')?.id], [undefined, 'l']);
  });
});

const characters = fc.constantFrom('/', 'a', 'b', '*', 'é', '\u{1f600}', '\0', '\ufffd');
const anyText = fc.array(characters, { maxLength: 6 }).map((parts) => parts.join(''));
/** Wildcards for a segment are compared with the store in test/modules/rules/matcher.test.ts. */
const aPath = fc
  .oneof(
    anyText.map((text) => `/${text}`),
    anyText.map((text) => `/${text}*`),
    anyText.filter((text) => text !== ''),
  )
  .filter((path) => !path.includes('/*/'));
const anOrigin = fc.constantFrom('*', 'https://a', 'https://ab');
const aFieldSet: fc.Arbitrary<JsonObject> = fc.record(
  {
    origin: anOrigin,
    path: aPath,
    kind: fc.constantFrom('content', 'resolve'),
    lang: fc.constantFrom('en', null),
    rve: fc.oneof(
      fc.constant(null),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((rve) => rve + 0),
    ),
    _unknowns_: fc.record({ x: fc.constantFrom(1, null) }, { noNullPrototype: true }),
  },
  { requiredKeys: [], noNullPrototype: true },
);

type Step = readonly {
  readonly record: number;
  readonly data: JsonObject;
  readonly path: string;
}[];
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.array(fc.record({ record: fc.nat(7), data: aFieldSet, path: aPath }), {
    minLength: 1,
    maxLength: 4,
  }),
  { maxLength: 8 },
);

/** A naive model of the store: records and rows in maps. */
class Imagined {
  readonly rules = new Map<string, { rule: Rule; seq: number; insertedSeq: number }>();
  readonly rows = new Map<string, { seq: number; action: string; data: JsonObject }[]>();
  seq = 0;

  take({ id, action, data }: Draft): void {
    this.seq += 1;
    const before = this.rules.get(id);
    const fields = mergeFields((before?.rule ?? { id }) as JsonObject, data);
    const rule = (before === undefined ? { id, ...data } : fields) as unknown as Rule;
    this.rules.set(id, { rule, seq: this.seq, insertedSeq: before?.insertedSeq ?? this.seq });
    this.rows.set(id, [{ seq: this.seq, action, data }, ...(this.rows.get(id) ?? [])]);
  }

  where(matches: (rule: Rule) => boolean): string[] {
    return [...this.rules.values()].filter(({ rule }) => matches(rule)).map(({ rule }) => rule.id);
  }
}

const isWildcard = (path: string) => path.startsWith('/') && path.endsWith('*');

function agree(store: Store, imagined: Imagined, paths: readonly string[]): void {
  assert.equal(store.seq(), imagined.seq);
  for (const [id, stored] of imagined.rules)
    assert.deepEqual(store.of(storedRules).rule(id), stored);
  for (const [id, rows] of imagined.rows) {
    const shown = store.history('userinterface', id, { before: undefined, limit: 99 });
    const bare = ({ seq, action, data }: HistoryRow) => ({ seq, action, data });
    assert.deepEqual(shown.map(bare), rows);
  }
  for (const origin of ['*', 'https://a', 'https://ab']) {
    for (const path of paths) {
      const exact = imagined.where(
        (rule) => rule.origin === origin && rule.path === path && !isWildcard(path),
      );
      assert.deepEqual(
        store
          .of(storedRules)
          .exactRules(origin, path)
          .map(({ id }) => id)
          .sort(),
        exact.sort(),
      );
      const covering = imagined.where(
        (rule) =>
          rule.origin === origin &&
          isWildcard(rule.path) &&
          path.startsWith(rule.path.slice(0, -1)),
      );
      const found = [...store.of(storedRules).wildcardRules(origin, path)].flat();
      assert.deepEqual(found.map(({ id }) => id).sort(), covering.sort());
      const lengths = found.map((candidate) => candidate.path.length);
      assert.deepEqual(
        lengths,
        lengths.toSorted((one, other) => other - one),
      );
    }
  }
}

test('reads agree with a naive model for random inserts and edits', async (t) => {
  await fc.assert(
    fc.asyncProperty(steps, fc.array(aPath, { maxLength: 6 }), async (commits, asked) => {
      const store = await scratchStore(t, { folder: await temporaryFolder(t) });
      const imagined = new Imagined();
      const paths = new Set(asked);
      for (const step of commits) {
        const known = new Set(imagined.rules.keys());
        const drafts = step.map(({ record, data, path }) => {
          const id = `record ${record}`;
          const isNew = !known.has(id);
          known.add(id);
          for (const one of [path, data.path]) {
            if (typeof one !== 'string') continue;
            paths
              .add(one)
              .add(one.slice(0, -1))
              .add(`${one.slice(0, -1)}a`);
          }
          const whole = Object.entries<Json>({ path, ...data }).filter(
            ([, value]) => value !== null,
          );
          return isNew ? inserted(id, Object.fromEntries(whole)) : edited(id, data);
        });
        await commit(store, ...drafts);
        for (const draft of drafts) imagined.take(draft);
      }
      agree(store, imagined, [...paths]);
      await store.close();
    }),
    { numRuns: 100 },
  );
});
