import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { previewedDraft } from '../../../src/modules/drafts/operations/previews.ts';
import { commit, scratchStore } from '../../../test/core/log/scratch.ts';

const [key, other] = ['00000000-0000', '00000000-0001'];
const secret = 's'.repeat(43);
const hash = createHash('sha256').update(secret).digest('hex');

for (const [what, by, isEnded] of [
  ['by the key that is revoked', key, true],
  ['by another key', other, false],
  ['by a command', 'import', false],
] as const) {
  test(`a preview of an older version, made ${what}, ${isEnded ? 'ends' : 'goes on'}`, async (t) => {
    const store = await scratchStore(t);
    for (const id of [key, other]) {
      const data = { name: id, scopes: ['read', 'draft'], hash: id };
      await commit(store, { family: 'key', id, action: 'insert', data });
    }
    await commit(store, { family: 'draft', id: 'd', action: 'insert', data: { name: 'd' } });
    // In 0.2.0, a preview did not name its key.
    const preview = { id: 'p', hash, expires: '2100-01-01T00:00:00.000Z' };
    const drafts = [{ family: 'draft', id: 'd', action: 'edit', data: { preview } }] as const;
    await store.commit(by, () => ({ drafts: [...drafts], answer: () => undefined }));
    const isShown = () => previewedDraft(store, `d.${secret}`, Date.now()) !== undefined;
    assert.equal(isShown(), true);
    await commit(store, { family: 'key', id: key, action: 'invalidate', data: {} });
    assert.equal(isShown(), !isEnded);
  });
}
