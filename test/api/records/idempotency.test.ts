import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimName, earlierClaim } from '../../../src/api/records/idempotency.ts';

test('a vk that was remembered without its key is still that of the key which sent it', () => {
  const stored = { vk: 'sale-1', requestHash: 'a', id: '1', by: 'till', seq: 1 };
  const reads = { vkClaim: (name: string) => (name === 'sale-1' ? stored : undefined) };
  const request = { vk: 'sale-1', requestHash: 'a' };
  assert.equal(earlierClaim(reads, { ...request, by: 'till' }), stored);
  assert.equal(earlierClaim(reads, { ...request, by: 'other' }), undefined);
  assert.throws(() => earlierClaim(reads, { ...request, requestHash: 'b', by: 'till' }), {
    code: 'conflict',
  });
});

test('a vk made of the fields of a request is the same for every key, and any other is not', () => {
  const hash = 'f'.repeat(64);
  const name = (by: string, vk: string) => claimName({ by, vk, requestHash: hash });
  assert.equal(name('one', `fields:${hash}`), name('two', `fields:${hash}`));
  const other = `fields:${'e'.repeat(64)}`;
  assert.notEqual(name('one', other), name('two', other));
});
