import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Crowd } from '../../src/server/crowd.ts';

test('an address has so many connections at a time, and no more', () => {
  const crowd = new Crowd();
  const taken = Array.from({ length: 4 }, () => crowd.enter('192.0.2.1', 3));
  assert.deepEqual(taken, [true, true, true, false]);
  assert.ok(crowd.enter('192.0.2.2', 3));
  crowd.leave('192.0.2.1');
  assert.ok(crowd.enter('192.0.2.1', 3));
  assert.ok(!crowd.enter('192.0.2.1', 3));
});

test('a network of IPv6 counts as one, in whichever form its addresses are written', () => {
  const crowd = new Crowd();
  assert.ok(crowd.enter('2001:db8::1', 2));
  assert.ok(crowd.enter('2001:db8:0:0:ffff::2', 2));
  assert.ok(!crowd.enter('2001:db8::3', 2));
  assert.ok(crowd.enter('2001:db8:0:1::1', 2));
  crowd.leave('2001:db8::ffff');
  assert.ok(crowd.enter('2001:db8::3', 2));
  assert.ok(crowd.enter('::ffff:192.0.2.1', 1));
  assert.ok(!crowd.enter('192.0.2.1', 1));
});
