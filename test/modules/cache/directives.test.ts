import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  fieldsOf,
  governingDirectives,
  parseDirectives,
  secondsOf,
} from '../../../src/modules/cache/directives.ts';

suite('seconds of a directive (RFC 9111 §1.2.2, §4.2.1, §5.2)', () => {
  const cases: readonly (readonly [string, number | undefined])[] = [
    ['max-age=10', 10],
    ['MAX-AGE=10', 10],
    ['foo, max-age=10, bar', 10],
    ['max-age="10"', 10],
    ['max-age=010', 10],
    ['max-age=10, max-age=20', 10],
    ['max-age=99999999999', 2 ** 31],
    ['', undefined],
    ['xmax-age=10', undefined],
    ['extension="max-age=10"', undefined],
    ['max-age', 0],
    ['max-age=', 0],
    ['max-age=-1', 0],
    ['max-age=1.5', 0],
    ['max-age=10a', 0],
    ["max-age='10'", 0],
    ['max-age =10', 0],
    ['max-age= 10', 0],
    ['a="b, max-age=10', 10],
  ];
  for (const [field, seconds] of cases) {
    test(`of "${field}" are ${seconds ?? 'absent'}`, () => {
      assert.equal(secondsOf(parseDirectives(field), 'max-age'), seconds);
    });
  }
});

suite('fields that a directive names (RFC 9111 §5.2.2.4, §5.2.2.7)', () => {
  const cases: readonly (readonly [string, readonly string[] | 'all'])[] = [
    ['max-age=1', []],
    ['no-cache', 'all'],
    ['No-Cache', 'all'],
    ['no-cache="Set-Cookie"', ['set-cookie']],
    ['no-cache="A , b"', ['a', 'b']],
    ['no-cache=a', ['a']],
    ['no-cache=""', 'all'],
    ['no-cache="a b"', 'all'],
    ['no-cache ="a"', 'all'],
  ];
  for (const [field, names] of cases) {
    test(`${field}: ${String(names)}`, () => {
      assert.deepEqual(fieldsOf(parseDirectives(field), 'no-cache'), names);
    });
  }
});

suite('the directives that govern a shared cache (RFC 9213 §2)', () => {
  const cases: readonly (readonly [string, readonly string[], Record<string, unknown>])[] = [
    ['Cache-Control alone', ['Cache-Control', 'max-age=1'], { 'max-age': '1' }],
    ['a targeted field first', ['CDN-Cache-Control', 'max-age=2'], { 'max-age': '2' }],
    ['its flags', ['CDN-Cache-Control', 'no-store, a=?0'], { 'no-store': true }],
    [
      'its lines together',
      ['CDN-Cache-Control', 'a', 'cdn-cache-control', 'b'],
      { a: true, b: true },
    ],
    ['its lists of names', ['CDN-Cache-Control', 'no-cache="a, b"'], { 'no-cache': 'a, b' }],
    ['its unreadable arguments', ['CDN-Cache-Control', 'max-age="2"'], { 'max-age': undefined }],
    ['not an empty one', ['CDN-Cache-Control', '', 'Cache-Control', 'x'], { x: true }],
    [
      'not one that is no dictionary',
      ['CDN-Cache-Control', 'max-age=2, &', 'Cache-Control', 'x'],
      { x: true },
    ],
    ['not one in capitals', ['CDN-Cache-Control', 'Max-Age=2', 'Cache-Control', 'x'], { x: true }],
  ];
  for (const [name, fields, directives] of cases) {
    test(name, () => {
      assert.deepEqual(Object.fromEntries(governingDirectives(fields).directives), directives);
    });
  }
});
