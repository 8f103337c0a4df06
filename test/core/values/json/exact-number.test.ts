import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import {
  compareNumbers,
  hasExactNumber,
  numberOf,
  withNumberTexts,
} from '../../../../src/core/values/json/exact-number.ts';
import { parseJson } from '../../../../src/core/values/json/parse.ts';
import { canonicalJson, sameJson, type Json } from '../../../../src/core/values/json/json.ts';

/** A number and the text that JSON has for it after it was read. */
const read: readonly (readonly [string, string])[] = [
  ['1', '1'],
  ['1.0', '1'],
  ['1e0', '1'],
  ['-0', '0'],
  ['0.1', '0.1'],
  ['0.10', '0.1'],
  ['9007199254740992', '9007199254740992'],
  ['9007199254740993', '9007199254740993'],
  ['-9223372036854775808', '-9223372036854775808'],
  ['18446744073709551616', '18446744073709551616'],
  ['1000000000000000000000', '1000000000000000000000'],
  ['1e21', '1e+21'],
  ['0.10000000000000001', '0.10000000000000001'],
  ['0.1000000000000000055511151231257827', '0.1000000000000000055511151231257827'],
  ['12345678901234567890.10', '12345678901234567890.1'],
  ['1e400', '1e+400'],
  ['1E-400', '1e-400'],
  ['5e-324', '5e-324'],
  ['1.7976931348623157e308', '1.7976931348623157e+308'],
];

suite('parseJson', () => {
  test('keeps the value of each number', () => {
    for (const [text, kept] of read) {
      assert.equal(JSON.stringify(parseJson(`{"n": [${text}]}`)), `{"n":[${kept}]}`);
    }
  });

  test('makes doubles of all numbers that they hold', () => {
    const text = JSON.stringify({
      n: [0.1, 2 ** 53, -1e21, 5e-324, 1 / 3],
      t: ':1e5 12345678901234567',
    });
    assert.deepEqual(parseJson(text), JSON.parse(text));
    assert.equal(hasExactNumber(parseJson(text)), false);
  });

  test('refuses a number that is too long, by its path', () => {
    const digits = '9'.repeat(401);
    for (const number of [digits, `0.${digits}`, '1e1001', '1e-2000', '1e99999999999999999999']) {
      assert.throws(() => parseJson(`{"v":{"data":{"list":[1,${number}]}}}`), {
        code: 'invalid',
        field: 'data.list.1',
        message: /more than 400 digits/,
      });
    }
  });

  test('gives back any decimal, or refuses it', () => {
    const digits = fc.stringMatching(/^\d{1,40}$/);
    const decimal = fc
      .tuple(fc.boolean(), digits, fc.option(digits), fc.option(fc.integer({ min: -60, max: 60 })))
      .map(([isNegative, whole, fraction, power]) => {
        const sign = isNegative ? '-' : '';
        const start = whole.replace(/^0+(?=\d)/, '');
        return `${sign}${start}${fraction === null ? '' : `.${fraction}`}${power === null ? '' : `e${power}`}`;
      });
    fc.assert(
      fc.property(decimal, (text) => {
        const kept = JSON.stringify(parseJson(`[${text}]`)).slice(1, -1);
        assert.equal(fractionOf(kept), fractionOf(text));
      }),
    );
  });
});

/** A number as a fraction in lowest terms, by BigInt. */
function fractionOf(text: string): string {
  const [mantissa = '', power = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const exponent = Number(power) - fraction.length;
  let units = BigInt(`${whole}${fraction}`.replace('-', '') || '0');
  if (units === 0n) return '0';
  let scale = exponent;
  for (; units % 10n === 0n; units /= 10n) scale += 1;
  return `${text.startsWith('-') ? '-' : ''}${units}e${scale}`;
}

test('numbers compare by their values', () => {
  const sorted = [
    ...['-1e400', '-18446744073709551617', '-9007199254740993', '-9007199254740992', '-1e-400'],
    ...['0', '1e-400', '0.1', '0.1000000000000000055511151231257827', '9007199254740992'],
    ...['9007199254740993', '9007199254740994', '18446744073709551615', '1e21'],
    ...['1000000000000000000001', '1e400', '2e400'],
  ].map((text) => numberOf(text) ?? assert.fail(text));
  for (const [at, one] of sorted.entries()) {
    for (const [place, other] of sorted.entries()) {
      assert.equal(compareNumbers(one, other), Math.sign(at - place));
    }
  }
});

test('equal numbers are the same and have one canonical text, whatever their form', () => {
  const pairs = [
    ['9007199254740993', '9007199254740993.0'],
    ['1e21', '1000000000000000000000'],
    ['123456789012345678901234567890', '1.2345678901234567890123456789e29'],
  ].map((pair) => pair.map((text) => parseJson(`{"n":${text}}`) as Json));
  for (const [one = null, other = null] of pairs) {
    assert.ok(sameJson(one, other));
    assert.equal(canonicalJson(one), canonicalJson(other));
  }
  const [one, other] = ['9007199254740992', '9007199254740993'].map((text) => {
    return parseJson(`{"n":${text}}`) as Json;
  });
  assert.ok(!sameJson(one, other));
  assert.notEqual(canonicalJson(one ?? null), canonicalJson(other ?? null));
});

test('a thread gets numbers as texts, and never another value', () => {
  const value = parseJson('{"id": 9007199254740993, "n": 1}');
  assert.throws(() => structuredClone(value), { name: 'DataCloneError' });
  assert.deepEqual(withNumberTexts(value), { id: '9007199254740993', n: 1 });
});
