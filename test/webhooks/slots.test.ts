import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deliveriesInFlightMax } from '../../src/model/limits.ts';
import { Slots, type Waker } from '../../src/webhooks/slots.ts';

test('who finds no room is woken when there is, in turn, and no more of them than there is', () => {
  const slots = new Slots();
  const woken: string[] = [];
  const line: Waker[] = [];
  const sender = (name: string, isBusy: boolean) => ({
    wake() {
      woken.push(name);
      if (isBusy) slots.take(this);
    },
  });
  for (let taken = 0; taken < deliveriesInFlightMax; taken += 1) {
    assert.equal(slots.take(sender('early', true)), true);
  }
  for (const [name, isBusy] of [
    ['done', false],
    ['first', true],
    ['second', true],
  ] as const) {
    const inLine = sender(name, isBusy);
    assert.equal(slots.isInLine(inLine), false);
    assert.equal(slots.take(inLine), false);
    assert.equal(slots.isInLine(inLine), true);
    line.push(inLine);
  }
  assert.deepEqual(woken, []);
  slots.free();
  assert.deepEqual(woken, ['done', 'first'], 'one that needs no room leaves it to the next');
  slots.free();
  assert.deepEqual(woken, ['done', 'first', 'second']);
  assert.ok(!line.some((one) => slots.isInLine(one)));
  slots.free();
  assert.equal(slots.take(sender('late', true)), true);
});
