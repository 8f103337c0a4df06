import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { codings } from '../../src/http/coding.ts';
import { createCodingPassage } from '../../src/compression/coding-passage.ts';
import { decoded, texts } from './codings.ts';

suite('content on its way', () => {
  test('is remembered when it comes by again, for each coding', async () => {
    const passage = createCodingPassage();
    const content = texts(5_000);
    const [first, second, third] = [
      await passage.bytes(content, 'br'),
      await passage.bytes(content, 'br'),
      await passage.bytes(content, 'br'),
    ];
    assert.ok(first && second && decoded(first, 'br').equals(content));
    assert.notEqual(first, second, 'once is not worth remembering');
    assert.equal(third, second);
    const other = await passage.bytes(content, 'gzip');
    assert.ok(other && decoded(other, 'gzip').equals(content));
    assert.equal(await passage.bytes(content, 'gzip'), other);
    assert.equal(await passage.bytes(content, 'br'), second);
    const equal = Buffer.from(content);
    assert.notEqual(await passage.bytes(equal, 'br'), second);
  });

  test('is remembered within bounds', async () => {
    const passage = createCodingPassage({ heldBytesMax: 20_000 });
    const contents = [1, 2, 3].map((seed) => texts(6_000, seed));
    const twice = async (content: Buffer) => {
      await passage.bytes(content, 'gzip');
      return passage.bytes(content, 'gzip');
    };
    const kept: (Buffer | undefined)[] = [];
    for (const content of contents) kept.push(await twice(content));
    const again: (Buffer | undefined)[] = [];
    for (const content of contents.toReversed())
      again.unshift(await passage.bytes(content, 'gzip'));
    assert.deepEqual(
      again.map((coded, at) => coded === kept[at]),
      [false, false, true],
    );
  });

  test('that does not become smaller stays as it is, and is not tried for ever', async () => {
    const passage = createCodingPassage();
    const random = Buffer.from(
      Array.from({ length: 2_000 }, () => Math.floor(Math.random() * 256)),
    );
    for (let turn = 0; turn < 3; turn += 1) {
      assert.equal(await passage.bytes(random, 'zstd'), undefined);
    }
  });

  test('is compressed so much of it at a time', async () => {
    const passage = createCodingPassage({ atOnceMax: 1 });
    for (const coding of codings) {
      const content = texts(100_000);
      const [first, second, short] = await Promise.all([
        passage.bytes(content, coding),
        passage.bytes(texts(100_000, 2), coding),
        passage.bytes(texts(5_000, 3), coding),
      ]);
      assert.ok(first !== undefined && second === undefined);
      assert.ok(decoded(first, coding).equals(content));
      assert.ok(short && decoded(short, coding).equals(texts(5_000, 3)), 'what is done at once');
      assert.ok((await passage.bytes(texts(100_000, 2), coding)) !== undefined);
    }
  });
});
