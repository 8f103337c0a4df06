import type { StoredRule } from '../../../../src/modules/rules/rule.ts';
import type { StoredRow } from '../../../../src/modules/tables/row.ts';
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import type { Draft } from '../../../../src/core/log/change.ts';
import type { FeedSlice, RecordChange, Store } from '../../../../src/core/log/store.ts';
import { openDatabases, openEnvironment } from '../../../../src/core/log/databases.ts';
import { transactSync } from '../../../../src/core/log/environment.ts';
import { LogFeed, feedSliceRowsMax } from '../../../../src/core/log/write/feed.ts';
import { temporaryFolder } from '../../../folder.ts';
import { commit, edited, inserted, ofOneMachine, scratchStore, startWriter } from '../scratch.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';

type RuleChange = RecordChange<StoredRule>;

const never = new AbortController().signal;
const rules = ['userinterface'] as const;

/** Follows a log after a seq until it has read another seq. */
async function follow(store: Store, after: number, until: number): Promise<readonly RuleChange[]> {
  const changes: RuleChange[] = [];
  for (let upTo = after; upTo < until;) {
    const slice = await store.changesAfter(rules, upTo, never);
    assert.ok(slice.upTo > upTo && slice.upTo - upTo <= feedSliceRowsMax);
    upTo = slice.upTo;
    changes.push(...(slice.changes as readonly RuleChange[]));
  }
  return changes;
}

function seqsOf(changes: readonly RecordChange[]): readonly number[] {
  return changes.map(({ change }) => change.seq);
}

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

async function commitMany(store: Store, count: number): Promise<void> {
  const drafts = range(1, count).map((n) => inserted(`r${n}`, { path: `/${n}` }));
  await commit(store, ...drafts);
}

