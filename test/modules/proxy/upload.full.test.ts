import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { pipeline } from 'node:stream/promises';
import { Readable } from 'node:stream';
import { httpSource } from '../../core/outbound/sources.ts';
import { serverFolder, startServed } from '../../process.ts';

const mib = 1 << 20;
const uploadBytes = 1_000_000_000;
/** What the memory may grow by: buffers and garbage, and much less than the upload. */
const growthBytesMax = 100 * mib;

const block = Buffer.from(Array.from({ length: mib }, (_, at) => (at * 31 + (at >> 8)) & 255));

/** The bytes of an upload; each block is that of the file again. */
function* upload(): Generator<Buffer> {
  for (let left = uploadBytes; left > 0; left -= mib) yield block.subarray(0, left);
}

/** Reads an upload; resolves to its length, and throws if its bytes are others. */
async function received(message: IncomingMessage): Promise<number> {
  let length = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    for (let at = 0; at < chunk.length;) {
      const from = (length + at) % mib;
      const count = Math.min(mib - from, chunk.length - at);
      assert.equal(block.compare(chunk, at, at + count, from, from + count), 0);
      at += count;
    }
    length += chunk.length;
  }
  return length;
}

suite('an upload of 1 GB to an application', () => {
  for (const isChunked of [false, true]) {
    const how = isChunked ? 'in chunks' : 'with its length';
    test(`${how} arrives whole, and does not fill the memory`, async (t) => {
      const source = await httpSource(t, (message, response) => {
        received(message).then(
          (length) => response.end(String(length)),
          () => response.destroy(),
        );
      });
      const { iniFile } = await serverFolder(
        t,
        `[proxy.app]\nsource = ${source.origin}\nmax_body = 1GiB\n`,
      );
      const served = await startServed(t, iniFile);
      const before = served.forgetPeak();
      const sent = request(`${served.url}/upload`, {
        method: 'POST',
        headers: isChunked ? {} : { 'content-length': uploadBytes },
      });
      const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
      await pipeline(Readable.from(upload()), sent);
      const [answer] = await answered;
      assert.equal(await text(answer), String(uploadBytes));
      const peak = served.peakBytes();
      t.diagnostic(`${Math.round(before / mib)} MiB before, ${Math.round(peak / mib)} at the most`);
      assert.ok(peak - before < growthBytesMax, `${(peak - before) / mib} MiB more`);
    });
  }
});
