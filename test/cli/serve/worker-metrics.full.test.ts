import assert from 'node:assert/strict';
import type { Worker } from 'node:cluster';
import { once } from 'node:events';
import { test } from 'node:test';
import { WorkerMetrics, LeaderMetrics } from '../../../src/cli/serve/worker-metrics.ts';
import type {
  MetricsFromLeader,
  MetricsFromWorker,
} from '../../../src/cli/serve/worker-messages.ts';
import { type ProcessState, joinedStates } from '../../../src/core/background/tasks.ts';
import { singleMetric } from '../../../src/core/report/metrics.ts';
import { testTasks } from '../../core/background/test-tasks.ts';

function stateOf(value: number): ProcessState {
  return { metrics: [singleMetric('gauge', 'x', { help: 'X.', value })], tasks: [] };
}

test('metrics leave out a worker that does not reply; without a leader, a worker has its own', async () => {
  const failed = Promise.withResolvers<unknown>();
  const tasks = testTasks(undefined, async (_ms, signal) => {
    failed.resolve(undefined);
    await once(signal, 'abort');
  });
  const run = () => Promise.reject(new Error('no ink'));
  const broken = tasks.start({ name: 'letters', title: 'The sending of letters', run });
  await failed.promise;
  const leader = new LeaderMetrics(tasks);
  const workers = new Map<Worker, number>();
  const addWorker = (number: number, isStuck: boolean): WorkerMetrics => {
    const own = () => stateOf(number);
    const tell = (message: MetricsFromWorker): void => {
      if (!isStuck) void leader.handle(message, worker, workers);
    };
    const all = new WorkerMetrics({ send: tell, own });
    const send = (message: MetricsFromLeader): void => {
      all.handle(message);
    };
    const worker = { isConnected: () => true, send } as unknown as Worker;
    workers.set(worker, number);
    return all;
  };
  const [one, two] = [addWorker(1, false), addWorker(2, false)];
  const stuck = addWorker(3, true);
  const told = await Promise.all([one.gather(), two.gather(), stuck.gather()]);
  const shown = told.map((processes) =>
    processes.map(({ name, metrics }) => [name, metrics[0]?.samples[0]?.value]),
  );
  const answering = [
    ['worker-1', 1],
    ['worker-2', 2],
    ['leader', 1],
  ];
  assert.deepEqual(shown, [answering, answering, [[undefined, 3]]]);
  const [task] = joinedStates(told[0].flatMap((process) => process.tasks));
  assert.deepEqual([task?.task, task?.state, task?.problem], ['letters', 'waiting', 'no ink.']);
  await broken.stop();
});

test('a worker that stops replies with its last metrics', () => {
  let isOpen = true;
  const own = () => {
    if (!isOpen) throw new Error('the database is closed');
    return stateOf(1);
  };
  const told: MetricsFromWorker[] = [];
  const worker = new WorkerMetrics({ send: (message) => void told.push(message), own });
  worker.handle({ kind: 'get-metrics', request: 1 });
  worker.freeze();
  isOpen = false;
  worker.handle({ kind: 'get-metrics', request: 2 });
  const values = told.map(
    (message) => 'own' in message && message.own.metrics[0]?.samples[0]?.value,
  );
  assert.deepEqual(values, [1, 1]);
});
