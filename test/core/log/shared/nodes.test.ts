import { families } from '../../../../src/families.ts';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { uuidv7 } from 'uuidv7';
import { makeFirstKey } from '../../../../src/cli/serve/assembly/first-start.ts';
import { openDatabases, openEnvironment } from '../../../../src/core/log/databases.ts';
import { openStore } from '../../../../src/core/log/open.ts';
import { Notices, decodeEntry, emptyContent } from '../../../../src/core/log/shared/entry.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import type { Call } from '../../../../src/core/operations/operation.ts';
import { streamFrom } from '../../../../src/core/operations/records/stream.ts';
import { silentLog } from '../../../../src/core/report/log.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import type { ApiKey } from '../../../../src/core/values/key.ts';
import { Turns } from '../../../../src/modules/cluster/log/shared-follower.ts';
import { lossesMax } from '../../../../src/modules/cluster/log/shared-writer.ts';
import {
  TaskTurn,
  deliveryTask,
  doInTurn,
  taskTakeOverMs,
} from '../../../../src/modules/cluster/log/task-turn.ts';
import { readLogRows } from '../../../../src/modules/nodes/operations/log.ts';
import { temporaryFolder } from '../../../folder.ts';
import { commit, edited, inserted } from '../scratch.ts';
import { MemoryLog } from './memory-log.ts';
import { openNode } from './open-node.ts';
import { deliveriesPart } from '../../../../src/modules/webhooks/log/delivery-log.ts';
import { membership } from '../../../../src/modules/cluster/log/join.ts';
import { rowLogPart } from '../../../../src/modules/nodes/log/open-row-log.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';

/** Increments the `lang` of a rule: an edit that depends on the value that it reads. */
async function countUp(store: Store, id: string): Promise<number> {
  return store.commit('test', (reads) => {
    const next = Number(reads.of(storedRules).rule(id)?.rule.lang ?? 0) + 1;
    return { drafts: [edited(id, { lang: String(next) })], answer: () => next };
  });
}

