import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownBytes } from '../../src/model/own-bytes.ts';

test('bytes of a shared pool are copied, others are not', () => {
  const pooled = Buffer.from('a small text');
  assert.ok(pooled.buffer.byteLength > pooled.length);
  const own = ownBytes(pooled);
  assert.equal(own.toString(), 'a small text');
  assert.equal(own.buffer.byteLength, own.length);
  assert.equal(ownBytes(own), own);
  assert.equal(ownBytes(Buffer.alloc(0)).length, 0);
});
