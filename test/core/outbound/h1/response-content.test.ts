import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { chunkLineBytesMax, trailerBytesMax } from '../../../../src/core/http/limits.ts';
import {
  ChunkedContent,
  CloseDelimitedContent,
  SizedContent,
} from '../../../../src/core/outbound/h1/response-content.ts';

/** Reads content that arrives in pieces. */
function read(pieces: readonly Buffer[]): {
  readonly bytes: Buffer;
  readonly content: ChunkedContent;
} {
  const content = new ChunkedContent();
  const bytes = pieces.map((piece) => content.read(piece));
  return { bytes: Buffer.concat(bytes), content };
}

/** The bytes in one piece, in two pieces for each place to cut, and one by one. */
function fragmentations(bytes: Buffer): readonly (readonly Buffer[])[] {
  const halves = Array.from(bytes, (_, at) => [bytes.subarray(0, at), bytes.subarray(at)]);
  return [[bytes], ...halves, Array.from(bytes, (byte) => Buffer.of(byte))];
}

suite('chunked content', () => {
  const valid: Readonly<Record<string, readonly [string, string, ...(readonly string[])[]]>> = {
    'no chunk': ['0\r\n\r\n', ''],
    'one chunk': ['5\r\nhello\r\n0\r\n\r\n', 'hello'],
    'several chunks': ['2\r\nhe\r\n0003\r\nllo\r\n00\r\n\r\n', 'hello'],
    'line ends in a chunk': ['A\r\n0\r\n1\n2\r3\r\n\r\n0\r\n\r\n', '0\r\n1\n2\r3\r\n'],
    extensions: ['5;a;b=c;d="e;\\"f"\r\nhello\r\n0;g\r\n\r\n', 'hello'],
    'trailer fields': [
      '5\r\nhello\r\n0\r\nX-A: b \r\nx-a:\t\xe9\r\nX-B:\r\n\r\n',
      'hello',
      ['X-A', 'b', 'x-a', '\xe9', 'X-B', ''],
    ],
  };
  for (const [what, [text, expected, trailers = []]] of Object.entries(valid)) {
    test(`is read in any fragmentation: ${what}`, () => {
      for (const pieces of fragmentations(Buffer.from(text, 'latin1'))) {
        const { bytes, content } = read(pieces);
        assert.equal(bytes.toString('latin1'), expected);
        assert.deepEqual(content.trailers, trailers);
        const { isComplete, isBroken, restBytes } = content;
        assert.deepEqual([isComplete, isBroken, restBytes], [true, false, 0]);
      }
    });
  }

  const invalid: Readonly<Record<string, string>> = {
    'a size that is not hexadecimal': 'x\r\nhello\r\n0\r\n\r\n',
    'a size with a sign': '+5\r\nhello\r\n0\r\n\r\n',
    'a space after a size': '5 \r\nhello\r\n0\r\n\r\n',
    'an empty size': '\r\nhello\r\n0\r\n\r\n',
    'a size beyond 2^53': 'fffffffffffffffff\r\nhello',
    'a size that is too small': '4\r\nhello\r\n0\r\n\r\n',
    'a bare line feed after a size': '5\nhello\r\n0\r\n\r\n',
    'a bare line feed after a chunk': '5\r\nhello\n0\r\n\r\n',
    'an extension without a name': '5;\r\nhello\r\n0\r\n\r\n',
    'a line that is too long': `5;a=${'b'.repeat(chunkLineBytesMax)}\r\nhello\r\n0\r\n\r\n`,
    'a trailer field without a colon': '0\r\nX y\r\n\r\n',
    'a folded trailer field': '0\r\nX: y\r\n z\r\n\r\n',
    'a bare line feed after a trailer field': '0\r\nX: y\n\r\n',
    'a trailer section that is too long': `0\r\n${'X: y\r\n'.repeat(trailerBytesMax / 6 + 1)}\r\n`,
  };
  for (const [what, text] of Object.entries(invalid)) {
    test(`is broken in any fragmentation: ${what}`, () => {
      const bytes = Buffer.from(text);
      const all = fragmentations(bytes);
      for (const pieces of bytes.length > 100 ? [[bytes], ...all.slice(-1)] : all) {
        const { isBroken, isComplete } = read(pieces).content;
        assert.deepEqual([isBroken, isComplete], [true, false]);
      }
    });
  }

  test('leaves the bytes after it unread, and counts them', () => {
    const content = new ChunkedContent();
    assert.equal(content.read(Buffer.from('2\r\nhe\r\n0\r\n\r\nHTTP')).toString(), 'he');
    assert.deepEqual([content.isComplete, content.restBytes], [true, 4]);
    assert.equal(content.read(Buffer.from('x')).length, 0);
    assert.equal(content.restBytes, 1);
  });

  test('is equal to the bytes that were sent, for any bytes and fragmentation', () => {
    const chunk = fc.uint8Array({ minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 5 }), fc.array(fc.nat()), (chunks, cuts) => {
        const framed = chunks.flatMap((one) => [
          Buffer.from(`${one.length.toString(16)}\r\n`),
          one,
          Buffer.from('\r\n'),
        ]);
        const sent = Buffer.concat([...framed, Buffer.from('0\r\n\r\n')]);
        const at = [0, ...cuts.map((cut) => cut % sent.length).sort((a, b) => a - b)];
        const pieces = at.map((start, index) => sent.subarray(start, at[index + 1]));
        const { bytes, content } = read(pieces);
        assert.deepEqual(bytes, Buffer.concat(chunks));
        assert.ok(content.isComplete);
      }),
    );
  });
});

suite('content with a Content-Length', () => {
  test('is complete after as many bytes, and counts the bytes after it', () => {
    const content = new SizedContent(5);
    assert.equal(content.read(Buffer.from('he')).toString(), 'he');
    assert.deepEqual([content.isComplete, content.restBytes], [false, 0]);
    assert.equal(content.read(Buffer.from('lloHTTP')).toString(), 'llo');
    assert.deepEqual([content.isComplete, content.restBytes], [true, 4]);
  });
});

suite('content that lasts until the connection ends', () => {
  test('is never complete before that', () => {
    const content = new CloseDelimitedContent();
    assert.equal(content.read(Buffer.from('hello')).toString(), 'hello');
    assert.deepEqual([content.isComplete, content.endsWithConnection], [false, true]);
  });
});