suite('nodes with one shared log', () => {
  test('decide each write on the newest state, whichever node makes it', async (t) => {
    const log = new MemoryLog();
    const nodes = await Promise.all([1, 2, 3].map(() => openNode(t, log)));
    const [first = assert.fail()] = nodes;
    await commit(first, inserted('a', { path: '/a', lang: '0' }));
    const counted: number[] = [];
    await Promise.all(
      nodes.map(async (node) => {
        for (let time = 0; time < 40; time += 1) counted.push(await countUp(node, 'a'));
      }),
    );
    assert.deepEqual(
      counted.toSorted((a, b) => a - b),
      Array.from({ length: 120 }, (_, at) => at + 1),
    );
    assert.ok(log.superseded > 0, 'the nodes were in the way of each other');
    for (const node of nodes) await node.shared?.catchUp();
    const digests = await Promise.all(
      nodes.map((node) => node.part(rowLogPart).digest(node.seq())),
    );
    assert.equal(first.seq(), 121);
    assert.equal(new Set(digests).size, 1);
    for (const node of nodes) {
      for await (const { differences } of node.part(upkeep).verify())
        assert.deepEqual(differences, []);
    }
  });

  test('find an idempotency key that another node has claimed', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await openNode(t, log), await openNode(t, log)];
    const insertOnce = (store: Store): Promise<string> =>
      store.commit('test', (reads) => {
        const known = reads.vkClaim('order 1');
        if (known !== undefined) return { drafts: [], answer: () => known.id };
        const id = uuidv7();
        const vk = { vk: 'order 1', requestHash: 'ab' };
        return { drafts: [{ ...inserted(id, { path: `/${id}` }), vk }], answer: () => id };
      });
    const ids = await Promise.all([one, other, one, other].map(insertOnce));
    assert.equal(new Set(ids).size, 1);
    assert.equal(one.counts().rules, 1);
  });

  test('do not refuse a write because of an old state', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await openNode(t, log), await openNode(t, log)];
    await commit(one, inserted('a', { path: '/a' }));
    const found = await other.commit('test', (reads) => {
      if (reads.of(storedRules).rule('a') === undefined)
        throw new Failure('not_found', 'There is no rule a.');
      return { drafts: [], answer: () => true };
    });
    assert.equal(found, true);
  });

  test('show a large transaction as a whole, or not at all', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await openNode(t, log), await openNode(t, log)];
    const drafts = Array.from({ length: 5_000 }, (_, at) => inserted(uuidv7(), { path: `/${at}` }));
    const committed = commit(one, ...drafts);
    await other.waitForRows(0, t.signal);
    assert.equal(other.seq(), 5_000);
    await committed;
  });

  test('let a node that is slow have its turn', async (t) => {
    const log = new MemoryLog();
    const [slow, quick] = [await openNode(t, log, { isSlow: true }), await openNode(t, log)];
    await commit(quick, inserted('a', { path: '/a', lang: '0' }));
    const late = commit(slow, inserted('b', { path: '/b' }));
    // Without turns, the quick node always appends before the slow one.
    while (slow.of(storedRules).rule('b') === undefined) await countUp(quick, 'a');
    await late;
    assert.ok(log.superseded >= lossesMax);
  });

  test('go on if one of them cannot do what a notice says', async (t) => {
    const log = new MemoryLog();
    const notices = new Notices(silentLog);
    const done: string[] = [];
    await notices.applyBy(({ name }) => {
      if (name === 'purge') return Promise.reject(new Error('The disk of the cache is broken.'));
      done.push(name);
      return Promise.resolve();
    });
    const one = await openNode(t, log);
    const other = await openNode(t, log, { heard: (notice) => notices.receive(notice) });
    await one.shared?.tell({ name: 'purge', data: {} });
    await one.shared?.tell({ name: 'other', data: {} });
    await commit(one, inserted('a', { path: '/a' }));
    await other.shared?.catchUp();
    assert.equal(other.of(storedRules).rule('a')?.rule.path, '/a');
    assert.deepEqual(done, ['other']);
  });

  test('tell each other something while one of them writes all the time', async (t) => {
    const log = new MemoryLog();
    const [quick, other] = [await openNode(t, log), await openNode(t, log)];
    await commit(quick, inserted('a', { path: '/a', lang: '0' }));
    let isTold = false;
    const telling = other.shared?.tell({ name: 'purge', data: {} }).then(() => {
      isTold = true;
    });
    // `isTold` changes meanwhile.
    const writing = async (): Promise<void> => {
      while (!isTold) await countUp(quick, 'a');
    };
    await Promise.all([telling, ...[1, 2, 3].map(writing)]);
    assert.ok(log.superseded < 100, 'it is not late again and again');
  });

  test('answer what writes nothing, although another node writes all the time', async (t) => {
    const log = new MemoryLog();
    const quick = await openNode(t, log);
    await commit(quick, inserted('a', { path: '/a', lang: '0' }));
    let asked = 0;
    const beforeEnd = async (): Promise<void> => {
      asked += 1;
      assert.ok(asked < 20, 'it asks for the end of the log again and again');
      await countUp(quick, 'a');
    };
    const node = await openNode(t, log, { beforeEnd });
    const read = node.commit('test', (reads) => ({
      drafts: [],
      answer: () => reads.of(storedRules).rule('a')?.rule.lang,
    }));
    const refused = node.commit('test', (): never => {
      throw new Failure('invalid', 'It is refused.');
    });
    assert.ok(Number(await read) >= 1, 'it has seen what was written before');
    await assert.rejects(refused, { code: 'invalid' });
  });

  test('refuse only the write that is too large for an entry', async (t) => {
    const log = new MemoryLog();
    const node = await openNode(t, log);
    log.entryBytesMax = 10_000;
    const large = inserted('b', { path: '/b', content: 'x'.repeat(20_000) });
    const [before, refused, behind] = await Promise.allSettled([
      commit(node, inserted('a', { path: '/a' })),
      commit(node, large),
      commit(node, inserted('c', { path: '/c' })),
    ]);
    assert.equal(before.status, 'fulfilled');
    assert.equal(refused.status, 'rejected');
    assert.equal(behind.status, 'fulfilled');
    assert.equal(node.seq(), 2);
  });

  test('keep what was stored although the answer was lost, and recognise a repeat', async (t) => {
    const log = new MemoryLog();
    const node = await openNode(t, log);
    const vk = { vk: 'v', requestHash: 'ab' };
    const insert = (): Promise<unknown> =>
      node.commit('test', (reads) => {
        if (reads.vkClaim('v') !== undefined) return { drafts: [], answer: () => 'again' };
        return { drafts: [{ ...inserted('a', { path: '/a' }), vk }], answer: () => 'new' };
      });
    log.next('unanswered');
    await assert.rejects(insert(), { code: 'unavailable' });
    assert.equal(await insert(), 'again');
    log.next('lost');
    await assert.rejects(commit(node, inserted('b', { path: '/b' })), { code: 'unavailable' });
    await commit(node, inserted('b', { path: '/b' }));
    assert.equal(node.seq(), 2);
  });

  test('refuse writes without the shared log, and go on reading', async (t) => {
    const log = new MemoryLog();
    const folder = await temporaryFolder(t);
    const node = await openNode(t, log, { folder });
    await commit(node, inserted('a', { path: '/a' }));
    log.isReachable = false;
    await assert.rejects(commit(node, inserted('b', { path: '/b' })), { code: 'unavailable' });
    assert.equal(node.of(storedRules).rule('a')?.rule.path, '/a');
    await node.close();
    const alone = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
    t.after(() => alone.close());
    await assert.rejects(commit(alone, inserted('b', { path: '/b' })), { code: 'conflict' });
    await alone.part(membership).leave();
    await commit(alone, inserted('b', { path: '/b' }));
    assert.equal(alone.seq(), 2);
  });

  for (const [what, text] of [
    ['is no entry', 'hello'],
    ['lacks its lists', '{"rows":0,"member":"x"}'],
    [
      'has a row that does not follow',
      '{"rows":1,"member":"x","claims":[],"puts":[],"notices":[]}\n{"seq":9}',
    ],
  ] as const) {
    test(`stop at what another program has written, and say where: it ${what}`, async (t) => {
      const log = new MemoryLog();
      const stopped = Promise.withResolvers<unknown>();
      const failed = (error: unknown): void => {
        if (error instanceof Failure) stopped.resolve(error);
      };
      const node = await openNode(t, log, { failed });
      await commit(node, inserted('a', { path: '/a' }));
      const { position } = log.entries.at(-1) ?? assert.fail();
      const at = await log.open().append(Buffer.from(text), position);
      await stopped.promise;
      const { isConnected, problem = '' } = node.shared?.state() ?? assert.fail();
      assert.equal(isConnected, false);
      assert.match(problem, new RegExp(`^Entry ${at} of the log .* change the password of NATS`));
      await assert.rejects(commit(node, inserted('b', { path: '/b' })), {
        code: 'unavailable',
        message: /server\.status says why/,
      });
      assert.deepEqual([node.seq(), node.of(storedRules).rule('a')?.rule.path], [1, '/a']);
    });
  }

  test('begin with the history of one of them, also if the upload is interrupted', async (t) => {
    const folder = await temporaryFolder(t);
    const alone = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
    const vk = { vk: 'v', requestHash: 'ab' };
    await commit(alone, { ...inserted('a', { path: '/a' }), vk }, inserted('b', { path: '/b' }));
    await commit(alone, edited('a', { content: 'x'.repeat(600_000) }));
    await commit(alone, edited('a', { lang: 'de' }));
    const log = new MemoryLog(alone.part(rowLogPart).identity().id);
    const digest = await alone.part(rowLogPart).digest(4);
    await alone.close();
    await assert.rejects(openNode(t, log, { folder }), { code: 'conflict' });
    log.next('stored', 'lost');
    await assert.rejects(openNode(t, log, { folder, uploadProgress: () => undefined }), {
      code: 'unavailable',
    });
    const seen: number[] = [];
    await openNode(t, log, { folder, uploadProgress: (rows) => seen.push(rows) });
    assert.deepEqual(seen, [4], 'only what was missing');
    const other = await openNode(t, log);
    await other.shared?.catchUp();
    assert.equal(await other.part(rowLogPart).digest(4), digest);
    assert.equal(other.vkClaim('v')?.seq, 1);
    await assert.rejects(openNode(t, new MemoryLog(), { folder }), { code: 'conflict' });
  });

  test('have the generation of the history with which the cluster begins', async (t) => {
    const folder = await temporaryFolder(t);
    const promoted = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
    await promoted
      .part(rowLogPart)
      .follow({ id: uuidv7(), generation: 3 }, 'https://centre.example');
    await promoted.part(rowLogPart).complete();
    const log = new MemoryLog(uuidv7());
    await promoted.part(rowLogPart).promote(log.id);
    const { generation } = promoted.part(rowLogPart).identity();
    assert.equal(generation, 4);
    await promoted.close();
    await openNode(t, log, { folder, uploadProgress: () => undefined });
    const other = await openNode(t, log);
    await other.shared?.catchUp();
    assert.equal(other.part(rowLogPart).identity().generation, generation);
  });

  test('serve a follower and a subscriber that have seen more at another node', async (t) => {
    const log = new MemoryLog();
    const one = await openNode(t, log);
    const [change] = await commit(one, inserted('a', { path: '/a' }));
    const place = { log: log.id, seq: 1, txn: change?.txn ?? '' };
    const status = { version: '1' };
    const call = { caller: { keyId: 'k' } } as Call;
    const key = { node: 'counter' } as ApiKey;
    const rowsOf = async (store: Store, v: typeof place): Promise<unknown> =>
      readLogRows.run({ store: { ...store, key: () => key }, status })({ ...v, ...key }, call);
    const late = await openNode(t, log, { isLate: true });
    assert.equal(late.seq(), 0);
    await rowsOf(late, place);
    const other = await openNode(t, log, { isLate: true });
    const all = { family: 'userinterface', matches: () => true } as const;
    const streamed = await streamFrom(other, 1, all);
    assert.deepEqual('data' in streamed && streamed.data, { seq: 1 });
    await assert.rejects(rowsOf(other, { ...place, seq: 2 }), { code: 'conflict' });
  });

  test('make one first admin key, also if all start at the same time', async (t) => {
    const log = new MemoryLog();
    const nodes = await Promise.all([1, 2, 3].map(() => openNode(t, log)));
    const keys = await Promise.all(nodes.map((node) => makeFirstKey(node)));
    assert.equal(keys.filter((key) => key !== undefined).length, 1);
    assert.equal(nodes[0]?.keys().length, 1);
  });

  test('all apply a notice, in the order of the log', async (t) => {
    const log = new MemoryLog();
    const heard: string[] = [];
    const [one] = [
      await openNode(t, log, { heard: ({ name }) => heard.push(`one ${name}`) }),
      await openNode(t, log, { heard: ({ name }) => heard.push(`other ${name}`) }),
    ];
    await one.shared?.tell({ name: 'cache.purge', data: { prefix: '/' } });
    assert.ok(heard.includes('one cache.purge'));
    assert.ok(heard.includes('other cache.purge'));
  });
});

