import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { Draft } from '../../../../src/core/log/change.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { temporaryFolder } from '../../../folder.ts';
import { dumpChecked } from '../dump.ts';
import { commit, edited, inserted, scratchStore } from '../scratch.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';
import type { PastRules } from '../../../../src/modules/rules/log/reads.ts';

/** Invalidates rows of a page rule. */
function invalidated(id: string, ...rows: readonly number[]): Draft {
  return { family: 'userinterface', id, action: 'invalidate', data: { rows: [...rows] } };
}

suite('an invalidate', () => {
  test('leaves the fold of the other rows, and can itself be invalidated, repeatedly', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('a', { path: '/a' }));
    await commit(store, edited('a', { path: '/b', lang: 'en' }));
    await commit(store, edited('a', { rve: 1 }));
    await commit(store, invalidated('a', 2));
    const rule = { id: 'a', origin: '*', kind: 'content', path: '/a', rve: 1 };
    assert.deepEqual(store.of(storedRules).rule('a'), { rule, seq: 4, insertedSeq: 1 });
    assert.deepEqual(
      [
        store.of(storedRules).exactRules('*', '/a').length,
        store.of(storedRules).exactRules('*', '/b').length,
      ],
      [1, 0],
    );
    await commit(store, invalidated('a', 4));
    assert.deepEqual(store.of(storedRules).rule('a')?.rule, { ...rule, path: '/b', lang: 'en' });
    assert.equal(store.of(storedRules).rule('a')?.seq, 5);
    await commit(store, invalidated('a', 5));
    assert.deepEqual(store.of(storedRules).rule('a')?.rule, rule);
  });

  test('of the insert removes the record and keeps its history', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('a', { path: '/a' }), edited('a', { lang: 'en' }));
    const [mark] = await commit(store, invalidated('a', 1, 2));
    assert.equal(store.of(storedRules).rule('a'), undefined);
    const rows = store.history('userinterface', 'a', { before: undefined, limit: 9 });
    assert.deepEqual(
      rows.map(({ seq, invalidated: at }) => [seq, at]),
      [
        [3, undefined],
        [2, mark?.dtu_stored],
        [1, mark?.dtu_stored],
      ],
    );
    assert.deepEqual([store.inForce(1), store.inForce(3)], [false, true]);
    await commit(store, invalidated('a', 3));
    assert.equal(store.of(storedRules).rule('a')?.rule.lang, 'en');
    assert.deepEqual([store.inForce(1), store.inForce(3)], [true, false]);
  });

  test('may name rows of its own decision', async (t) => {
    const store = await scratchStore(t);
    await commit(
      store,
      inserted('a', { path: '/a' }),
      edited('a', { rve: 1 }),
      invalidated('a', 2),
    );
    assert.equal(store.of(storedRules).rule('a')?.rule.rve, undefined);
  });
});

/** The next step of a random run. */
const step = fc.record({
  what: fc.constantFrom('insert', 'edit', 'edit', 'invalidate', 'restore'),
  id: fc.constantFrom('a', 'b', 'c'),
  path: fc.constantFrom('/', '/a', '/a/*', '/ab', '/a*', '/*'),
  origin: fc.constantFrom('*', 'http://x'),
  pick: fc.nat(20),
});
type Step = ReturnType<typeof step.generate>['value'];

function draftOf(store: Store, { what, id, path, origin, pick }: Step): Draft | undefined {
  const rows = store.rows('userinterface', id);
  const exists = store.of(storedRules).rule(id) !== undefined;
  if (what === 'insert') return rows.length === 0 ? inserted(id, { path, origin }) : undefined;
  if (what === 'edit') return exists ? edited(id, { path, origin }) : undefined;
  const chosen = rows.filter(
    ({ action, seq }) => (action === 'invalidate') === (what === 'restore') && store.inForce(seq),
  );
  const picked = chosen.filter((_, at) => (pick >> (at % 5)) % 2 === 0).map(({ seq }) => seq);
  return picked.length === 0 ? undefined : invalidated(id, ...picked);
}

function stateOf(rules: PastRules) {
  const sorted = (list: readonly { readonly id: string }[]) =>
    list.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  return {
    records: ['a', 'b', 'c'].map((id) => rules.rule(id)),
    all: storedIn(rules, ''),
    afterA: storedIn(rules, 'a'),
    found: ['*', 'http://x'].flatMap((origin) =>
      ['/', '/a', '/ab', '/a/b', '/b'].map((path) => [
        sorted(rules.exactRules(origin, path)),
        sorted([...rules.wildcardRules(origin, path)].flat()),
      ]),
    ),
  };
}

function storedIn(rules: PastRules, after: string) {
  return [...rules.recordsAfter(after)].flatMap(({ stored }) => stored ?? []);
}

test('after random changes, every past state can be read, and the data is the fold of the log', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
      const folder = await temporaryFolder(t);
      let ms = Date.UTC(2026, 0, 1);
      // The clock sometimes jumps back.
      const store = await scratchStore(t, { folder, now: () => (ms += ms % 7 === 0 ? -50 : 3) });
      const states = [{ seq: 0, state: stateOf(store.of(storedRules)) }];
      for (const one of steps) {
        const draft = draftOf(store, one);
        if (draft === undefined) continue;
        const [change] = await commit(store, draft);
        states.push({ seq: change?.seq ?? 0, state: stateOf(store.of(storedRules)) });
        assert.deepEqual(store.txnSeqs(change?.txn ?? ''), {
          first: change?.seq,
          last: change?.seq,
        });
      }
      for (const { seq, state } of states)
        assert.deepEqual(stateOf(store.of(storedRules).at(seq)), state);
      for (let seq = 1; seq <= store.seq(); seq += 1) {
        const storedMs = Date.parse(store.change(seq)?.dtu_stored ?? '');
        assert.ok(store.seqAt(storedMs) >= seq);
        assert.ok(store.seqAt(storedMs - 1) < seq);
      }
      await store.close();
      await dumpChecked(folder);
    }),
    { numRuns: 25 },
  );
});
