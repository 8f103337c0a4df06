import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftStore } from '../../../src/modules/drafts/log/draft-store.ts';
import type { SiteDraft } from '../../../src/modules/drafts/draft.ts';
import { createPreviewTrust } from '../../../src/modules/drafts/preview-trust.ts';
import type { Store } from '../../../src/core/log/store.ts';
import { commit, inserted, scratchStore } from '../../core/log/scratch.ts';
import { storedDrafts } from '../../../src/modules/drafts/log/family.ts';

const [designer, drafter] = ['00000000-0000', '00000000-0001'];
const rows = 2_500;

/** A draft with pages by a key of the scope design. */
async function draftOf(store: Store, rows: number) {
  for (const [id, scopes] of [
    [designer, ['design']],
    [drafter, ['read', 'draft', 'publish']],
  ] as const) {
    const data = { name: id, scopes, hash: id };
    await commit(store, { family: 'key', id, action: 'insert', data });
  }
  await commit(store, { family: 'draft', id: 'd', action: 'insert', data: { name: 'd' } });
  const draft = store.of(storedDrafts).draft('d');
  assert.ok(draft);
  const inDraft = draftStore(store, draft);
  const write = (by: string, from: number, count: number) => {
    const ids = Array.from({ length: count }, (_, at) => `r${String(from + at).padStart(5, '0')}`);
    const drafts = ids.map((id) => inserted(id, { path: `/${id}` }));
    return inDraft.commit(by, () => ({ drafts, answer: () => undefined }));
  };
  await write(designer, 0, rows);
  return { draft, write };
}

/** As createPreviewTrust, at this moment. */
function trustOf(store: Store): (draft: SiteDraft) => boolean {
  const isTrusted = createPreviewTrust(store);
  return (draft) => isTrusted(draft, Date.now());
}

test('a large draft is walked in several requests, and trusted at their end', async (t) => {
  const store = await scratchStore(t);
  const { draft, write } = await draftOf(store, rows);
  const isTrusted = trustOf(store);
  assert.deepEqual([isTrusted(draft), isTrusted(draft), isTrusted(draft)], [false, true, true]);
  await write(designer, rows, 10);
  assert.equal(isTrusted(draft), true);
  await write(drafter, rows + 10, 1);
  assert.equal(isTrusted(draft), false);
});

test('a change is not missed that comes while the draft is walked', async (t) => {
  const store = await scratchStore(t);
  const { draft, write } = await draftOf(store, rows);
  const isTrusted = trustOf(store);
  assert.equal(isTrusted(draft), false);
  // Its record is among those that were walked already.
  await write(drafter, -1, 1);
  for (let time = 0; time < 3; time += 1) assert.equal(isTrusted(draft), false);
});

test('commands are trusted; callers without a key, users and revoked keys are not', async (t) => {
  for (const [by, isOne] of [
    ['waymark import', true],
    ['server.ini', true],
    ['anonymous', false],
    ['user:ann', false],
    ['01a00000-0000-7000-8000-000000000000', false],
    [designer, true],
    [drafter, false],
  ] as const) {
    const store = await scratchStore(t);
    const { draft, write } = await draftOf(store, 1);
    await write(by, 1, 1);
    const isTrusted = trustOf(store);
    assert.equal(isTrusted(draft), isOne, by);
  }
});