suite('deliveries of nodes with one shared log', () => {
  const node = { name: 'a', role: 'central' } as const;

  async function withHook(store: Store): Promise<number> {
    const data = { event: ['a.b'], url: 'https://x.example/', method: 'POST', filter: {} };
    const [change] = await commit(store, { family: 'webhook', id: 'h', action: 'insert', data });
    return change?.seq ?? 0;
  }

  function event(store: Store, id: string): Promise<unknown> {
    const data = { type: 'a.b', occurred_at: '2026-01-01T00:00:00.000Z', data: {} };
    return commit(store, { family: 'event', id, action: 'insert', data });
  }

  test('are made by one node, and another goes on when that ends', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await openNode(t, log), await openNode(t, log)];
    const queue = await withHook(one);
    await event(one, 'e1');
    await one.part(deliveriesPart).begin();
    await assert.rejects(other.part(deliveriesPart).begin(), { code: 'conflict' });
    await one.part(deliveriesPart).dispatch(node);
    const at = new Date().toISOString();
    const record = { logSeqs: [2], attempt: 1, tries: 1, at, outcome: 'failed', ms: 1 } as const;
    const due = { ...record, dueMs: 5 };
    await one.part(deliveriesPart).record({ queue, n: 1, record: due, wasDueMs: undefined }, 1);
    await one.part(deliveriesPart).storeClock(7, [{ fromMs: 1, toMs: 2 }]);
    await assert.rejects(other.part(deliveriesPart).storeClock(8), { code: 'conflict' });
    await one.part(deliveriesPart).end();
    await other.part(deliveriesPart).begin();
    await event(one, 'e2');
    await other.shared?.catchUp();
    await other.part(deliveriesPart).dispatch(node);
    assert.deepEqual(other.part(deliveriesPart).waiting(queue, 9), [{ n: 1, dueMs: 5 }]);
    assert.deepEqual(other.part(deliveriesPart).queued(queue, 0, 9), [{ n: 2, logSeq: 3 }]);
    assert.deepEqual(other.part(deliveriesPart).outages(), [{ fromMs: 1, toMs: 2 }]);
    await assert.rejects(one.part(deliveriesPart).storeClock(9), { code: 'conflict' });
    await one.shared?.catchUp();
    assert.deepEqual(one.part(deliveriesPart).queued(queue, 0, 9), [{ n: 2, logSeq: 3 }]);
    await other.part(deliveriesPart).end();
  });

  test('go on at once in the same folder, after its process was killed', async (t) => {
    const log = new MemoryLog();
    const folder = await temporaryFolder(t);
    const one = await openNode(t, log, { folder });
    await one.part(deliveriesPart).begin();
    await one.close();
    const again = await openNode(t, log, { folder });
    await again.part(deliveriesPart).begin();
    await again.part(deliveriesPart).end();
  });

  test('are made by one of two nodes, if one began with a backup of the other', async (t) => {
    const log = new MemoryLog();
    const one = await openNode(t, log);
    await withHook(one);
    const folder = join(await temporaryFolder(t), 'copy');
    await one.part(upkeep).backUp(folder);
    const other = await openNode(t, log, { folder });
    await one.part(deliveriesPart).begin();
    await assert.rejects(other.part(deliveriesPart).begin(), { code: 'conflict' });
    await one.part(deliveriesPart).end();
    await other.part(deliveriesPart).begin();
    await other.part(deliveriesPart).end();
  });

  test('are not repeated or left out if an append gets no answer', async (t) => {
    const log = new MemoryLog();
    const store = await openNode(t, log);
    const queue = await withHook(store);
    await store.part(deliveriesPart).begin();
    await event(store, 'e1');
    log.next('lost');
    await assert.rejects(store.part(deliveriesPart).dispatch(node), { code: 'unavailable' });
    await store.part(deliveriesPart).dispatch(node);
    await event(store, 'e2');
    log.next('unanswered');
    await assert.rejects(store.part(deliveriesPart).dispatch(node), { code: 'unavailable' });
    await store.part(deliveriesPart).dispatch(node);
    const queued = store.part(deliveriesPart).queued(queue, 0, 9);
    assert.deepEqual(queued, [
      { n: 1, logSeq: 2 },
      { n: 2, logSeq: 3 },
    ]);
    await store.part(deliveriesPart).end();
  });
});

