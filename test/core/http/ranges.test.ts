import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import {
  multipartRanges,
  parseRanges,
  rangesMax,
} from '../../../src/core/http/representation/ranges.ts';

/** Ranges as `first-last`, joined by a space; '' for unsatisfiable, undefined for ignored. */
function shown(value: string, bytesLength: number): string | undefined {
  return parseRanges(value, bytesLength)
    ?.map(({ first, last }) => `${first}-${last}`)
    .join(' ');
}

const many = (count: number): string =>
  Array.from({ length: count }, (_, at) => `${at * 2}-${at * 2}`).join(',');

const ofHundred: readonly (readonly [value: string, ranges: string | undefined])[] = [
  // RFC 9110 §14.1.2.
  ['bytes=0-0', '0-0'],
  ['bytes=0-9', '0-9'],
  ['bytes=0-', '0-99'],
  ['bytes=99-', '99-99'],
  ['bytes=99-99', '99-99'],
  ['bytes=50-1000', '50-99'],
  ['bytes=50-99999999999999999999999999', '50-99'],
  [`bytes=50-${'9'.repeat(500)}`, '50-99'],
  ['bytes=000-009', '0-9'],
  ['bytes=-1', '99-99'],
  ['bytes=-10', '90-99'],
  ['bytes=-100', '0-99'],
  ['bytes=-1000', '0-99'],
  ['BYTES=0-9', '0-9'],
  ['bytes= 0-9', '0-9'],
  ['bytes=\t0-9 ,', '0-9'],
  // Unsatisfiable.
  ['bytes=100-', ''],
  ['bytes=100-200', ''],
  [`bytes=${'9'.repeat(500)}-`, ''],
  ['bytes=-0', ''],
  ['bytes=100-,200-300,-0', ''],
  // Several ranges.
  ['bytes=0-9,20-29', '0-9 20-29'],
  ['bytes=0-9, 20-29, -10', '0-9 20-29 90-99'],
  ['bytes=0-9,,20-29', '0-9 20-29'],
  ['bytes=20-29,0-9', '20-29 0-9'],
  ['bytes=-10,0-0', '90-99 0-0'],
  ['bytes=0-9,100-', '0-9'],
  ['bytes=200-,5-6,300-', '5-6'],
  // Merged because they overlap or touch (§15.3.7.2).
  ['bytes=0-9,10-19', '0-19'],
  ['bytes=0-9,5-14', '0-14'],
  ['bytes=5-14,0-9', '0-14'],
  ['bytes=0-9,0-9', '0-9'],
  ['bytes=0-99,10-20', '0-99'],
  ['bytes=10-20,0-99', '0-99'],
  ['bytes=0-,0-,0-,-100', '0-99'],
  ['bytes=0-9,11-19', '0-9 11-19'],
  ['bytes=50-59,0-9,60-69', '50-69 0-9'],
  ['bytes=55-60,0-9,50-56', '50-60 0-9'],
  ['bytes=50-59,80-89,0-9,55-85', '50-89 0-9'],
  [`bytes=${many(rangesMax)}`, many(rangesMax).replaceAll(',', ' ')],
  // Ignored: malformed (§14.2), too many, or another unit.
  [`bytes=${many(rangesMax + 1)}`, undefined],
  [`bytes=${'0-,'.repeat(5000)}`, undefined],
  ['', undefined],
  ['bytes', undefined],
  ['bytes=', undefined],
  ['bytes=,', undefined],
  ['bytes=-', undefined],
  ['bytes=a-b', undefined],
  ['bytes=5', undefined],
  ['bytes=9-0', undefined],
  ['bytes=0-9,9-0', undefined],
  ['bytes=0-9,x', undefined],
  ['bytes=0--9', undefined],
  ['bytes=--9', undefined],
  ['bytes=+0-9', undefined],
  ['bytes=0x0-9', undefined],
  ['bytes=0.5-9', undefined],
  ['bytes=1e1-', undefined],
  ['bytes=0 -9', undefined],
  ['bytes=0-9;a', undefined],
  ['bytes="0-9"', undefined],
  ['bytes="', undefined],
  ['bytes=0-9 bytes=20-29', undefined],
  ['bytes =0-9', undefined],
  [' bytes=0-9', undefined],
  ['bytes:0-9', undefined],
  ['items=0-9', undefined],
  ['seconds=1-2', undefined],
  ['0-9', undefined],
];

