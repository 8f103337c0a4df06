import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSealing } from '../../../src/modules/login/cookies.ts';
import type { LoginKey } from '../../../src/modules/login/stored-sessions.ts';

const dayMs = 86_400_000;

test('a key of cookies seals for a day and opens for another one', async () => {
  let stored: readonly LoginKey[] = [];
  let nowMs = Date.UTC(2026, 0, 1);
  const store = {
    keys: () => stored,
    changeKeys: async (decide: (keys: readonly LoginKey[]) => readonly LoginKey[]) => {
      stored = decide(stored);
      return Promise.resolve(stored);
    },
  };
  const [one, other] = [createSealing(store, () => nowMs), createSealing(store, () => nowMs)];
  const sealed = await one.seal('a', { x: 1 });
  const [first] = stored;
  assert.deepEqual(other.open('a', sealed), { x: 1 }, 'another worker opens it');
  assert.equal(other.open('b', sealed), undefined, 'another purpose');
  await other.seal('a', {});
  assert.equal(stored.length, 1, 'the key of the day is used again');
  nowMs += dayMs;
  await other.seal('a', {});
  assert.equal(stored.length, 2);
  assert.notDeepEqual(stored[0], first);
  assert.deepEqual(one.open('a', sealed), { x: 1 });
  nowMs += dayMs;
  assert.equal(one.open('a', sealed), undefined);
  await one.seal('a', {});
  assert.equal(stored.length, 1 + 1, 'two keys at most');
  nowMs -= 10 * dayMs;
  await one.seal('a', {});
  assert.equal(stored[0]?.createdMs, nowMs, 'a clock that was put back');
});
