import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConnectionLimiter } from '../../../src/server/h1/connection-limiter.ts';

function crowdOf(perAddress: number, max = 100): ConnectionLimiter {
  return new ConnectionLimiter({ max, perAddress: () => perAddress });
}

test('the connections of an address are limited', () => {
  const crowd = crowdOf(3);
  const kept = Array.from({ length: 4 }, () => crowd.enter('192.0.2.1'));
  assert.deepEqual(kept, [undefined, undefined, undefined, 'perAddress']);
  assert.equal(crowd.enter('192.0.2.2'), undefined);
  crowd.leave('192.0.2.1');
  assert.equal(crowd.enter('192.0.2.1'), undefined);
  assert.equal(crowd.enter('192.0.2.1'), 'perAddress');
});

test('an IPv6 network counts as one address, in each spelling of its addresses', () => {
  const crowd = crowdOf(2);
  for (const [address, kept] of [
    ['2001:db8::1', undefined],
    ['2001:db8:0:0:ffff::2', undefined],
    ['2001:db8::3', 'perAddress'],
    ['2001:db8:0:1::1', undefined],
    ['::ffff:192.0.2.1', undefined],
    ['192.0.2.1', undefined],
    ['192.0.2.1', 'perAddress'],
  ] as const) {
    assert.equal(crowd.enter(address), kept, address);
  }
  crowd.leave('2001:db8::ffff');
  assert.equal(crowd.enter('2001:db8::3'), undefined);
});

test('the connections of all addresses together are limited; a connection without an address by that alone', () => {
  const crowd = crowdOf(1, 4);
  for (const address of ['192.0.2.1', '192.0.2.2', '', '']) {
    assert.equal(crowd.enter(address), undefined);
  }
  assert.equal(crowd.enter('192.0.2.3'), 'max');
  assert.equal(crowd.enter(''), 'max');
  crowd.leave('');
  assert.equal(crowd.enter('192.0.2.3'), undefined);
});
