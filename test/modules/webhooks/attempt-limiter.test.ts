import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite, test } from 'node:test';
import {
  deliveriesInFlightMax,
  bodiesInFlightBytesMax,
  largeBodiesInFlightBytesMax,
  preparedPerTurnBytesMax,
  smallBodyBytesMax,
  wakeCostBytes,
} from '../../../src/modules/webhooks/limits.ts';
import { AttemptLimiter, TurnBudget } from '../../../src/modules/webhooks/attempt-limiter.ts';

/** A turn of the event loop without a limit. */
const endless = { isSpent: false, spend: () => undefined, wakeLater: () => undefined };

suite('attempts in flight', () => {
  test('wait in a queue for a free slot; each free slot wakes one sender', () => {
    const limiter = new AttemptLimiter(endless);
    const woken: string[] = [];
    const sender = (name: string, isBusy: boolean) => ({
      wake() {
        woken.push(name);
        if (isBusy) limiter.acquire(this, 1);
      },
    });
    for (let taken = 0; taken < deliveriesInFlightMax; taken += 1) {
      assert.equal(limiter.acquire(sender('early', true), 1), true);
    }
    const senders = [sender('done', false), sender('first', true), sender('second', true)];
    for (const inLine of senders) {
      assert.equal(limiter.isQueued(inLine), false);
      assert.equal(limiter.acquire(inLine, 1), false);
      assert.equal(limiter.isQueued(inLine), true);
    }
    assert.deepEqual(woken, []);
    limiter.release(1);
    assert.deepEqual(
      woken,
      ['done', 'first'],
      'a sender without messages leaves the slot to the next one',
    );
    limiter.release(1);
    assert.deepEqual(woken, ['done', 'first', 'second']);
    assert.ok(!senders.some((one) => limiter.isQueued(one)));
    limiter.release(1);
    assert.equal(limiter.acquire(sender('late', true), 1), true);
  });

  test('with long bodies leave room for short ones, and all together are limited', () => {
    const limiter = new AttemptLimiter(endless);
    const sender = () => ({ wake: () => undefined });
    const long = largeBodiesInFlightBytesMax / 3;
    for (let taken = 0; taken < 3; taken += 1) assert.equal(limiter.acquire(sender(), long), true);
    assert.equal(limiter.acquire(sender(), smallBodyBytesMax + 1), false);
    let shortBytes = 0;
    while (limiter.acquire(sender(), smallBodyBytesMax)) shortBytes += smallBodyBytesMax;
    assert.equal(shortBytes, bodiesInFlightBytesMax - largeBodiesInFlightBytesMax);
  });

  test('with the longest bodies come before shorter ones that arrived later', () => {
    const limiter = new AttemptLimiter(endless);
    const order: string[] = [];
    const sender = (name: string, bytes: number) => ({
      wake() {
        if (limiter.acquire(this, bytes)) order.push(name);
      },
    });
    const half = largeBodiesInFlightBytesMax / 2;
    const quarter = half / 2;
    limiter.acquire(sender('', half), half);
    limiter.acquire(sender('', half), half);
    for (const [name, bytes] of [
      ['longest', 2 * half],
      ['shorter', quarter],
    ] as const) {
      sender(name, bytes).wake();
    }
    limiter.release(half);
    assert.deepEqual(order, [], 'the first in the queue does not fit yet');
    limiter.release(half);
    assert.deepEqual(order, ['longest']);
    limiter.release(2 * half);
    assert.deepEqual(order, ['longest', 'shorter']);
  });
});

test('senders that are due together are woken over several turns of the event loop, in order', async () => {
  const turnBudget = new TurnBudget();
  const woken: number[] = [];
  const senders = Array.from({ length: 1_000 }, (_, name) => ({
    wake: () => {
      woken.push(name);
    },
  }));
  for (const sender of senders) turnBudget.wakeLater(sender);
  let most = 0;
  while (woken.length < senders.length) {
    const before = woken.length;
    await nextTurn();
    most = Math.max(most, woken.length - before);
  }
  assert.ok(most <= preparedPerTurnBytesMax / wakeCostBytes, `${most} in one turn`);
  assert.deepEqual(
    woken,
    senders.map((_, name) => name),
  );
  assert.ok(!senders.some((sender) => turnBudget.isWaiting(sender)));
});

test('attempts beyond the limit of a turn of the event loop start in later turns, in order', async () => {
  const limiter = new AttemptLimiter(new TurnBudget());
  const bytes = preparedPerTurnBytesMax / 4;
  const begun: number[] = [];
  let inTurn = 0;
  for (let name = 0; name < 40; name += 1) {
    const sender = {
      wake() {
        if (!limiter.acquire(sender, bytes)) return;
        begun.push(name);
        inTurn += 1;
      },
    };
    sender.wake();
  }
  const most: number[] = [];
  while (begun.length < 40) {
    most.push(inTurn);
    inTurn = 0;
    await nextTurn();
  }
  assert.deepEqual(
    begun,
    Array.from({ length: 40 }, (_, name) => name),
  );
  assert.ok(Math.max(...most) <= 4, `${Math.max(...most)} in one turn`);
});
