import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { RequestScanner } from '../../../src/core/http/reading/request-scanner.ts';
import { statusFor } from '../../../src/core/http/reply.ts';

const host = 'Host: localhost\r\n';
const get = `GET /a HTTP/1.1\r\n${host}\r\n`;
const chunked = `POST /a HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`;

/** Scans pieces one after the other; returns the bytes that the scanner passed on. */
function readAll(pieces: readonly Buffer[]): { passed: string; scanner: RequestScanner } {
  const scanner = new RequestScanner();
  let passed = '';
  for (const piece of pieces) {
    let at = 0;
    while (at < piece.length && scanner.refusal === undefined) {
      const end = scanner.read(piece, at);
      passed += piece.toString('latin1', at, end);
      at = end;
    }
  }
  return { passed, scanner };
}

function read(text: string): { passed: string; scanner: RequestScanner } {
  return readAll([Buffer.from(text, 'latin1')]);
}

/** Fragments of requests, valid and invalid. */
const fragments: readonly string[] = [
  get,
  chunked,
  '3\r\nabc\r\n',
  '0\r\n',
  '\r\n',
  '0\r\n\r\n',
  'X: y\r\n',
  'Host: evil\r\n',
  '3;a="b;c"\r\nabc\r\n',
  `POST /a HTTP/1.1\r\n${host}Content-Length: 5\r\n\r\n`,
  'abcde',
  'GET  /a HTTP/1.1\r\n',
  '\n',
  '\r',
  'fffffffffffffff1\r\n',
  'x'.repeat(9_000),
  ' '.repeat(40_000),
];

suite('the strict reader of HTTP/1.1', () => {
  test('reads the same, however the bytes are split', () => {
    const bytes = fc
      .array(fc.constantFrom(...fragments), { maxLength: 8 })
      .map((parts) => parts.join(''));
    const cuts = fc.array(fc.nat(60_000), { maxLength: 12 });
    fc.assert(
      fc.property(bytes, cuts, (text, places) => {
        const whole = Buffer.from(text, 'latin1');
        const ends = [...places, whole.length].filter((at) => at <= whole.length);
        ends.sort((a, b) => a - b);
        const pieces = ends.map((end, at) => whole.subarray(ends[at - 1] ?? 0, end));
        const [once, often] = [read(text).scanner, readAll(pieces).scanner];
        assert.equal(often.refusal?.message, once.refusal?.message);
      }),
      { numRuns: 2_000 },
    );
  });

  test('passes on every byte before a malformed part, and none after it', () => {
    const { passed, scanner } = read(`${get}${get}GET  /a HTTP/1.1\r\n${host}\r\n${get}`);
    assert.equal(passed, get + get);
    assert.equal(scanner.refusal?.code, 'invalid');
    assert.match(scanner.head, /^GET {2}\/a HTTP\/1\.1\r\n/);
  });

  test('stops after each head and each message', () => {
    const text = `${chunked}3\r\nabc\r\n0\r\nX: y\r\n\r\n${get}`;
    const chunk = Buffer.from(text);
    const scanner = new RequestScanner();
    const ends: number[] = [];
    for (let at = 0; at < chunk.length; ends.push(at)) at = scanner.read(chunk, at);
    assert.deepEqual(ends, [chunked.length, text.length - get.length, text.length]);
  });

  const limits: readonly (readonly [title: string, text: string, status: number | undefined])[] = [
    ['a request line of 8 KiB', `GET /${'a'.repeat(8_178)} HTTP/1.1\r\n${host}\r\n`, undefined],
    ['one byte more', `GET /${'a'.repeat(8_179)} HTTP/1.1\r\n${host}\r\n`, 414],
    ['a request line without an end', `GET /${'a'.repeat(9_000)}`, 414],
    ['a header section of 32 KiB', `GET / HTTP/1.1\r\nX: ${'y'.repeat(32_760)}\r\n\r\n`, undefined],
    ['some bytes more', `GET / HTTP/1.1\r\nX: ${'y'.repeat(32_770)}\r\n\r\n`, 431],
    ['a header section without an end', `GET / HTTP/1.1\r\n${'X: y\r\n'.repeat(9_000)}`, 431],
    ['the line of a chunk of 1 KiB', `${chunked}3;a=${'b'.repeat(1_018)}\r\nabc\r\n`, undefined],
    ['one of more', `${chunked}3;a=${'b'.repeat(1_019)}\r\nabc\r\n`, 400],
    ['trailers of 8 KiB', `${chunked}0\r\n${'X: y\r\n'.repeat(1_365)}`, undefined],
    ['one trailer more', `${chunked}0\r\n${'X: y\r\n'.repeat(1_366)}`, 400],
  ];
  for (const [title, text, status] of limits) {
    test(`${title}: ${status ?? 'passed on'}`, () => {
      const { refusal } = read(text).scanner;
      assert.equal(refusal && statusFor(refusal), status);
    });
  }
});