suite('a task of nodes with one shared log', () => {
  test('is done by one node, and by another one when that releases it', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await openNode(t, log), await openNode(t, log)];
    const [first, second] = [one.shared?.task('hosts'), other.shared?.task('hosts')];
    assert.ok(first !== undefined && second !== undefined);
    const lost = (): void => undefined;
    await first.take(lost);
    await assert.rejects(second.take(lost), { code: 'conflict', message: /the task hosts/ });
    await other.shared?.task('certificates').take(lost);
    assert.equal(second.holder(), first.holder());
    await first.release();
    await second.take(lost);
    assert.notEqual(second.holder(), undefined);
    await second.release();
    assert.equal(second.holder(), undefined);
    await other.shared?.task('certificates').take(lost);
  });

  test('ends at a node when it stops, and goes on at another one', async (t) => {
    const log = new MemoryLog();
    const [one, other] = [await openNode(t, log), await openNode(t, log)];
    const stop = new AbortController();
    const begun: string[] = [];
    const run = (store: Store, name: string): { begins: Promise<void>; ends: Promise<void> } => {
      const { promise: begins, resolve } = Promise.withResolvers<undefined>();
      const work = async (signal: AbortSignal): Promise<void> => {
        begun.push(name);
        resolve(undefined);
        await new Promise((done) => {
          signal.addEventListener('abort', done, { once: true });
        });
      };
      const task = store.shared?.task('hosts');
      assert.ok(task !== undefined);
      const signal = name === 'one' ? stop.signal : t.signal;
      return { begins, ends: doInTurn(task, work, signal) };
    };
    const first = run(one, 'one');
    await first.begins;
    const second = run(other, 'other');
    stop.abort();
    await first.ends;
    // It ends with its store.
    second.ends.catch(() => undefined);
    await second.begins;
    assert.deepEqual(begun, ['one', 'other']);
  });
});