suite('a follower of the log', () => {
  test('shares its timer with all that wait with the same interval', async (t) => {
    const store = await scratchStore(t);
    const started = t.mock.method(globalThis, 'setInterval');
    const cleared = t.mock.method(globalThis, 'clearInterval');
    const [first, second] = [new AbortController(), new AbortController()];
    const waits = [
      store.waitForRows(0, first.signal, 60_000),
      store.waitForRows(0, second.signal, 60_000),
    ];
    assert.equal(started.mock.callCount(), 1);
    first.abort();
    await waits[0];
    assert.equal(cleared.mock.callCount(), 0);
    second.abort();
    await waits[1];
    assert.equal(cleared.mock.callCount(), 1);
  });

  test('gets the error of a look at the log; no timer ends the process', async (t) => {
    const store = await scratchStore(t);
    const environment = openEnvironment(await temporaryFolder(t));
    t.after(() => environment.close());
    const databases = transactSync(environment, () => openDatabases(environment));
    let isBroken = false;
    const failing = {
      ...databases,
      meta: new Proxy(databases.meta, {
        get(meta, name, receiver) {
          if (isBroken) throw new Error('EIO: the disk');
          return Reflect.get(meta, name, receiver) as unknown;
        },
      }),
    };
    const feed = new LogFeed(failing, store);
    isBroken = true;
    await assert.rejects(feed.waitForRows(0, never, 1), /EIO: the disk/);
    // A commit that wakes the followers is acknowledged all the same.
    const waiting = feed.waitForRows(0, never, 60_000);
    feed.wake();
    await assert.rejects(waiting, /EIO: the disk/);
  });

  test('gets existing changes, then those that are written while it waits', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('a', { path: '/a' }), edited('a', { lang: 'en' }));
    const [first, second] = await follow(store, 0, 2);
    assert.equal(first?.before, undefined);
    assert.equal(first?.after?.rule.lang, undefined);
    assert.deepEqual(second?.before, first?.after);
    assert.equal(second?.after?.rule.lang, 'en');
    assert.deepEqual(second.change, store.change(2));

    // Without the poll, which only changes of other processes need.
    t.mock.timers.enable({ apis: ['setInterval'] });
    const waiting = [store.changesAfter(rules, 2, never), store.changesAfter(rules, 2, never)];
    await setImmediate();
    await commit(store, edited('a', { lang: 'de' }));
    for (const { changes, upTo } of await Promise.all(waiting)) {
      assert.deepEqual(seqsOf(changes), [3]);
      assert.equal(upTo, 3);
    }
  });

  test('gets each record as it was before and after each change', async (t) => {
    const write = fc.record({
      id: fc.constantFrom('a', 'b', 'c'),
      isEdit: fc.boolean(),
      path: fc.constantFrom('/1', '/2', '/3*'),
      back: fc.nat({ max: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(write, { maxLength: 40 }), fc.nat(), async (writes, from) => {
        const store = await scratchStore(t);
        for (const { id, isEdit, path, back } of writes) {
          await commit(store, draftFor(store, { id, isEdit, path, back }));
        }
        const newest = store.seq();
        const after = Math.min(from % 40, newest);
        const changes = await follow(store, after, newest);
        assert.deepEqual(seqsOf(changes), range(after + 1, newest));
        for (const { change, before, after } of changes) {
          const { id, seq } = change;
          assert.deepEqual(change, store.change(seq));
          assert.deepEqual(before, store.of(storedRules).ruleAt(id, seq - 1));
          assert.deepEqual(after, store.of(storedRules).ruleAt(id, seq));
        }
        await store.close();
      }),
      { numRuns: 25 },
    );
  });

  test('skips changes of keys', async (t) => {
    const store = await scratchStore(t);
    const key: Draft = { family: 'key', id: 'k', action: 'insert', data: { hash: 'h' } };
    await commit(store, inserted('a', { path: '/' }), key);
    assert.deepEqual(seqsOf(await follow(store, 0, 2)), [1]);
    assert.deepEqual(await store.changesAfter(rules, 1, never), { changes: [], upTo: 2 });
  });

  test('gets the changes of the families that it follows, with the records', async (t) => {
    const store = await scratchStore(t);
    const table = { name: 'lamps', schema: {}, key: 'sku' };
    const row = { family: 'record', id: 'r' } as const;
    await commit(store, { family: 'table', id: 't', action: 'insert', data: table });
    await commit(store, inserted('a', { path: '/' }));
    await commit(store, { ...row, action: 'insert', data: { table: 'lamps', sku: 'A', price: 1 } });
    // A follower of another family has read these changes before.
    assert.deepEqual(seqsOf(await follow(store, 0, 3)), [2]);
    await commit(store, { ...row, action: 'edit', data: { price: 2 } });
    await commit(store, { ...row, action: 'invalidate', data: { rows: [4] } });
    await commit(store, { ...row, action: 'invalidate', data: { rows: [3] } });
    const both = await store.changesAfter(['record', 'table'], 0, never);
    assert.deepEqual(
      both.changes.map(({ change }) => [change.seq, change.family]),
      [1, 3, 4, 5, 6].map((seq) => [seq, seq === 1 ? 'table' : 'record']),
    );
    const { changes, upTo } = await store.changesAfter(['record'], 0, never);
    assert.equal(upTo, 6);
    const prices = (changes as readonly RecordChange<StoredRow>[]).map(({ before, after }) => [
      before?.row.price,
      after?.row.price,
    ]);
    assert.deepEqual(prices, [
      [undefined, 1],
      [1, 2],
      [2, 1],
      [1, undefined],
    ]);
    assert.deepEqual(await store.changesAfter([], 0, never), { changes: [], upTo: 6 });
  });

  test('gets the changes of another process, in the order of seq', ofOneMachine, async (t) => {
    const folder = await temporaryFolder(t);
    const store = await scratchStore(t, { folder });
    const { lines, closed } = startWriter(t, [folder, '200']);
    const last = 200 * 2 + 1 + 50;
    const followers = [follow(store, 0, last), follow(store, 0, last)];
    let mine = 0;
    for await (const line of lines) {
      if (!/^\d/.test(line) || mine === 50) continue;
      mine += 1;
      await commit(store, inserted(`mine ${mine}`, { path: '/mine' }));
    }
    assert.equal(await closed, 0);
    for (const changes of await Promise.all(followers)) {
      assert.deepEqual(seqsOf(changes), range(1, last));
      assert.equal(changes.filter(({ change }) => change.by === 'test').length, 50);
    }
  });
});

