import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite, test } from 'node:test';
import { EventLoop, turnMs } from '../../../src/core/fair/turns.ts';

/** An event loop with a clock that only moves when the work does something. */
function clockedLoop() {
  let ms = 0;
  const loop = new EventLoop(() => ms);
  const log: string[] = [];
  /** Takes some milliseconds for each step. */
  const work = async (caller: string, name: string, steps: number): Promise<void> => {
    const turns = loop.turns(caller);
    for (let step = 0; step < steps; step += 1) {
      if (turns.isOver()) await turns.next();
      log.push(name);
      ms += turnMs / 2;
    }
  };
  return { loop, log, work };
}

suite('turns on the event loop', () => {
  test('a piece of work waits before its first step, and after each turn', async () => {
    const { log, work } = clockedLoop();
    const done = work('one', 'a', 4);
    assert.deepEqual(log, []);
    await nextTurn();
    assert.deepEqual(log, ['a', 'a']);
    await nextTurn();
    assert.deepEqual(log, ['a', 'a', 'a', 'a']);
    await done;
  });

  test('one turn of the event loop has one turn of all callers together', async () => {
    const { log, work } = clockedLoop();
    const all = Promise.all(Array.from({ length: 20 }, (_, at) => work(`c${at}`, `${at}`, 2)));
    for (let turn = 1; turn <= 20; turn += 1) {
      await nextTurn();
      assert.equal(log.length, 2 * turn);
    }
    await all;
  });

  test('a caller with one piece of work waits for no more than one turn of each other', async () => {
    const { log, work } = clockedLoop();
    const many = Array.from({ length: 50 }, () => work('many', 'm', 4));
    const few = Array.from({ length: 2 }, () => work('few', 'f', 4));
    await Promise.all(few);
    assert.ok(log.length <= 16 + 2, `${log.length} steps`);
    await Promise.all(many);
    assert.equal(log.length, 52 * 4);
  });

  test('long pieces of a caller end in their order, and a short one does not wait', async () => {
    const { log, work } = clockedLoop();
    const ended: string[] = [];
    const end = (name: string) => () => void ended.push(name);
    const long = ['a', 'b', 'c'].map((name) => work('one', name, 100).then(end(name)));
    while (log.length < 60) await nextTurn();
    await work('one', 'short', 4).then(end('short'));
    await Promise.all(long);
    assert.deepEqual(ended, ['short', 'a', 'b', 'c']);
    // Those that came later have not run in between, but for their first turns.
    assert.ok(log.indexOf('c', log.lastIndexOf('b')) > log.lastIndexOf('a'));
  });

  test('work that nobody waits for any more takes no turn', async () => {
    const { loop, log, work } = clockedLoop();
    const caller = new AbortController();
    const gone = Array.from({ length: 100 }, () => loop.turns('one', caller.signal).next());
    const settled = Promise.allSettled(gone);
    const left = work('one', 'left', 1);
    caller.abort();
    await nextTurn();
    assert.deepEqual(log, ['left']);
    await left;
    assert.ok((await settled).every(({ status }) => status === 'rejected'));
  });
});
