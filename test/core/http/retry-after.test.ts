import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { readRetryAfter } from '../../../src/core/http/date.ts';

const second = 1_000;
const day = 86_400 * second;

suite('Retry-After', () => {
  const nowMs = Date.UTC(2026, 10, 21, 12);
  const cases: readonly (readonly [string | undefined, number | undefined])[] = [
    [undefined, undefined],
    ['0', 0],
    ['120', 120 * second],
    [' 120 ', 120 * second],
    ['86400', day],
    ['86401', day],
    ['99999999999999999999', day],
    ['Sat, 21 Nov 2026 12:01:00 GMT', 60 * second],
    ['Saturday, 21-Nov-26 12:01:00 GMT', 60 * second],
    ['Sat Nov 21 12:01:00 2026', 60 * second],
    ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
    ['Mon, 23 Nov 2026 12:00:00 GMT', day],
    ['-1', undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['soon', undefined],
    ['', undefined],
    ['2026-11-21T12:01:00Z', undefined],
    ['Sun, 31 Feb 2026 12:01:00 GMT', undefined],
  ];
  for (const [field, expected] of cases) {
    test(field === undefined ? 'absent' : JSON.stringify(field), () => {
      assert.equal(readRetryAfter(field, { nowMs, msMax: day }), expected);
    });
  }
});
