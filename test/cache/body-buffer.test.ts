import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { arrivingPieceBytes } from '../../src/cache/limits.ts';
import { BodyBuffer } from '../../src/cache/body-buffer.ts';

/** Bytes of which no two short stretches are alike. */
const sent = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7_919) >> 4));

/** A window that the bytes have come to, in chunks of some lengths, time and again. */
function windowOf(lengths: readonly number[]): BodyBuffer {
  const window = new BodyBuffer();
  for (let [at, round] = [0, 0]; at < sent.length; round += 1) {
    const length = lengths[round % lengths.length] ?? 1;
    window.push(sent.subarray(at, at + length));
    at += length;
  }
  return window;
}

suite('the last of content on its way', () => {
  const piece = arrivingPieceBytes;
  for (const lengths of [[1], [7, 100], [piece - 1], [piece], [1, piece], [5, piece + 1, 70_000]]) {
    test(`is there from any position on, in a few pieces, out of ${lengths.join(' and ')}`, () => {
      const window = windowOf(lengths);
      assert.deepEqual([window.end, window.bytes], [sent.length, sent.length]);
      const shortest = Math.min(piece, Math.max(...lengths));
      assert.ok(window.from(0, Infinity).length <= 2 * Math.ceil(sent.length / shortest) + 1);
      for (const position of [0, 1, piece - 1, piece, piece + 1, 99_999, sent.length - 1]) {
        const rest = Buffer.concat(window.from(position, Infinity));
        assert.ok(rest.equals(sent.subarray(position)), `from ${position}`);
      }
      assert.deepEqual(window.from(sent.length, 1), []);
    });
  }

  test('in tiny chunks needs no piece for each', () => {
    const pieces = windowOf([1]).from(0, Infinity);
    assert.equal(pieces.length, Math.ceil(sent.length / piece));
  });

  test('stays as it was for who has it, when more comes', () => {
    const window = new BodyBuffer();
    for (const byte of sent.subarray(0, 10)) window.push(Buffer.from([byte]));
    const [before] = window.from(3, 1);
    window.push(sent.subarray(10, 20));
    assert.ok(before?.equals(sent.subarray(3, 10)));
    assert.ok(window.from(3, 1)[0]?.equals(sent.subarray(3, 20)));
  });

  test('is let go of from its beginning on', () => {
    const window = windowOf([piece]);
    const { firstEnd } = window;
    assert.equal(firstEnd, piece);
    assert.equal(window.shift(), piece);
    assert.deepEqual([window.from(0, 1), window.bytes], [[], sent.length - piece]);
    assert.ok(Buffer.concat(window.from(piece, Infinity)).equals(sent.subarray(piece)));
    while (window.firstEnd !== undefined) window.shift();
    assert.ok(window.from(window.lastStart, 1)[0]?.equals(sent.subarray(window.lastStart)));
  });
});
