import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  claimName,
  earlierClaim,
  hashRequest,
} from '../../../../src/core/operations/records/idempotency.ts';
import type { StoredVkClaim } from '../../../../src/core/log/store.ts';

/** The claims of a data folder, by the names under which they are stored. */
function claims(stored: Readonly<Record<string, Omit<StoredVkClaim, 'vk'>>>) {
  return {
    vkClaim: (vk: string) => {
      const claim = stored[vk];
      return claim && { ...claim, vk };
    },
  };
}

const stored = { requestHash: 'a', id: '1', by: 'till', seq: 1 };

test('a vk that was stored without its key still belongs to the key that sent it', () => {
  const reads = claims({ 'sale-1': stored });
  const request = { vk: 'sale-1', requestHash: 'a', formerHashes: [] };
  assert.equal(earlierClaim(reads, { ...request, by: 'till' })?.id, '1');
  assert.equal(earlierClaim(reads, { ...request, by: 'other' }), undefined);
  assert.throws(() => earlierClaim(reads, { ...request, requestHash: 'b', by: 'till' }), {
    code: 'conflict',
  });
});

test('all keys share the vk that is made of the fields; every other vk belongs to its key', () => {
  const hash = 'f'.repeat(64);
  const name = (by: string, vk: string) =>
    claimName({ by, vk, requestHash: hash, formerHashes: [] });
  assert.equal(name('one', `fields:${hash}`), name('two', `fields:${hash}`));
  const other = `fields:${'e'.repeat(64)}`;
  assert.notEqual(name('one', other), name('two', other));
});

test('a vk of a data folder of Waymark 0.1 is still recognised for page rules', () => {
  const v = { path: '/a', content: 'x' };
  const { requestHash, formerHashes } = hashRequest('userinterface.insert', v);
  const [formerHash = ''] = formerHashes;
  // SHA-256 of ["insert",{"content":"x","path":"/a"}].
  assert.equal(formerHash, '2f201f4ab8e868c42553d6b7212d56ce15784c48c0f1fdbf76d2c2431177b681');
  const claim = { ...stored, requestHash: formerHash };
  const request = { by: 'till', requestHash, formerHashes };
  const derived = `fields:${requestHash}`;
  const chosen = claims({ 'till\nmine': claim });
  assert.equal(earlierClaim(chosen, { ...request, vk: 'mine' })?.id, '1');
  const reads = claims({ [`fields:${formerHash}`]: claim });
  for (const vk of [derived, `fields:${formerHash}`]) {
    assert.equal(earlierClaim(reads, { ...request, vk })?.id, '1', vk);
  }
  assert.deepEqual(hashRequest('webhook.insert', v).formerHashes, []);
});
