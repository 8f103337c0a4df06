import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unpooled } from '../../../src/core/values/json/prepared-json.ts';

test('bytes of a shared pool are copied, others are not', () => {
  const pooled = Buffer.from('a small text');
  assert.ok(pooled.buffer.byteLength > pooled.length);
  const own = unpooled(pooled);
  assert.equal(own.toString(), 'a small text');
  assert.equal(own.buffer.byteLength, own.length);
  assert.equal(unpooled(own), own);
  assert.equal(unpooled(Buffer.alloc(0)).length, 0);
});
