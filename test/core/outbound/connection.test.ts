import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  countPassedBytes,
  passedBytesPerCollection,
} from '../../../src/core/outbound/connection.ts';

test('V8 collects young objects each time that passedBytesPerCollection bytes were passed on', (t) => {
  const { gc } = globalThis;
  const asked: unknown[] = [];
  globalThis.gc = ((options: unknown) => asked.push(options)) as unknown as typeof gc;
  t.after(() => {
    globalThis.gc = gc;
  });
  // Bytes that this process has passed on before count, too.
  countPassedBytes(passedBytesPerCollection);
  asked.length = 0;
  countPassedBytes(passedBytesPerCollection - 1);
  assert.deepEqual(asked, []);
  countPassedBytes(1);
  assert.deepEqual(asked, [{ type: 'minor' }]);
  countPassedBytes(passedBytesPerCollection - 1);
  assert.equal(asked.length, 1);
});
