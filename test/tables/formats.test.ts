import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formats } from '../../src/tables/formats.ts';

const { date } = formats;

test('a date is a day that the calendar has', () => {
  assert.ok(date !== undefined);
  const valid = ['2026-11-23', '2024-02-29', '2000-02-29', '0000-01-01', '9999-12-31'];
  const others = [
    '2023-02-29',
    '1900-02-29',
    '2026-04-31',
    '2026-00-01',
    '2026-13-01',
    '2026-01-00',
  ];
  for (const text of valid) assert.equal(date(text), true, text);
  for (const text of [...others, '2026-1-1', '2026-11-23T00:00', '']) {
    assert.equal(date(text), false, text);
  }
});

test('a date agrees with the calendar of JavaScript', () => {
  const two = (max: number) => fc.nat(max).map((one) => String(one).padStart(2, '0'));
  const year = fc.nat(9_999).map((one) => String(one).padStart(4, '0'));
  fc.assert(
    fc.property(year, two(14), two(33), (...parts) => {
      const text = parts.join('-');
      const timeMs = Date.parse(`${text}T00:00:00Z`);
      const isDay = !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(text);
      assert.equal(date?.(text), isDay);
    }),
  );
});
