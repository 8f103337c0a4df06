import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { HpackDecoder, HpackError } from '../../../../src/core/server/h2/hpack/decoder.ts';
import { encodeFields } from '../../../../src/core/server/h2/hpack/encoder.ts';
import {
  huffmanLength,
  readHuffman,
  writeHuffman,
} from '../../../../src/core/server/h2/hpack/huffman.ts';

const limits = { bytesMax: 40_960, fieldsMax: 305 };
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** Decodes blocks in order with one table; returns `name: value` lines of each. */
function decodeAll(...blocks: readonly string[]): readonly (readonly string[])[] {
  const decoder = new HpackDecoder();
  return blocks.map((block) => linesOf(decoder.decode(hex(block), limits).fields));
}

function linesOf(fields: readonly string[]): readonly string[] {
  return fields.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${fields[at + 1]}`] : []));
}

suite('the Huffman code', () => {
  test('has the texts of RFC 7541 Appendix C', () => {
    for (const [text, packed] of [
      ['www.example.com', 'f1e3c2e5f23a6ba0ab90f4ff'],
      ['no-cache', 'a8eb10649cbf'],
      ['custom-value', '25a849e95bb8e8b4bf'],
      ['Mon, 21 Oct 2013 20:13:21 GMT', 'd07abe941054d444a8200595040b8166e082a62d1bff'],
      [
        'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
        '94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007',
      ],
    ] as const) {
      const into = Buffer.alloc(200);
      assert.equal(huffmanLength(text), packed.length / 2);
      assert.equal(into.toString('hex', 0, writeHuffman(text, into, 0)), packed);
      assert.equal(readHuffman(hex(packed), 0, packed.length / 2), text);
    }
  });

  test('has every character, alone and among others', () => {
    const all = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code));
    for (const text of [...all, all.join(''), all.toReversed().join(''), '']) {
      const into = Buffer.alloc(2_000);
      const end = writeHuffman(text, into, 0);
      assert.equal(end, huffmanLength(text));
      assert.equal(readHuffman(into, 0, end), text);
    }
  });

  test('is refused with a long padding, a padding of zeros, or EOS', () => {
    for (const packed of ['1fff', '1e', 'ffffffff', 'fffffffc', 'ff']) {
      assert.equal(readHuffman(hex(packed), 0, packed.length / 2), undefined, packed);
    }
  });
});

suite('field blocks', () => {
  const requests = [
    [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'],
    [
      ...[':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'],
      'cache-control: no-cache',
    ],
    [
      ...[':method: GET', ':scheme: https', ':path: /index.html', ':authority: www.example.com'],
      'custom-key: custom-value',
    ],
  ];

  test('of RFC 7541 C.3 and C.4 are read with one table', () => {
    const plain = decodeAll(
      '828684410f7777772e6578616d706c652e636f6d',
      '828684be58086e6f2d6361636865',
      '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565',
    );
    const packed = decodeAll(
      '828684418cf1e3c2e5f23a6ba0ab90f4ff',
      '828684be5886a8eb10649cbf',
      '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf',
    );
    assert.deepEqual(plain, requests);
    assert.deepEqual(packed, requests);
  });

  test('of RFC 7541 C.6 evict entries from a table of 256 bytes', () => {
    const [date, later] = ['Mon, 21 Oct 2013 20:13:21 GMT', 'Mon, 21 Oct 2013 20:13:22 GMT'];
    const place = 'location: https://www.example.com';
    const cookie = 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1';
    const answers = decodeAll(
      // Ahead of C.6.1, the size of its table.
      '3fe101 488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff' +
        '6e919d29ad171863c78f0b97c8e9ae82ae43d3',
      '4883640effc1c0bf',
      '88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b' +
        '3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007',
    );
    assert.deepEqual(answers, [
      [':status: 302', 'cache-control: private', `date: ${date}`, place],
      [':status: 307', 'cache-control: private', `date: ${date}`, place],
      [
        ...[':status: 200', 'cache-control: private', `date: ${later}`, place],
        ...['content-encoding: gzip', `set-cookie: ${cookie}`],
      ],
    ]);
  });

  test('that the server writes are read as they were meant', () => {
    const fields = [
      ...['Content-Type', 'text/html; charset=utf-8', 'Content-Length', '12', 'ETag', '"a"'],
      ...[
        'Set-Cookie',
        'a=b',
        'Set-Cookie',
        'c=d',
        'X-Own',
        '\xe9\xff',
        'X-Long',
        'x'.repeat(70_000),
      ],
      ...['X-Empty', '', 'Accept-Encoding', 'gzip, deflate', 'Vary', 'accept-encoding'],
    ];
    for (const status of [200, 204, 304, 404, 418, 103]) {
      const block = encodeFields(status, fields);
      const read = new HpackDecoder().decode(block, { bytesMax: 200_000, fieldsMax: 100 });
      const lower = fields.map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text));
      assert.deepEqual(read.fields, [':status', String(status), ...lower]);
      assert.deepEqual(encodeFields(status, fields), block);
    }
    // A cookie is never put into a table (§6.2.3).
    assert.equal(encodeFields(undefined, ['Set-Cookie', 'a=b'])[0], 0x1f);
  });

  test('that repeat a long entry are counted, and not kept', () => {
    const entry = Buffer.concat([
      hex('400178'),
      Buffer.of(0x7f, 0xa1, 0x1e),
      Buffer.alloc(4_000, 'b'),
    ]);
    const { fields, bytes, count } = new HpackDecoder().decode(
      Buffer.concat([entry, Buffer.alloc(10_000, 0xbe)]),
      limits,
    );
    assert.equal(count, 10_001);
    assert.ok(bytes > 40_000_000);
    assert.ok(fields.length <= 2 * 11);
  });

  test('that are cut anywhere, or end in an integer, are refused', () => {
    const whole = hex('828684418cf1e3c2e5f23a6ba0ab90f4ff');
    for (let end = 4; end < whole.length; end += 1) {
      assert.throws(() => new HpackDecoder().decode(whole.subarray(0, end), limits), HpackError);
    }
    for (const block of ['ff', 'ff80808080808001', '7f', '0f', '007f', 'c0', '80', '3fe21f']) {
      assert.throws(() => new HpackDecoder().decode(hex(block), limits), HpackError, block);
    }
  });
});
