import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { TokenBuckets } from '../../../src/core/fair/token-buckets.ts';

function bucketsAt(max?: number) {
  const clock = { nowMs: 0 };
  const buckets = new TokenBuckets({
    monotonicMs: () => clock.nowMs,
    ...(max !== undefined && { max }),
  });
  const take = (client: string, { rate = 'r', intervalMs = 1_000, burst = 3 } = {}) =>
    buckets.take({ rate, client, intervalMs, burst });
  return { clock, buckets, take };
}

suite('token buckets', () => {
  test('give the tokens of a burst at once, then one in each interval', () => {
    const { clock, take } = bucketsAt();
    const answers = [0, 0, 0, 0, 999, 1_000, 1_000, 2_500, 5_000, 5_000, 5_000, 5_000].map((at) => {
      clock.nowMs = at;
      const { isTaken, left, waitMs, fullMs } = take('a');
      return [at, isTaken, left, waitMs, fullMs];
    });
    assert.deepEqual(answers, [
      [0, true, 2, 0, 1_000],
      [0, true, 1, 0, 2_000],
      [0, true, 0, 0, 3_000],
      [0, false, 0, 1_000, 3_000],
      [999, false, 0, 1, 2_001],
      [1_000, true, 0, 0, 3_000],
      [1_000, false, 0, 1_000, 3_000],
      [2_500, true, 0, 0, 2_500],
      [5_000, true, 2, 0, 1_000],
      [5_000, true, 1, 0, 2_000],
      [5_000, true, 0, 0, 3_000],
      [5_000, false, 0, 1_000, 3_000],
    ]);
  });

  test('give no more than rate and burst, whenever they are asked', () => {
    const { clock, take } = bucketsAt();
    let seed = 7;
    const random = (): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    const takenAt: number[] = [];
    for (let asked = 0; asked < 20_000; asked += 1) {
      clock.nowMs += random() < 0.8 ? random() * 20 : random() * 2_000;
      if (take('a', { intervalMs: 600, burst: 5 }).isTaken) takenAt.push(clock.nowMs);
    }
    for (let at = 0; at + 6 < takenAt.length; at += 1) {
      const span = (takenAt[at + 6] ?? 0) - (takenAt[at] ?? 0);
      assert.ok(span >= 2 * 600 - 1, `7 tokens in ${span} ms`);
    }
    assert.ok(takenAt.length > 5_000);
  });

  test('belong to one client each', () => {
    const { take } = bucketsAt();
    for (let asked = 0; asked < 3; asked += 1) assert.ok(take('a').isTaken);
    assert.ok(!take('a').isTaken);
    assert.ok(take('b').isTaken);
  });

  test('are limited in number: nobody gets a full one by filling the memory', () => {
    const { clock, buckets, take } = bucketsAt(100);
    for (let asked = 0; asked < 3; asked += 1) take('attacker');
    for (let other = 0; other < 99; other += 1) take(`other ${other}`);
    const size = (): number => buckets.size;
    assert.equal(size(), 100);
    // Three of the newcomers share one bucket, and the others find it empty.
    const newcomers = Array.from({ length: 50 }, (_, at) => take(`new ${at}`).isTaken);
    assert.deepEqual(newcomers.filter(Boolean).length, 3);
    assert.ok(!take('attacker').isTaken);
    assert.ok(size() <= 101);
    clock.nowMs = 60_000;
    assert.ok(take('new 1').isTaken);
    for (let other = 0; other < 50; other += 1) assert.ok(take(`late ${other}`).isTaken);
    assert.ok(size() <= 101);
  });

  test('of one network that names many clients leave room for those of others', () => {
    const { clock, buckets } = bucketsAt(100);
    const take = (client: string, from: string): boolean =>
      buckets.take({ rate: 'r', client, from, intervalMs: 1_000, burst: 3 }).isTaken;
    for (let at = 0; at < 1_000; at += 1) take(`invented ${at}`, 'A');
    assert.ok(!take('one more', 'A'), 'its further clients share a bucket');
    for (const from of ['B', 'C', 'D']) {
      const taken = [0, 1, 2, 3].map(() => take(`value of ${from}`, from));
      assert.deepEqual(taken, [true, true, true, false]);
    }
    assert.ok(!take('value of B', 'A'), 'a client has one bucket, whoever names it');
    assert.ok(buckets.size <= 55, `${buckets.size}`);
    clock.nowMs = 60_000;
    for (let at = 0; at < 40; at += 1) assert.ok(take(`late ${at}`, 'A'));
  });

  test('of a rate do not fill the memory of another rate', () => {
    const { buckets, take } = bucketsAt(100);
    take('first', { rate: 'calm' });
    for (let at = 0; at < 1_000; at += 1) take(`value ${at}`, { rate: 'flooded' });
    for (let at = 0; at < 40; at += 1) {
      const client = `visitor ${at}`;
      for (let asked = 0; asked < 3; asked += 1) assert.ok(take(client, { rate: 'calm' }).isTaken);
    }
    assert.ok(!take('one more', { rate: 'flooded' }).isTaken);
    assert.ok(buckets.size <= 102);
  });

  test('of a rate that the configuration no longer has are forgotten', () => {
    const { clock, buckets, take } = bucketsAt(100);
    for (let at = 0; at < 60; at += 1) take(`one ${at}`, { rate: 'former' });
    clock.nowMs = 60_000;
    for (let at = 0; at < 100; at += 1) assert.ok(take(`other ${at}`, { rate: 'new' }).isTaken);
    assert.equal(buckets.size, 100);
  });
});
