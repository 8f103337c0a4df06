import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { BodyBuffer, arrivingPieceBytes } from '../../../src/modules/cache/body-buffer.ts';

/** Bytes in which no two short sequences are equal. */
const sent = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7_919) >> 4));

/** A buffer that the bytes have arrived in, in chunks of repeating lengths. */
function bufferOf(lengths: readonly number[]): BodyBuffer {
  const body = new BodyBuffer();
  for (let [at, round] = [0, 0]; at < sent.length; round += 1) {
    const length = lengths[round % lengths.length] ?? 1;
    body.push(sent.subarray(at, at + length));
    at += length;
  }
  return body;
}

suite('the buffer of a body that arrives', () => {
  const piece = arrivingPieceBytes;
  for (const lengths of [[1], [7, 100], [piece - 1], [piece], [1, piece], [5, piece + 1, 70_000]]) {
    test(`has the bytes from any position in few pieces: chunks of ${lengths.join(' and ')}`, () => {
      const body = bufferOf(lengths);
      assert.deepEqual([body.end, body.bytes], [sent.length, sent.length]);
      const shortest = Math.min(piece, Math.max(...lengths));
      assert.ok(body.from(0, Infinity).length <= 2 * Math.ceil(sent.length / shortest) + 1);
      for (const position of [0, 1, piece - 1, piece, piece + 1, 99_999, sent.length - 1]) {
        const rest = Buffer.concat(body.from(position, Infinity));
        assert.ok(rest.equals(sent.subarray(position)), `from ${position}`);
      }
      assert.deepEqual(body.from(sent.length, 1), []);
    });
  }

  test('joins tiny chunks to few pieces', () => {
    const pieces = bufferOf([1]).from(0, Infinity);
    assert.equal(pieces.length, Math.ceil(sent.length / piece));
  });

  test('leaves a piece that a reader holds unchanged when more arrives', () => {
    const body = new BodyBuffer();
    for (const byte of sent.subarray(0, 10)) body.push(Buffer.from([byte]));
    const [before] = body.from(3, 1);
    body.push(sent.subarray(10, 20));
    assert.ok(before?.equals(sent.subarray(3, 10)));
    assert.ok(body.from(3, 1)[0]?.equals(sent.subarray(3, 20)));
  });

  test('frees pieces from the beginning', () => {
    const body = bufferOf([piece]);
    const { firstEnd } = body;
    assert.equal(firstEnd, piece);
    assert.equal(body.shift(), piece);
    assert.deepEqual([body.from(0, 1), body.bytes], [[], sent.length - piece]);
    assert.ok(Buffer.concat(body.from(piece, Infinity)).equals(sent.subarray(piece)));
    while (body.firstEnd !== undefined) body.shift();
    assert.ok(body.from(body.lastStart, 1)[0]?.equals(sent.subarray(body.lastStart)));
  });
});
