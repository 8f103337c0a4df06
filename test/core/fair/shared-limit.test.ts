import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Failure } from '../../../src/core/values/failure.ts';
import { SharedLimit } from '../../../src/core/fair/shared-limit.ts';
import { unknownAddress, type ClientAddress } from '../../../src/core/values/network/peer.ts';

function limitOf(shares: Partial<Record<'max' | 'perAddressMax', number>>) {
  const limit = new SharedLimit({
    what: 'things',
    limit: 'subscriptions',
    max: 100,
    withoutKeyMax: 60,
    perAddressMax: 25,
    held: 'long',
    ...shares,
  });
  const grow = (address: ClientAddress, amount: number, keyId?: string) => {
    const allocation = limit.allocation({ address, keyId });
    try {
      allocation.grow(amount);
    } catch (thrown) {
      assert.ok(thrown instanceof Failure && thrown.limit === 'subscriptions');
      return { allocation, code: thrown.code };
    }
    return { allocation, code: undefined };
  };
  return { limit, grow };
}

suite('a limit that all clients share', () => {
  test('gives an address up to its share, and again after it has been freed', () => {
    const { limit, grow } = limitOf({});
    const { allocation } = grow('192.0.2.1', 20);
    assert.equal(grow('192.0.2.1', 6).code, 'rate_limited');
    assert.equal(grow('192.0.2.1', 5).code, undefined);
    assert.equal(grow('192.0.2.2', 25).code, undefined);
    allocation.free();
    allocation.free();
    assert.equal(limit.size, 30);
    assert.equal(grow('192.0.2.1', 20).code, undefined);
  });

  test('counts by the network of an IPv6 address, and all unknown addresses as one', () => {
    const { grow } = limitOf({});
    assert.equal(grow('2001:db8::1', 20).code, undefined);
    assert.equal(grow('2001:db8::2', 6).code, 'rate_limited');
    assert.equal(grow('2001:db8:0:1::1', 20).code, undefined);
    assert.equal(grow(unknownAddress, 20).code, undefined);
    assert.equal(grow(unknownAddress, 6).code, 'rate_limited');
    assert.equal(grow('192.0.2.9', 1).code, 'unavailable', 'for all without a key');
  });

  test('keeps a part for keys that callers without one cannot take', () => {
    const { grow } = limitOf({});
    for (const address of ['192.0.2.1', '192.0.2.2'] as const) grow(address, 25);
    assert.equal(grow('192.0.2.3', 11).code, 'unavailable');
    assert.equal(grow('192.0.2.1', 40, 'a').code, undefined, 'whatever others at its address do');
    assert.equal(grow('192.0.2.9', 10, 'a').code, 'rate_limited', 'of one key, from anywhere');
    assert.equal(grow('192.0.2.1', 11, 'b').code, 'unavailable');
    assert.equal(grow('192.0.2.1', 10, 'b').code, undefined);
  });

  test('does not count refused requests', () => {
    const { limit, grow } = limitOf({ max: 10, perAddressMax: 10 });
    const { allocation, code } = grow('192.0.2.1', 11);
    allocation.free();
    assert.deepEqual([code, limit.size], ['rate_limited', 0]);
  });
});
