import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TokenBuckets, bucketsMax } from '../../../src/core/fair/token-buckets.ts';

test('a million clients neither fill the memory nor refill the bucket of one', () => {
  let nowMs = 0;
  const buckets = new TokenBuckets({ monotonicMs: () => nowMs });
  const take = (client: string) =>
    buckets.take({ rate: 'api', client, intervalMs: 60_000, burst: 10 }).isTaken;
  for (let at = 0; at < 10; at += 1) assert.ok(take('address 192.0.2.1'));
  let taken = 0;
  for (let at = 0; at < 1_000_000; at += 1) {
    nowMs += 0.01;
    if (take(`field:x-client ${at}`)) taken += 1;
  }
  assert.ok(!take('address 192.0.2.1'), 'ten seconds later');
  assert.ok(buckets.size <= bucketsMax + 1);
  // Those beyond share one bucket.
  assert.equal(taken, bucketsMax - 1 + 10);
  // A minute after their last requests, buckets make room for others.
  nowMs += 120_000;
  for (let at = 0; at < 100_000; at += 1) assert.ok(take(`address ${at}`));
  assert.ok(buckets.size <= bucketsMax + 1);
});
