import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import {
  acceptValuesCachedMax,
  codings,
  preferredCodings,
} from '../../../src/core/http/representation/negotiation.ts';

suite('Accept-Encoding', () => {
  const cases: readonly (readonly [accept: string | undefined, wanted: string])[] = [
    [undefined, ''],
    ['', ''],
    ['gzip, deflate, br, zstd', 'zstd br gzip'],
    ['gzip, deflate, br', 'br gzip'],
    ['gzip, deflate', 'gzip'],
    ['deflate, compress', ''],
    ['GZIP, Br', 'br gzip'],
    ['x-gzip', 'gzip'],
    ['gzip;q=1, br;q=0.5', 'gzip br'],
    ['gzip;q=0.8, zstd;q=0.8, br;q=0.9', 'br zstd gzip'],
    ['zstd;q=0.001, gzip;q=0.002', 'gzip zstd'],
    ['br;q=0, gzip;q=0.1', 'gzip'],
    ['br;q=0, *', 'zstd gzip'],
    ['*', 'zstd br gzip'],
    ['gzip;q=0.5, *', 'zstd br gzip'],
    ['gzip, *;q=0.5', 'gzip zstd br'],
    ['*;q=0', ''],
    ['gzip, *;q=0', 'gzip'],
    ['identity', ''],
    ['identity;q=1, *;q=0', ''],
    ['identity, gzip;q=0.5', ''],
    ['identity;q=0.5, gzip', 'gzip'],
    ['identity;q=0.5, gzip;q=0.5', 'gzip'],
    ['identity;q=0.5, gzip;q=0.4, br;q=0.6', 'br'],
    ['identity;q=0', ''],
    ['identity;q=0, gzip;q=0', ''],
    ['identity;q=0, gzip', 'gzip'],
    ['gzip;q=2', ''],
    ['gzip;q=, br', 'br'],
    ['gzip br', ''],
    [', ,gzip,', 'gzip'],
    ['gzip;level=9', 'gzip'],
    ['"gzip', ''],
  ];
  for (const [accept, wanted] of cases) {
    test(`by ${accept === undefined ? 'no Accept-Encoding' : `"${accept}"`}`, () => {
      assert.equal(preferredCodings(accept).join(' '), wanted);
      // The second call reads the cache.
      assert.equal(preferredCodings(accept).join(' '), wanted);
    });
  }

  test('is cached for the values that browsers send, not for arbitrary ones', () => {
    const first = preferredCodings('gzip, br');
    assert.equal(preferredCodings('gzip, br'), first);
    const long = `gzip, ${'x'.repeat(300)}`;
    assert.notEqual(preferredCodings(long), preferredCodings(long));
    for (let at = 0; at <= acceptValuesCachedMax; at += 1) preferredCodings(`gzip, x${at}`);
    assert.notEqual(preferredCodings('gzip, br'), first);
  });

  test('yields each coding once, for any value', () => {
    const piece = fc.constantFrom(
      'gzip',
      'br',
      'zstd',
      'identity',
      '*',
      ';q=',
      '0',
      '0.5',
      ',',
      '"',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string()), { maxLength: 20 }), (parts) => {
        const wanted = preferredCodings(parts.join(''));
        assert.equal(new Set(wanted).size, wanted.length);
        assert.ok(wanted.every((coding) => codings.includes(coding)));
      }),
    );
  });
});
