import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { ChunkedContent } from '../../src/http/chunked-content.ts';
import { chunkLineBytesMax, trailerBytesMax } from '../../src/http/limits.ts';

/** What comes of bytes that come in pieces. */
function read(pieces: readonly Buffer[]): {
  readonly content: Buffer;
  readonly of: ChunkedContent;
} {
  const of = new ChunkedContent();
  const content = pieces.map((piece) => of.read(piece));
  return { content: Buffer.concat(content), of };
}

/** The bytes in one piece, in two at each place, and one by one. */
function inAllWays(bytes: Buffer): readonly (readonly Buffer[])[] {
  const halves = Array.from(bytes, (_, at) => [bytes.subarray(0, at), bytes.subarray(at)]);
  return [[bytes], ...halves, Array.from(bytes, (byte) => Buffer.of(byte))];
}

suite('content in chunks', () => {
  const whole: Readonly<Record<string, readonly [string, string, ...(readonly string[])[]]>> = {
    'that is empty': ['0\r\n\r\n', ''],
    'of one chunk': ['5\r\nhello\r\n0\r\n\r\n', 'hello'],
    'of several': ['2\r\nhe\r\n0003\r\nllo\r\n00\r\n\r\n', 'hello'],
    'with line ends in it': ['A\r\n0\r\n1\n2\r3\r\n\r\n0\r\n\r\n', '0\r\n1\n2\r3\r\n'],
    'with extensions': ['5;a;b=c;d="e;\\"f"\r\nhello\r\n0;g\r\n\r\n', 'hello'],
    'with trailers': [
      '5\r\nhello\r\n0\r\nX-A: b \r\nx-a:\t\xe9\r\nX-B:\r\n\r\n',
      'hello',
      ['X-A', 'b', 'x-a', '\xe9', 'X-B', ''],
    ],
  };
  for (const [what, [text, content, trailers = []]] of Object.entries(whole)) {
    test(`is read however it comes: ${what}`, () => {
      for (const pieces of inAllWays(Buffer.from(text, 'latin1'))) {
        const { content: got, of } = read(pieces);
        assert.equal(got.toString('latin1'), content);
        assert.deepEqual(of.trailers, trailers);
        assert.deepEqual([of.isWhole, of.isBroken, of.restBytes], [true, false, 0]);
      }
    });
  }

  const broken: Readonly<Record<string, string>> = {
    'with a size that is none': 'x\r\nhello\r\n0\r\n\r\n',
    'with a signed size': '+5\r\nhello\r\n0\r\n\r\n',
    'with a blank behind a size': '5 \r\nhello\r\n0\r\n\r\n',
    'with an empty size': '\r\nhello\r\n0\r\n\r\n',
    'with a size that no number can hold': 'fffffffffffffffff\r\nhello',
    'with a size that is too small': '4\r\nhello\r\n0\r\n\r\n',
    'with a bare line feed behind a size': '5\nhello\r\n0\r\n\r\n',
    'with a bare line feed behind a chunk': '5\r\nhello\n0\r\n\r\n',
    'with an extension that is none': '5;\r\nhello\r\n0\r\n\r\n',
    'with a line that is too long': `5;a=${'b'.repeat(chunkLineBytesMax)}\r\nhello\r\n0\r\n\r\n`,
    'with a trailer that is none': '0\r\nX y\r\n\r\n',
    'with a folded trailer': '0\r\nX: y\r\n z\r\n\r\n',
    'with a bare line feed behind a trailer': '0\r\nX: y\n\r\n',
    'with more trailers than there may be': `0\r\n${'X: y\r\n'.repeat(trailerBytesMax / 6 + 1)}\r\n`,
  };
  for (const [what, text] of Object.entries(broken)) {
    test(`is broken, however it comes: ${what}`, () => {
      const bytes = Buffer.from(text);
      const ways = bytes.length > 100 ? [[bytes], ...inAllWays(bytes).slice(-1)] : inAllWays(bytes);
      for (const pieces of ways) {
        const { of } = read(pieces);
        assert.deepEqual([of.isBroken, of.isWhole], [true, false]);
      }
    });
  }

  test('ends where it ends', () => {
    const of = new ChunkedContent();
    assert.equal(of.read(Buffer.from('2\r\nhe\r\n0\r\n\r\nHTTP')).toString(), 'he');
    assert.deepEqual([of.isWhole, of.restBytes], [true, 4]);
    assert.equal(of.read(Buffer.from('x')).length, 0);
    assert.equal(of.restBytes, 1);
  });

  test('is what was sent, whatever that was and however it comes', () => {
    const chunk = fc.uint8Array({ minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 5 }), fc.array(fc.nat()), (chunks, cuts) => {
        const framed = chunks.flatMap((one) => [
          Buffer.from(`${one.length.toString(16)}\r\n`),
          one,
          Buffer.from('\r\n'),
        ]);
        const bytes = Buffer.concat([...framed, Buffer.from('0\r\n\r\n')]);
        const at = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b)];
        const pieces = at.map((start, index) => bytes.subarray(start, at[index + 1]));
        const { content, of } = read(pieces);
        assert.deepEqual(content, Buffer.concat(chunks));
        assert.ok(of.isWhole);
      }),
    );
  });
});