/** An insert if the record does not exist, else an edit or an invalidate of some of its rows. */
function draftFor(
  store: Store,
  { id, isEdit, path, back }: { id: string; isEdit: boolean; path: string; back: number },
): Draft {
  const rows = store.rows('userinterface', id).map(({ seq }) => seq);
  if (rows.length === 0) return inserted(id, { path });
  if (isEdit && store.of(storedRules).rule(id) !== undefined)
    return edited(id, { path, rve: back });
  const data = { rows: rows.slice(-1 - back) };
  return { family: 'userinterface', id, action: 'invalidate', data };
}

suite('a long log', () => {
  test('is read in slices, one in each turn of the event loop for all followers together', async (t) => {
    const store = await scratchStore(t);
    const slices = 8;
    await commitMany(store, slices * feedSliceRowsMax);
    let turns = 0;
    const over = new AbortController();
    const isOver = () => over.signal.aborted;
    const counting = (async () => {
      for (; !isOver(); turns += 1) await setImmediate();
    })();
    const newest = store.seq();
    const followers = range(1, 5).map(() => follow(store, 0, newest));
    for (const changes of await Promise.all(followers)) assert.equal(changes.length, newest);
    over.abort();
    await counting;
    assert.ok(turns >= slices * followers.length, `${turns} turns`);
  });

  test('with large rows is read in shorter slices', async (t) => {
    const store = await scratchStore(t);
    for (const n of range(1, 4)) {
      await commit(store, inserted(`r${n}`, { path: '/', content: 'x'.repeat(1 << 19) }));
    }
    assert.equal((await store.changesAfter(rules, 0, never)).upTo, 1, 'the row and its record');
    assert.deepEqual(seqsOf(await follow(store, 0, 4)), [1, 2, 3, 4]);
  });

  test('is read even if a row is larger than the cache', async (t) => {
    const store = await scratchStore(t);
    const content = 'x'.repeat(15 << 20);
    await commit(store, inserted('a', { path: '/', content }));
    for (const lang of ['de', 'en', 'fr']) {
      await commit(store, edited('a', { lang, content: lang + content }));
    }
    const changes = await follow(store, 0, 4);
    assert.deepEqual(
      changes.map(({ before, after }) => [before?.rule.lang, after?.rule.lang]),
      [
        [undefined, undefined],
        [undefined, 'de'],
        ['de', 'en'],
        ['en', 'fr'],
      ],
    );
    assert.ok(changes.every(({ after }) => contentLength(after) >= content.length));
  });
});

function contentLength(stored: RuleChange['after']): number {
  const content = stored?.rule.content;
  return typeof content === 'string' ? content.length : 0;
}

suite('a wait for changes', () => {
  test('shares one timer, which runs only while a task waits', async (t) => {
    const started = t.mock.method(globalThis, 'setInterval');
    const cleared = t.mock.method(globalThis, 'clearInterval');
    const store = await scratchStore(t);
    await commitMany(store, 3);
    await follow(store, 0, 3);
    assert.equal(started.mock.callCount(), 0);
    const ends = range(1, 3).map(() => new AbortController());
    const waits = ends.map(({ signal }) => store.changesAfter(rules, 3, signal));
    await setImmediate();
    assert.equal(started.mock.callCount(), 1);
    const empty: FeedSlice = { changes: [], upTo: 3 };
    ends[0]?.abort();
    assert.deepEqual(await waits[0], empty);
    assert.equal(cleared.mock.callCount(), 0);
    for (const end of ends) end.abort();
    assert.deepEqual(await Promise.all(waits), [empty, empty, empty]);
    assert.equal(cleared.mock.callCount(), 1);
    assert.equal(cleared.mock.calls[0]?.arguments[0], started.mock.calls[0]?.result);
  });

  test('with an aborted signal returns no changes', async (t) => {
    const store = await scratchStore(t);
    await commitMany(store, 1);
    const over = AbortSignal.abort();
    assert.deepEqual(await store.changesAfter(rules, 0, over), { changes: [], upTo: 0 });
    assert.deepEqual(await store.changesAfter(rules, 1, over), { changes: [], upTo: 1 });
  });

  test('rejects with unavailable when the store closes', async (t) => {
    const store = await scratchStore(t);
    const waiting = assert.rejects(store.changesAfter(rules, 0, never), { code: 'unavailable' });
    const before = assert.rejects(store.changesAfter(rules, 0, never), { code: 'unavailable' });
    await store.close();
    await Promise.all([waiting, before]);
    await assert.rejects(store.changesAfter(rules, 0, never), { code: 'unavailable' });
  });
});
