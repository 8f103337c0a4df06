import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { suite, test } from 'node:test';
import { codings } from '../../../src/core/http/representation/negotiation.ts';
import { createResponseCompressor } from '../../../src/modules/compression/compressors.ts';
import { decoded, texts } from './codings.ts';

suite('fetched content that is compressed', () => {
  test('is cached in each coding once it is sent again', async () => {
    const compressor = createResponseCompressor();
    const content = texts(5_000);
    const [first, second, third] = [
      await compressor.bytes(content, 'br', 'A'),
      await compressor.bytes(content, 'br', 'A'),
      await compressor.bytes(content, 'br', 'A'),
    ];
    assert.ok(first && second && decoded(first, 'br').equals(content));
    assert.notEqual(first, second, 'once is not worth remembering');
    assert.equal(third, second);
    const other = await compressor.bytes(content, 'gzip', 'A');
    assert.ok(other && decoded(other, 'gzip').equals(content));
    assert.equal(await compressor.bytes(content, 'gzip', 'A'), other);
    assert.equal(await compressor.bytes(content, 'br', 'A'), second);
    const equal = Buffer.from(content);
    assert.notEqual(await compressor.bytes(equal, 'br', 'A'), second);
  });

  test('is cached within a limit of bytes', async () => {
    const compressor = createResponseCompressor({ cachedBytesMax: 20_000 });
    const contents = [1, 2, 3].map((seed) => texts(6_000, seed));
    const twice = async (content: Buffer) => {
      await compressor.bytes(content, 'gzip', 'A');
      return compressor.bytes(content, 'gzip', 'A');
    };
    const kept: (Buffer | undefined)[] = [];
    for (const content of contents) kept.push(await twice(content));
    const again: (Buffer | undefined)[] = [];
    for (const content of contents.toReversed())
      again.unshift(await compressor.bytes(content, 'gzip', 'A'));
    assert.deepEqual(
      again.map((coded, at) => coded === kept[at]),
      [false, false, true],
    );
  });

  test('is sent unchanged if it does not become smaller, each time', async () => {
    const compressor = createResponseCompressor();
    const random = Buffer.from(
      Array.from({ length: 2_000 }, () => Math.floor(Math.random() * 256)),
    );
    for (let turn = 0; turn < 3; turn += 1) {
      assert.equal(await compressor.bytes(random, 'zstd', 'A'), undefined);
    }
  });

  test('leaves a place for other clients, whatever one of them has compressed', async () => {
    const compressor = createResponseCompressor({ atOnceMax: 4 });
    const streams = Array.from({ length: 4 }, () => {
      const content = new PassThrough();
      return compressor.stream(content, 'gzip', 'A');
    });
    assert.deepEqual(
      streams.map((stream) => stream !== undefined),
      [true, true, false, false],
    );
    assert.ok((await compressor.bytes(texts(100_000, 2), 'gzip', 'B')) !== undefined);
    for (const stream of streams) stream?.destroy();
  });

  test('is limited in how much is compressed at a time', async () => {
    const compressor = createResponseCompressor({ atOnceMax: 1 });
    for (const coding of codings) {
      const content = texts(100_000);
      const [first, second, short] = await Promise.all([
        compressor.bytes(content, coding, 'A'),
        compressor.bytes(texts(100_000, 2), coding, 'A'),
        compressor.bytes(texts(5_000, 3), coding, 'A'),
      ]);
      assert.ok(first !== undefined && second === undefined);
      assert.ok(decoded(first, coding).equals(content));
      assert.ok(short && decoded(short, coding).equals(texts(5_000, 3)), 'what is done at once');
      assert.ok((await compressor.bytes(texts(100_000, 2), coding, 'A')) !== undefined);
    }
  });
});
