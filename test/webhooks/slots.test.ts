import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite, test } from 'node:test';
import { deliveriesInFlightMax } from '../../src/webhooks/limits.ts';
import {
  bodiesInFlightBytesMax,
  largeBodiesInFlightBytesMax,
  preparedPerTurnBytesMax,
  smallBodyBytesMax,
  wakeCostBytes,
} from '../../src/webhooks/limits.ts';
import { Slots } from '../../src/webhooks/slots.ts';
import { Turns } from '../../src/webhooks/turns.ts';

/** A turn of the event loop that never ends and has room for all. */
const endless = { isSpent: false, spend: () => undefined, wakeLater: () => undefined };

suite('attempts under way', () => {
  test('who finds no room is woken when there is, in turn, and no more of them than there is', () => {
    const slots = new Slots(endless);
    const woken: string[] = [];
    const sender = (name: string, isBusy: boolean) => ({
      wake() {
        woken.push(name);
        if (isBusy) slots.take(this, 1);
      },
    });
    for (let taken = 0; taken < deliveriesInFlightMax; taken += 1) {
      assert.equal(slots.take(sender('early', true), 1), true);
    }
    const senders = [sender('done', false), sender('first', true), sender('second', true)];
    for (const inLine of senders) {
      assert.equal(slots.isInLine(inLine), false);
      assert.equal(slots.take(inLine, 1), false);
      assert.equal(slots.isInLine(inLine), true);
    }
    assert.deepEqual(woken, []);
    slots.free(1);
    assert.deepEqual(woken, ['done', 'first'], 'one that needs no room leaves it to the next');
    slots.free(1);
    assert.deepEqual(woken, ['done', 'first', 'second']);
    assert.ok(!senders.some((one) => slots.isInLine(one)));
    slots.free(1);
    assert.equal(slots.take(sender('late', true), 1), true);
  });

  test('long bodies leave room for short ones, and all together are bounded', () => {
    const slots = new Slots(endless);
    const sender = () => ({ wake: () => undefined });
    const long = largeBodiesInFlightBytesMax / 3;
    for (let taken = 0; taken < 3; taken += 1) assert.equal(slots.take(sender(), long), true);
    assert.equal(slots.take(sender(), smallBodyBytesMax + 1), false);
    let shortBytes = 0;
    while (slots.take(sender(), smallBodyBytesMax)) shortBytes += smallBodyBytesMax;
    assert.equal(shortBytes, bodiesInFlightBytesMax - largeBodiesInFlightBytesMax);
  });

  test('the longest body has its turn before shorter ones that come later', () => {
    const slots = new Slots(endless);
    const order: string[] = [];
    const sender = (name: string, bytes: number) => ({
      wake() {
        if (slots.take(this, bytes)) order.push(name);
      },
    });
    const half = largeBodiesInFlightBytesMax / 2;
    const quarter = half / 2;
    slots.take(sender('', half), half);
    slots.take(sender('', half), half);
    for (const [name, bytes] of [
      ['longest', 2 * half],
      ['shorter', quarter],
    ] as const) {
      sender(name, bytes).wake();
    }
    slots.free(half);
    assert.deepEqual(order, [], 'the one at the head does not fit yet');
    slots.free(half);
    assert.deepEqual(order, ['longest']);
    slots.free(2 * half);
    assert.deepEqual(order, ['longest', 'shorter']);
  });
});

test('senders whose time has come at once are woken over several turns, in order', async () => {
  const turns = new Turns();
  const woken: number[] = [];
  const senders = Array.from({ length: 1_000 }, (_, name) => ({
    wake: () => {
      woken.push(name);
    },
  }));
  for (const sender of senders) turns.wakeLater(sender);
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
  assert.ok(!senders.some((sender) => turns.isWaiting(sender)));
});

test('what one turn of the event loop has no time for is done in the next ones, in order', async () => {
  const slots = new Slots(new Turns());
  const bytes = preparedPerTurnBytesMax / 4;
  const begun: number[] = [];
  let inTurn = 0;
  for (let name = 0; name < 40; name += 1) {
    const sender = {
      wake() {
        if (!slots.take(sender, bytes)) return;
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
