import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { codings } from '../../../src/core/http/representation/negotiation.ts';
import { compressStream } from '../../../src/modules/compression/compression.ts';
import { decoded, texts } from './codings.ts';

/** A source that never ends, and counts its bytes. */
function endless() {
  const given = { bytes: 0 };
  const source = new Readable({
    read() {
      // Random, so that the compressed bytes are about as many.
      const chunk = Buffer.from(randomBytes(49_152).toString('base64'));
      given.bytes += chunk.length;
      this.push(chunk);
    },
  });
  const closed = new Promise((resolve) => source.once('close', resolve));
  return { source, given, closed };
}

suite('a compressed stream', () => {
  for (const coding of codings) {
    test(`${coding} decompresses to the bytes of its source, however they are cut`, async () => {
      for (let turn = 0; turn < 12; turn += 1) {
        const bytes = texts(Math.floor(Math.random() * 100_000), turn + 1);
        const pieces: Buffer[] = [];
        for (let at = 0; at < bytes.length;) {
          const end = at + 1 + Math.floor(Math.random() * 20_000);
          pieces.push(bytes.subarray(at, end));
          at = end;
        }
        // With 0 ms, a flush happens between any two pieces, and after the last one.
        const stream = compressStream(Readable.from(pieces), coding, turn % 2);
        const coded = await buffer(stream);
        assert.ok(decoded(coded, coding).equals(bytes), `${bytes.length}`);
      }
    });

    test(`${coding} runs at the speed of its reader, and stops with it`, async () => {
      const { source, given, closed } = endless();
      const stream = compressStream(source, coding, 1);
      await once(source, 'pause');
      assert.ok(given.bytes < 2 << 20, `${given.bytes}`);
      let received = 0;
      for await (const piece of stream) {
        received += (piece as Buffer).length;
        if (received > 1_000_000) break;
      }
      assert.ok(given.bytes > 1_000_000);
      await closed;
    });

    test(`${coding} fails as its source fails`, async () => {
      const { source } = endless();
      const stream = compressStream(source, coding, 1);
      stream.once('data', () => source.destroy(new Error('broken off')));
      await assert.rejects(buffer(stream), new Error('broken off'));
    });
  }
});
