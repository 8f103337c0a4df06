import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseQuery, takeParameter } from '../../../src/core/http/query.ts';

const piece = fc.oneof(
  fc.constantFrom(
    'a',
    'k',
    '=',
    '&',
    '+',
    '%',
    '?',
    '#',
    '%C3%A4',
    '%c3',
    '%ff',
    '%2',
    '%zz',
    '%26',
  ),
  fc.string({ unit: 'binary-ascii', maxLength: 3 }),
);

describe('a query', () => {
  test('is read as URLSearchParams reads it', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        const text = pieces.join('');
        const read = parseQuery(text).map(({ name, value }) => [name, value]);
        // URLSearchParams skips one question mark at the beginning.
        assert.deepEqual(read, [...new URLSearchParams(`?${text}`)]);
      }),
    );
  });

  test('keeps malformed percent-encoding as it is', () => {
    assert.equal(parseQuery('ä%zz%C3%A4=\ud800')[0]?.name, 'ä%zzä');
    assert.equal(parseQuery('a=\ud800')[0]?.value, '\ufffd');
  });

  test('is reported if it is not UTF-8', () => {
    const isUtf8 = (text: string) => parseQuery(text).map((one) => one.isUtf8);
    assert.deepEqual(isUtf8('a=%C3%A4&b=%ff&%ff=c&d=%ED%A0%80&e=\ud83d\ude00%zz'), [
      ...[true, false, false, false, true],
    ]);
  });

  test('yields one parameter, and the query without it', () => {
    assert.deepEqual(takeParameter('a=1&k=x+y&b=%ff&k=z', 'k'), {
      value: 'x y',
      rest: 'a=1&b=%EF%BF%BD',
    });
    assert.equal(takeParameter('a=1', 'k'), undefined);
  });
});
