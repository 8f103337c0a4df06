import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  fileBuffersBytesMax,
  fileChunkBytes,
  fileScarceChunkBytes,
} from '../../src/model/limits.ts';
import { takeBuffers, type FileBuffers } from '../../src/server/file-buffers.ts';
import { startSite } from '../harness.ts';

function sizes({ pair }: FileBuffers): readonly number[] {
  return pair.map(({ length }) => length);
}

test('files of which many are being sent go through small buffers, and come whole', async (t) => {
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
  // No more is taken than there is to send.
  const little = takeBuffers(100);
  assert.deepEqual(sizes(little), [100, 100]);
  for (const buffers of [...held, scarce, little]) buffers.release();
  const whole = takeBuffers(content.length);
  assert.deepEqual(sizes(whole), [fileChunkBytes, fileChunkBytes]);
  whole.release();
  assert.ok((await get()).equals(content));
});
