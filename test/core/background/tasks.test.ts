import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { BackgroundTasks, taskWellMs, type Task } from '../../../src/core/background/tasks.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { Failure } from '../../../src/core/values/failure.ts';

/** Tasks with a clock that runs while they wait, and what they log. */
function startTasks() {
  const clock = { ms: 0 };
  const lines: string[] = [];
  const pauses: number[] = [];
  const tasks = new BackgroundTasks({
    log: {
      ...silentLog,
      info: (_fields, message) => void lines.push(`info ${message}`),
      warn: (_fields, message) => void lines.push(`warn ${message}`),
      error: (fields, message) => {
        lines.push(`error ${message}${'err' in fields ? ' (with its stack)' : ''}`);
      },
    },
    now: () => Date.UTC(2026, 0, 1) + clock.ms,
    monotonicMs: () => clock.ms,
    wait: (ms) => {
      pauses.push(ms);
      return Promise.resolve();
    },
  });
  return { tasks, clock, lines, pauses };
}

const named = { name: 'letters', title: 'The sending of letters' };

/** A task whose calls end as the outcomes say, in order; it resolves when there are no more. */
function taskOf(outcomes: readonly ((well: () => void) => void)[]): Task {
  const left = [...outcomes];
  return {
    ...named,
    run: async (_signal, well) => {
      await Promise.resolve();
      left.shift()?.(well);
    },
  };
}

const fails = (error: unknown) => (): never => {
  throw error;
};

suite('a task in the background', () => {
  test('begins again after each error, which the log has once', async () => {
    const { tasks, lines, pauses } = startTasks();
    const full = fails(new Failure('unavailable', 'The disk is full.'));
    const { over } = tasks.start({
      ...taskOf([
        full,
        full,
        fails(new TypeError('x is not a function')),
        (well) => {
          well();
        },
      ]),
      meanwhile: 'They wait.',
    });
    await over;
    assert.deepEqual(lines, [
      'warn The sending of letters stopped: The disk is full. They wait. Retrying in 1 s.',
      'error The sending of letters stopped: x is not a function. They wait. Retrying in 4 s. (with its stack)',
      'info The sending of letters goes on.',
    ]);
    for (const [at, most] of [1_000, 2_000, 4_000].entries()) {
      const ms = pauses[at] ?? 0;
      assert.ok(ms >= most / 2 && ms <= most, `${ms}`);
    }
    assert.deepEqual(tasks.states(), [
      { task: 'letters', state: 'running', failures: 0, problem: null, next: null },
    ]);
    const [counter] = tasks.metrics();
    assert.equal(counter?.name, 'waymark_task_failures_total');
    assert.deepEqual(counter.samples, [{ labels: { task: 'letters' }, value: 3 }]);
  });

  test('waits for 5 minutes at most, and for a second again once it has worked', async () => {
    const { tasks, clock, lines, pauses } = startTasks();
    const lost = fails(new Failure('unavailable', 'Nobody answers.'));
    const later = (): never => {
      clock.ms += taskWellMs;
      return lost();
    };
    await tasks.start(taskOf([...Array.from({ length: 12 }, () => lost), later, lost])).over;
    assert.ok((pauses[11] ?? 0) >= 150_000 && (pauses[11] ?? 0) <= 300_000);
    assert.ok((pauses[12] ?? 0) <= 1_000);
    // The same reason is news again after it was gone.
    assert.equal(lines.filter((line) => line.startsWith('warn')).length, 2);
  });

  test('says that it waits, why and until when', async () => {
    const nowMs = Date.UTC(2026, 0, 1);
    const waits = Promise.withResolvers<undefined>();
    const tasks = new BackgroundTasks({
      ...{ log: silentLog, now: () => nowMs, monotonicMs: () => 0 },
      wait: async (_ms, signal) => {
        waits.resolve(undefined);
        await once(signal, 'abort');
      },
    });
    const works = tasks.start({
      ...named,
      run: (signal) => once(signal, 'abort').then(() => undefined),
    });
    const { stop, over } = tasks.start(taskOf([fails('no disk')]));
    await waits.promise;
    const next = '2026-01-01T00:00:01.000Z';
    assert.deepEqual(tasks.states(), [
      { task: 'letters', state: 'waiting', failures: 1, problem: 'no disk.', next },
    ]);
    assert.equal(tasks.metrics()[1]?.samples[0]?.value, 1);
    await stop();
    await over;
    assert.equal(tasks.metrics()[1]?.samples[0]?.value, 0);
    await works.stop();
  });

  test('ends no other one of its name, and all end at a stop', async () => {
    const { tasks } = startTasks();
    const ended: string[] = [];
    const until = (what: string): Task => ({
      ...named,
      run: (signal) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => {
            ended.push(what);
            if (what === 'rejects') reject(new Error('stopped'));
            else resolve();
          });
        }),
    });
    const first = tasks.start(until('first'));
    tasks.start(until('rejects'));
    await first.stop();
    assert.deepEqual(ended, ['first']);
    await tasks.stop();
    assert.deepEqual(ended, ['first', 'rejects']);
    assert.deepEqual(tasks.metrics()[0]?.samples[0]?.value, 0);
  });
});
