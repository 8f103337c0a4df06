import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ConnectionLimiter,
  connectionLimits,
} from '../../../../src/core/server/h1/connection-limiter.ts';
import {
  unknownAddress,
  type ClientAddress,
  type Peer,
} from '../../../../src/core/values/network/peer.ts';

/** The peer at an address. */
function from(address: ClientAddress): Peer {
  return { listener: 'tcp', address, local: () => 'localhost', tls: undefined };
}

function limiterOf(perAddress: number, max = 100): ConnectionLimiter {
  return new ConnectionLimiter({ max, perAddress: () => perAddress });
}

test('the connections of an address are limited', () => {
  const limiter = limiterOf(3);
  const kept = Array.from({ length: 4 }, () => limiter.add(from('192.0.2.1')));
  assert.deepEqual(kept, [undefined, undefined, undefined, 'perAddress']);
  assert.equal(limiter.add(from('192.0.2.2')), undefined);
  limiter.remove(from('192.0.2.1'));
  assert.equal(limiter.add(from('192.0.2.1')), undefined);
  assert.equal(limiter.add(from('192.0.2.1')), 'perAddress');
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
    assert.equal(limiter.add(from(address)), kept, address);
  }
  limiter.remove(from('2001:db8::ffff'));
  assert.equal(limiter.add(from('2001:db8::3')), undefined);
});

test('the connections of all addresses together are limited', () => {
  const limiter = limiterOf(1, 3);
  for (const address of ['192.0.2.1', '192.0.2.2', '2001:db8::1'] as const) {
    assert.equal(limiter.add(from(address)), undefined);
  }
  assert.equal(limiter.add(from('192.0.2.3')), 'max');
  limiter.remove(from('192.0.2.1'));
  assert.equal(limiter.add(from('192.0.2.3')), undefined);
});

test('a lost address is one address, and no unix socket', () => {
  const { perAddress } = connectionLimits(() => ({ trustProxy: [], connectionsPerAddress: 2 }));
  const limiter = new ConnectionLimiter({ max: 100, perAddress });
  const lost = from(unknownAddress);
  const kept = Array.from({ length: 3 }, () => limiter.add(lost));
  assert.deepEqual(kept, [undefined, undefined, 'perAddress']);
  const proxy = { ...lost, listener: 'unix' } as const;
  assert.equal(limiter.add(proxy), undefined);
});
