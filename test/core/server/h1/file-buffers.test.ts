import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileChunkBytes } from '../../../../src/core/http/limits.ts';
import {
  type FileBuffer,
  fileBuffersBytesMax,
  fileLargeBuffersBytesMax,
  fileLargeChunkBytes,
  fileLeastChunkBytes,
  fileScarceChunkBytes,
  takeBuffer,
} from '../../../../src/core/server/h1/file-buffers.ts';
import { startSite } from '../../../harness.ts';

function take(count: number, readsQuickly = false): readonly FileBuffer[] {
  return Array.from({ length: count }, () => takeBuffer(1_000_000_000, readsQuickly));
}

function sizes(buffers: readonly FileBuffer[]): ReadonlySet<number> {
  return new Set(buffers.map(({ bytes }) => bytes.length));
}

function release(...given: readonly (readonly FileBuffer[])[]): void {
  for (const one of given.flat()) one.release(true);
}

test('many files that are sent at once go through small buffers, and arrive whole', async (t) => {
  const content = Buffer.from(Array.from({ length: 1_000_000 }, (_, at) => at % 251));
  const site = await startSite(t, {
    files: { 'site/big.bin': content },
    ini: '[disk.site]\nroot = site\n',
  });
  const get = async () => Buffer.from(await (await fetch(`${site.url}/big.bin`)).arrayBuffer());
  const first = take(fileLargeBuffersBytesMax / fileChunkBytes);
  assert.deepEqual(sizes(first), new Set([fileChunkBytes]));
  const left = fileBuffersBytesMax - fileLargeBuffersBytesMax;
  const scarce = take(left / fileScarceChunkBytes, true);
  assert.deepEqual(sizes(scarce), new Set([fileScarceChunkBytes]));
  const least = take(3, true);
  assert.deepEqual(sizes(least), new Set([fileLeastChunkBytes]));
  assert.ok((await get()).equals(content));
  // A buffer is not larger than the rest of the content.
  const little = takeBuffer(100, true);
  assert.equal(little.bytes.length, 100);
  release(first, scarce, least, [little]);
  const again = take(1);
  assert.deepEqual(sizes(again), new Set([fileChunkBytes]));
  release(again);
  assert.ok((await get()).equals(content));
});

test('who reads quickly gets large buffers, which the next pieces reuse', () => {
  const [busy, idle, ...others] = take(10, true);
  assert.ok(busy !== undefined && idle !== undefined);
  assert.equal(busy.bytes.length, fileLargeChunkBytes);
  // A destroyed socket may still write from one of these.
  busy.release(false);
  idle.release(true);
  const [next, ...further] = take(10, true);
  assert.equal(next?.bytes, idle.bytes);
  for (const one of further) assert.notEqual(one.bytes, busy.bytes);
  release(others, further, [next]);
});

test('a large file arrives whole, also after a download that its client has aborted', async (t) => {
  const content = Buffer.from(
    Array.from({ length: 12 * fileLargeChunkBytes + 1 }, (_, at) => (at >> 8) % 251),
  );
  const site = await startSite(t, {
    files: { 'site/big.bin': content },
    ini: '[disk.site]\nroot = site\n',
  });
  const gone = new AbortController();
  const response = await fetch(`${site.url}/big.bin`, { signal: gone.signal });
  await response.body?.getReader().read();
  gone.abort();
  const all = await Promise.all(
    Array.from({ length: 6 }, async () => (await fetch(`${site.url}/big.bin`)).arrayBuffer()),
  );
  for (const one of all) assert.ok(Buffer.from(one).equals(content));
});
