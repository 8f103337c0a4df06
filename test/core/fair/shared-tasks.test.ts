import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite, test } from 'node:test';
import { SharedLimit } from '../../../src/core/fair/shared-limit.ts';
import { SharedTasks } from '../../../src/core/fair/shared-tasks.ts';

function rig(max = 100) {
  const limit = new SharedLimit({
    ...{ what: 'tasks', held: 'short', max: 1 },
    waiting: { max, ms: 60_000 },
  });
  const tasks = new SharedTasks<string>(limit);
  const ran: string[] = [];
  const run = (name: string, client: string): Promise<string> =>
    tasks.run(name, client, async () => {
      ran.push(name);
      await nextTurn();
      if (name === 'bad') throw new Error('it failed');
      return name;
    });
  return { limit, run, ran };
}

suite('tasks that clients share', () => {
  test('run once, in the turn of the client that comes first', async () => {
    const { limit, run, ran } = rig();
    const names = Array.from({ length: 50 }, (_, at) => `${at}`);
    const first = names.map((name) => run(name, 'A'));
    // B asks for the last one of A.
    assert.equal(await run('49', 'B'), '49');
    assert.deepEqual(ran, ['0', '49']);
    assert.deepEqual(await Promise.all(first), names);
    assert.equal(ran.length, 50);
    assert.deepEqual([limit.size, limit.waiting], [0, 0]);
  });

  test('take few places for a crowd that asks for the same', async () => {
    const { limit, run, ran } = rig();
    const busy = run('busy', 'A');
    const crowd = Array.from({ length: 1_000 }, (_, at) => run('front page', `visitor ${at}`));
    assert.ok(limit.waiting < 10, `${limit.waiting} places`);
    await Promise.all([busy, ...crowd]);
    assert.deepEqual(ran, ['busy', 'front page']);
  });

  test('fail for all, and can run again', async () => {
    const { limit, run, ran } = rig();
    const both = [run('bad', 'A'), run('bad', 'B')];
    for (const one of both) await assert.rejects(one, /it failed/);
    await assert.rejects(run('bad', 'A'), /it failed/);
    assert.deepEqual(ran, ['bad', 'bad']);
    assert.equal(limit.size, 0);
  });

  test('are refused when all lines are full, but not for those who wait for them', async () => {
    const { run } = rig(3);
    const waits = ['1', '2', '3', '4'].map((name) => run(name, 'A'));
    await assert.rejects(run('5', 'A'), { code: 'unavailable' });
    assert.deepEqual(await Promise.all([...waits, run('4', 'A')]), ['1', '2', '3', '4', '4']);
  });
});
