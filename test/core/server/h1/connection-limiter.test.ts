import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConnectionLimiter } from '../../../../src/core/server/h1/connection-limiter.ts';

function limiterOf(perAddress: number, max = 100): ConnectionLimiter {
  return new ConnectionLimiter({ max, perAddress: () => perAddress });
}

test('the connections of an address are limited', () => {
  const limiter = limiterOf(3);
  const kept = Array.from({ length: 4 }, () => limiter.add('192.0.2.1'));
  assert.deepEqual(kept, [undefined, undefined, undefined, 'perAddress']);
  assert.equal(limiter.add('192.0.2.2'), undefined);
  limiter.remove('192.0.2.1');
  assert.equal(limiter.add('192.0.2.1'), undefined);
  assert.equal(limiter.add('192.0.2.1'), 'perAddress');
});

test('an IPv6 network counts as one address, in each spelling of its addresses', () => {
  const limiter = limiterOf(2);
  for (const [address, kept] of [
    ['2001:db8::1', undefined],
    ['2001:db8:0:0:ffff::2', undefined],
    ['2001:db8::3', 'perAddress'],
    ['2001:db8:0:1::1', undefined],
    ['::ffff:192.0.2.1', undefined],
    ['192.0.2.1', undefined],
    ['192.0.2.1', 'perAddress'],
  ] as const) {
    assert.equal(limiter.add(address), kept, address);
  }
  limiter.remove('2001:db8::ffff');
  assert.equal(limiter.add('2001:db8::3'), undefined);
});

test('the connections of all addresses together are limited; a connection without an address by that alone', () => {
  const limiter = limiterOf(1, 4);
  for (const address of ['192.0.2.1', '192.0.2.2', '', '']) {
    assert.equal(limiter.add(address), undefined);
  }
  assert.equal(limiter.add('192.0.2.3'), 'max');
  assert.equal(limiter.add(''), 'max');
  limiter.remove('');
  assert.equal(limiter.add('192.0.2.3'), undefined);
});
