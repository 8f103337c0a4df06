import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { pendingRepliesMax } from '../../../src/cli/limits.ts';
import { WorkerTokens } from '../../../src/cli/serve/worker-tokens.ts';

suite('tokens of a worker whose leading process does not reply', () => {
  const order = { rate: 'a', client: 'address 192.0.2.1', intervalMs: 60_000, burst: 5 };

  test('come from its own buckets, and few requests wait', async () => {
    const sent: number[] = [];
    const tokens = new WorkerTokens(({ request }) => sent.push(request));
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