const ofNothing: readonly (readonly [value: string, ranges: string | undefined])[] = [
  ['bytes=0-', undefined],
  ['bytes=1-', ''],
  ['bytes=0-0', ''],
  ['bytes=-0', ''],
  ['bytes=-5', undefined],
  ['bytes=0-,-5', undefined],
];

suite('a Range', () => {
  for (const [length, cases] of [
    [100, ofHundred],
    [0, ofNothing],
  ] as const) {
    for (const [value, expected] of cases) {
      const outcome = expected === undefined ? 'ignored' : expected || 'unsatisfiable';
      test(`${value.slice(0, 40)} of ${length} bytes is ${outcome.slice(0, 30)}`, () => {
        assert.equal(shown(value, length), expected);
      });
    }
  }

  test('never yields a byte twice, nor one that was not requested', () => {
    const spec = fc.oneof(
      fc.tuple(fc.nat(60), fc.nat(60)).map(([first, length]) => `${first}-${first + length}`),
      fc.nat(60).map((first) => `${first}-`),
      fc.nat(60).map((length) => `-${length}`),
    );
    const specs = fc.array(spec, { minLength: 1, maxLength: rangesMax });
    fc.assert(
      fc.property(specs, fc.integer({ min: 1, max: 50 }), (list, length) => {
        const positions = [...Array(length).keys()];
        const wanted = new Set(list.flatMap((one) => sliceOf(positions, one)));
        const got = (parseRanges(`bytes=${list.join(', ')}`, length) ?? []).flatMap(
          ({ first, last }) => positions.slice(first, last + 1),
        );
        assert.equal(new Set(got).size, got.length);
        assert.deepEqual(new Set(got), wanted);
      }),
      { numRuns: 1000 },
    );
  });
});

suite('multipart/byteranges', () => {
  test('has each part with its type and range, and a Content-Length', () => {
    const content = Buffer.from('0123456789abcdefghij');
    const multipart = multipartRanges(
      [
        { first: 10, last: 12 },
        { first: 0, last: 0 },
      ],
      { contentType: 'text/plain', bytesLength: content.length, validator: '"a"' },
    );
    const boundary = /^multipart\/byteranges; boundary=([0-9a-f]{48})$/.exec(
      multipart.contentType,
    )?.[1];
    assert.ok(boundary !== undefined);
    const sent = Buffer.concat(
      multipart.parts.map((part) =>
        Buffer.isBuffer(part) ? part : content.subarray(part.first, part.last + 1),
      ),
    );
    assert.equal(
      sent.toString(),
      `--${boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 10-12/20\r\n\r\nabc` +
        `\r\n--${boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-0/20\r\n\r\n0` +
        `\r\n--${boundary}--\r\n`,
    );
    assert.equal(multipart.bytesLength, sent.length);
  });

  test('has the same boundary for the same representation, another one for another', () => {
    const typeOf = (validator: string): string =>
      multipartRanges([{ first: 0, last: 0 }], { contentType: 'a/b', bytesLength: 9, validator })
        .contentType;
    assert.equal(typeOf('"a"'), typeOf('"a"'));
    assert.notEqual(typeOf('"a"'), typeOf('"b"'));
    assert.match(typeOf('"a"\r\n--\r\nSet-Cookie: a'), /^[a-z/]+; boundary=[0-9a-f]{48}$/);
  });
});

function sliceOf(positions: readonly number[], spec: string): readonly number[] {
  const [first = '', last = ''] = spec.split('-');
  if (first === '') return last === '0' ? [] : positions.slice(-Number(last));
  return positions.slice(Number(first), last === '' ? undefined : Number(last) + 1);
}
