import { frame } from '../raw-client.ts';
import { block, whole, type Case } from './case.ts';

const plainName = '06782d74657374';
const packedName = '85f2b24a84ff';
const plainValue = '06683273706563';
const packedValue = '849c48aca4';

/** Encodings of a field (RFC 7541 §6), User-Agent or X-Test, in hexadecimal. */
const written: readonly (readonly [name: string, field: string])[] = [
  ['6.1 indexed', 'ba'],
  ...(
    [
      ['6.2.1 indexed from now on', '7a', '40'],
      ['6.2.2 not indexed', '0f2b', '00'],
      ['6.2.3 never indexed', '1f2b', '10'],
    ] as const
  ).flatMap(([name, indexed, literal]): [string, string][] => [
    [`${name}, name by index`, indexed + plainValue],
    [`${name}, name by index, Huffman`, indexed + packedValue],
    [`${name}, new name`, literal + plainName + plainValue],
    [`${name}, new name, Huffman`, literal + packedName + packedValue],
  ]),
];
const behind = (field: string) =>
  frame('HEADERS', whole, 1, Buffer.concat([block, Buffer.from(field, 'hex')]));
const sized = (sizes: string) =>
  frame('HEADERS', whole, 1, Buffer.concat([Buffer.from(sizes, 'hex'), block]));

/** Cases about compressed fields: RFC 7541. */
export const hpackCases: readonly Case[] = [
  ...written.map(([name, field]): Case => [`HPACK ${name}`, 'answer 200', [behind(field)]]),
  ['HPACK 4.2 size of the table', 'answer 200', [sized('3f61')]],
  ['HPACK 4.2 two sizes of the table', 'answer 200', [sized('3f613fe11f')]],
  ['HPACK 2.3.3 name by an invalid index', 'GOAWAY COMPRESSION_ERROR', [behind('7f0700')]],
  ['HPACK 5.2 padding of zeros', 'GOAWAY COMPRESSION_ERROR', [behind('0085f2b24a84ff83495090')]],
  [
    'HPACK 2.3.3 invalid index',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.concat([block, Buffer.of(0xfe)]))],
  ],
  [
    'HPACK 4.2 table larger than allowed',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.concat([Buffer.of(0x3f, 0xe1, 0xff, 0x03), block]))],
  ],
  [
    'HPACK 4.2 size of the table at the end',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.concat([block, Buffer.of(0x20)]))],
  ],
  [
    'HPACK 5.2 Huffman with EOS',
    'GOAWAY COMPRESSION_ERROR',
    [
      frame(
        'HEADERS',
        whole,
        1,
        Buffer.concat([block, Buffer.of(0, 0x84, 0xff, 0xff, 0xff, 0xff, 1, 0x61)]),
      ),
    ],
  ],
  [
    'HPACK 5.2 padding of a byte',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.concat([block, Buffer.of(0, 0x82, 0x1f, 0xff, 1, 0x61)]))],
  ],
  [
    'HPACK 6.1 index 0',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.concat([block, Buffer.of(0x80)]))],
  ],
  [
    'HPACK length that overflows',
    'GOAWAY COMPRESSION_ERROR',
    [
      frame(
        'HEADERS',
        whole,
        1,
        Buffer.concat([block, Buffer.of(0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f)]),
      ),
    ],
  ],
];
