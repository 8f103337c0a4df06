import assert from 'node:assert/strict';
import type { Worker } from 'node:cluster';
import { suite, test } from 'node:test';
import {
  type CountedByLeader,
  type CountedByWorker,
  pendingRepliesMax,
} from '../../../src/cli/serve/worker-messages.ts';
import { LeaderTokens, WorkerTokens } from '../../../src/cli/serve/worker-metrics.ts';

suite('tokens of a worker whose leading process does not reply', () => {
  const order = { rate: 'a', client: 'address 192.0.2.1', intervalMs: 60_000, burst: 5 };

  test('come from its own buckets, and few requests wait', async () => {
    const sent: number[] = [];
    const tokens = new WorkerTokens((message) => {
      if (message.kind === 'take-token') sent.push(message.request);
    });
    const waiting = Array.from({ length: pendingRepliesMax }, () => tokens.take(order));
    assert.equal(sent.length, pendingRepliesMax);
    const further = await Promise.all(Array.from({ length: 7 }, () => tokens.take(order)));
    assert.equal(sent.length, pendingRepliesMax);
    assert.equal(further.filter(({ isTaken }) => isTaken).length, 5);

    const taken = { isTaken: true, left: 1, waitMs: 0, fullMs: 0 };
    for (const request of sent) tokens.handle({ kind: 'token', request, taken });
    assert.deepEqual(new Set(await Promise.all(waiting)), new Set([taken]));
    const next = tokens.take(order);
    assert.equal(sent.length, pendingRepliesMax + 1);
    tokens.handle({ kind: 'token', request: sent.at(-1) ?? 0, taken });
    assert.deepEqual(await next, taken);
  });
});

suite('what clients may not do too often', () => {
  const order = { rate: 'wrong keys', client: '192.0.2.1', intervalMs: 3_600_000, burst: 20 };

  /** Eight workers, whose messages arrive at once, or only when they are delivered. */
  function startWorkers({ isLate }: { readonly isLate: boolean }) {
    const leader = new LeaderTokens();
    const sent: (() => void)[] = [];
    const post = (deliver: () => void): void => {
      if (isLate) sent.push(deliver);
      else deliver();
    };
    const processes: Worker[] = [];
    const workers = Array.from({ length: 8 }, (_, at) => {
      const worker = new WorkerTokens((message) => {
        post(() => {
          const from = processes[at];
          if (from !== undefined) leader.count(message as CountedByWorker, from, processes);
        });
      });
      const send = (message: CountedByLeader): void => {
        worker.handleCounted(message);
      };
      processes.push({ isConnected: () => true, send } as unknown as Worker);
      return worker;
    });
    const count = (times: number): number => {
      let taken = 0;
      for (let at = 0; at < times; at += 1) {
        if (workers[at % workers.length]?.counter.take(order).isTaken === true) taken += 1;
      }
      return taken;
    };
    const deliver = (): void => {
      for (const one of sent.splice(0)) one();
    };
    return { workers, count, deliver };
  }

  test('is counted for all workers together', () => {
    const { workers, count } = startWorkers({ isLate: false });
    // A worker learns what others have counted with its own next one, or when all is used up.
    assert.equal(count(200), 20);
    assert.equal(count(200), 0);
    workers[3]?.counter.giveBack(order);
    assert.ok(workers[3]?.counter.take(order).isTaken === true, 'what did not count after all');
  });

  test('that arrives at many workers at once is counted as a debt', () => {
    const { workers, count, deliver } = startWorkers({ isLate: true });
    assert.equal(count(800), 160, 'before any of them knows of the others');
    deliver();
    assert.equal(count(800), 0);
    const waits = workers.map(({ counter }) => counter.take(order).waitMs / 3_600_000);
    assert.ok(Math.min(...waits) > 140, 'the others wait until it is paid');
  });
});
