import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Release } from '../../../src/core/fair/shared-limit.ts';
import {
  AttemptLimiter,
  TurnBudget,
  bodiesInFlightBytesMax,
  deliveriesInFlightMax,
  largeBodiesInFlightBytesMax,
  preparedPerTurnBytesMax,
  smallBodyBytesMax,
  wakeCostBytes,
} from '../../../src/modules/webhooks/attempt-limiter.ts';

/** A turn of the event loop without a limit. */
const endless = { isSpent: false, spend: () => undefined, wakeLater: () => undefined };

suite('attempts in flight', () => {
  const sender = (wake: () => void = () => undefined) => ({ wake });

  test('wait for a free slot; each free slot wakes one sender', () => {
    const limiter = new AttemptLimiter(endless);
    const woken: string[] = [];
    const waits = (name: string, receiver: string, isBusy: boolean) => {
      const one = sender(() => {
        woken.push(name);
        if (isBusy) limiter.acquire(one, 1, receiver);
      });
      assert.equal(limiter.acquire(one, 1, receiver), undefined);
      assert.equal(limiter.isQueued(one), true);
      return one;
    };
    const releases: Release[] = [];
    for (let taken = 0; taken < deliveriesInFlightMax; taken += 1) {
      const release = limiter.acquire(sender(), 1, `receiver ${taken}`);
      assert.ok(release !== undefined);
      releases.push(release);
    }
    const senders = [
      waits('done', 'a', false),
      waits('first', 'b', true),
      waits('second', 'c', true),
    ];
    assert.deepEqual(woken, []);
    releases[0]?.();
    assert.deepEqual(
      woken,
      ['done', 'first'],
      'a sender without messages leaves the slot to the next one',
    );
    releases[1]?.();
    assert.deepEqual(woken, ['done', 'first', 'second']);
    assert.ok(!senders.some((one) => limiter.isQueued(one)));
    releases[2]?.();
    assert.ok(limiter.acquire(sender(), 1, 'late') !== undefined);
  });

  test('to slow receivers leave room for a healthy one, with long bodies and with short ones', () => {
    for (const bytes of [100, smallBodyBytesMax, 1_000_000]) {
      const limiter = new AttemptLimiter(endless);
      for (const slow of ['slow.example', 'slower.example', 'slowest.example']) {
        while (limiter.acquire(sender(), bytes, slow) !== undefined);
      }
      assert.ok(limiter.acquire(sender(), bytes, 'healthy.example') !== undefined, `${bytes}`);
    }
  });

  test('with long bodies leave room for short ones, and all together are limited', () => {
    const limiter = new AttemptLimiter(endless);
    const long = largeBodiesInFlightBytesMax / 3;
    const take = (bytes: number, receiver: string): boolean =>
      limiter.acquire(sender(), bytes, receiver) !== undefined;
    for (const receiver of ['a', 'b', 'c']) assert.equal(take(long, receiver), true);
    assert.equal(take(smallBodyBytesMax + 1, 'd'), false);
    let shortBytes = 0;
    for (let at = 0; take(smallBodyBytesMax, `${at}`); at += 1) shortBytes += smallBodyBytesMax;
    assert.equal(shortBytes, bodiesInFlightBytesMax - largeBodiesInFlightBytesMax);
  });

  test('with the longest bodies are not passed over for ever', () => {
    const limiter = new AttemptLimiter(endless);
    const begun = new AbortController();
    const longest = sender(() => {
      const release = limiter.acquire(longest, largeBodiesInFlightBytesMax, 'longest');
      if (release !== undefined) begun.abort();
    });
    const open: Release[] = [];
    const more = (at: number): void => {
      const one = sender(() => {
        const release = limiter.acquire(one, largeBodiesInFlightBytesMax / 4, `${at}`);
        if (release !== undefined) open.push(release);
      });
      one.wake();
    };
    for (let at = 0; at < 4; at += 1) more(at);
    longest.wake();
    let rounds = 0;
    for (; !begun.signal.aborted && rounds < 1_000; rounds += 1) {
      more(rounds + 4);
      open.shift()?.();
    }
    assert.ok(rounds < 200, `${rounds} others`);
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
        if (limiter.acquire(sender, bytes, `${name}`) === undefined) return;
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
