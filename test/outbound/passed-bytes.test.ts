import assert from 'node:assert/strict';
import { test } from 'node:test';
import { passedBytesPerCollection } from '../../src/outbound/limits.ts';
import { notePassedBytes } from '../../src/outbound/passed-bytes.ts';

test('young objects are collected once for so many bytes that pass, and not before', (t) => {
  const { gc } = globalThis;
  const asked: unknown[] = [];
  globalThis.gc = ((options: unknown) => asked.push(options)) as unknown as typeof gc;
  t.after(() => {
    globalThis.gc = gc;
  });
  // Whatever has passed before in this process counts.
  notePassedBytes(passedBytesPerCollection);
  asked.length = 0;
  notePassedBytes(passedBytesPerCollection - 1);
  assert.deepEqual(asked, []);
  notePassedBytes(1);
  assert.deepEqual(asked, [{ type: 'minor' }]);
  notePassedBytes(passedBytesPerCollection - 1);
  assert.equal(asked.length, 1);
});
