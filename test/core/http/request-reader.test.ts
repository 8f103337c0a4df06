import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { RequestReader } from '../../../src/core/http/reading/request-reader.ts';
import { statusFor } from '../../../src/core/http/reply.ts';

const host = 'Host: localhost\r\n';
const get = `GET /a HTTP/1.1\r\n${host}\r\n`;
const chunked = `POST /a HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`;

/** What a reader tells of some pieces, one text for each event; pieces of content are joined. */
function readAll(pieces: readonly Buffer[]): { events: readonly string[]; reader: RequestReader } {
  const events: string[] = [];
  let content = '';
  const reader = new RequestReader({
    onHead: ({ method, url, fields }) => events.push(`${method} ${url} ${fields.join()}`),
    onContent: (bytes) => {
      content += bytes.toString('latin1');
    },
    onEnd: (trailers) => {
      events.push(`${content}|${trailers.join()}`);
      content = '';
    },
  });
  for (const piece of pieces) {
    for (let at = 0; at < piece.length && reader.refusal === undefined;)
      at = reader.read(piece, at);
  }
  return { events, reader };
}

function read(text: string): ReturnType<typeof readAll> {
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
        const [once, often] = [read(text), readAll(pieces)];
        assert.deepEqual(often.events, once.events);
        const [refusal, same] = [once.reader.refusal, often.reader.refusal];
        assert.equal(same === undefined, refusal === undefined);
      }),
      { numRuns: 2_000 },
    );
  });

  test('tells of every request before a malformed part, and of none after it', () => {
    const { events, reader } = read(`${get}${get}GET  /a HTTP/1.1\r\n${host}\r\n${get}`);
    assert.deepEqual(events, ['GET /a Host,localhost', 'GET /a Host,localhost']);
    assert.equal(reader.refusal?.code, 'invalid');
    assert.match(reader.head, /^GET {2}\/a HTTP\/1\.1\r\n/);
  });

  test('stops after each head and each message', () => {
    const text = `${chunked}3\r\nabc\r\n0\r\nX: y\r\n\r\n${get}`;
    const chunk = Buffer.from(text);
    const reader = new RequestReader({ onHead: nothing, onContent: nothing, onEnd: nothing });
    const ends: number[] = [];
    for (let at = 0; at < chunk.length; ends.push(at)) at = reader.read(chunk, at);
    assert.deepEqual(ends, [chunked.length, text.length - get.length, text.length]);
  });

  test('gives the content of chunks and their trailers', () => {
    const { events } = read(`${chunked}3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX: y \r\nZ:\r\n\r\n`);
    assert.equal(events.at(-1), 'abcde|X,y,Z,');
  });

  for (const [what, text] of Object.entries({
    'a chunk longer than its size': `${chunked}3\r\nabcd\r\n`,
    'a chunk without its line end': `${chunked}3\r\nabc\n0\r\n\r\n`,
    'a control character in a trailer': `${chunked}0\r\nX: \0\r\n\r\n`,
    'a line feed alone in a head that has not ended': `GET / HTTP/1.1\r\nHost: a\nX: `,
    'a field without a colon': `GET / HTTP/1.1\r\nHost\r\n\r\n`,
    'a folded line': `GET / HTTP/1.1\r\n${host}X: a\r\n b\r\n\r\n`,
  })) {
    test(`refuses ${what}`, () => {
      assert.equal(read(text).reader.refusal?.code, 'invalid');
    });
  }

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
    ['one trailer more', `${chunked}0\r\n${'X: y\r\n'.repeat(1_366)}`, 431],
  ];
  for (const [title, text, status] of limits) {
    test(`${title}: ${status ?? 'read'}`, () => {
      const { refusal } = read(text).reader;
      assert.equal(refusal && statusFor(refusal), status);
    });
  }
});

const nothing = (): void => undefined;
