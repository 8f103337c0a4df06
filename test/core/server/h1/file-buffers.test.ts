import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileChunkBytes } from '../../../../src/core/http/limits.ts';
import {
  type FileBuffers,
  fileBuffersBytesMax,
  fileLargeBuffersBytesMax,
  fileLargeChunkBytes,
  fileScarceChunkBytes,
  takeBuffers,
} from '../../../../src/core/server/h1/file-buffers.ts';
import { startSite } from '../../../harness.ts';

function sizes({ pair }: FileBuffers): readonly number[] {
  return pair.map(({ length }) => length);
}

test('many files that are sent at once go through small buffers, and arrive whole', async (t) => {
  const content = Buffer.from(Array.from({ length: 1_000_000 }, (_, at) => at % 251));
  const site = await startSite(t, {
    files: { 'site/big.bin': content },
    ini: '[disk.site]\nroot = site\n',
  });
  const get = async () => Buffer.from(await (await fetch(`${site.url}/big.bin`)).arrayBuffer());
  const held = Array.from({ length: fileBuffersBytesMax / fileChunkBytes / 2 }, () =>
    takeBuffers(content.length),
  );
  for (const buffers of held) assert.deepEqual(sizes(buffers), [fileChunkBytes, fileChunkBytes]);
  const scarce = takeBuffers(content.length);
  assert.deepEqual(sizes(scarce), [fileScarceChunkBytes, fileScarceChunkBytes]);
  assert.ok((await get()).equals(content));
  // The buffers are not larger than the content.
  const little = takeBuffers(100);
  assert.deepEqual(sizes(little), [100, 100]);
  for (const buffers of [...held, scarce, little]) buffers.release(true);
  const whole = takeBuffers(content.length);
  assert.deepEqual(sizes(whole), [fileChunkBytes, fileChunkBytes]);
  whole.release(true);
  assert.ok((await get()).equals(content));
});

test('few large files go through large buffers, which the next ones reuse', () => {
  const bytes = 100 * fileLargeChunkBytes;
  const large = [fileLargeChunkBytes, fileLargeChunkBytes];
  const held = Array.from({ length: fileLargeBuffersBytesMax / fileLargeChunkBytes / 2 }, () =>
    takeBuffers(bytes),
  );
  for (const buffers of held) assert.deepEqual(sizes(buffers), large);
  const further = takeBuffers(bytes);
  assert.deepEqual(sizes(further), [fileChunkBytes, fileChunkBytes]);
  further.release(true);
  const [busy, idle, ...others] = held;
  assert.ok(busy !== undefined && idle !== undefined);
  // A destroyed socket may still write from one of these.
  busy.release(false);
  idle.release(true);
  const next = takeBuffers(bytes);
  assert.deepEqual(new Set(next.pair), new Set(idle.pair));
  const afterNext = takeBuffers(bytes + fileLargeChunkBytes);
  for (const buffer of afterNext.pair) assert.ok(!busy.pair.includes(buffer));
  for (const buffers of [next, afterNext, ...others]) buffers.release(true);
});

test('a large file arrives whole, also after a download that its client has aborted', async (t) => {
  const content = Buffer.from(
    Array.from({ length: 6 * fileLargeChunkBytes + 1 }, (_, at) => (at >> 8) % 251),
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