test('the turn of a node ends with its next entry, also if it has only deliveries', async () => {
  const [node, other] = [new Turns('a'), new Turns('b')];
  const claim = { ...emptyContent, member: 'a', notices: [node.claim()] };
  other.see(claim);
  let isWaiting = true;
  const waited = other.others().then(() => {
    isWaiting = false;
  });
  other.see({ ...emptyContent, member: 'b', puts: [['delivery', 'clock', '1']] });
  await setImmediate();
  assert.equal(isWaiting, true);
  other.see({ ...emptyContent, member: 'a', puts: [['delivery', 'clock', '1']] });
  await setImmediate();
  assert.equal(isWaiting, false);
  await waited;
});

test('an entry with members of a newer version is refused', () => {
  const { rows: _rows, ...withoutRows } = emptyContent;
  const data = Buffer.from(JSON.stringify({ rows: 0, ...withoutRows, files: [] }));
  assert.throws(() => decodeEntry(data), { code: 'conflict', message: /newer version/ });
});

test('one node takes over the deliveries of another that gives no sign', async (t) => {
  const folder = await temporaryFolder(t);
  const environment = openEnvironment(folder);
  const databases = openDatabases(environment);
  t.after(() => environment.close());
  const at = { ms: 0 };
  const turn = new TaskTurn(databases, deliveryTask, {
    monotonicMs: () => at.ms,
    catchUp: () => Promise.resolve(),
    member: 'm',
  });
  await turn.ready();
  databases.delivery.putSync('writer', 'w@other');
  await assert.rejects(turn.ready(), { code: 'conflict' });
  at.ms = taskTakeOverMs - 1;
  await assert.rejects(turn.ready(), { code: 'conflict' });
  databases.delivery.putSync('alive', '2');
  at.ms += 1;
  await assert.rejects(turn.ready(), { code: 'conflict' });
  at.ms += taskTakeOverMs;
  await turn.ready();
});
