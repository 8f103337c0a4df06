import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import { formatHttpDate, parseHttpDate } from '../../../src/core/http/date.ts';

const sample = Date.UTC(1994, 10, 6, 8, 49, 37);
const year2026 = Date.UTC(2026, 5, 1);

const dates: readonly (readonly [text: string, moment: number])[] = [
  ['Sun, 06 Nov 1994 08:49:37 GMT', sample],
  ['Sunday, 06-Nov-94 08:49:37 GMT', sample],
  ['Sun Nov  6 08:49:37 1994', sample],
  ['Sun Nov 16 08:49:37 1994', Date.UTC(1994, 10, 16, 8, 49, 37)],
  ['Thu, 29 Feb 2024 00:00:00 GMT', Date.UTC(2024, 1, 29)],
  ['Sat, 31 Dec 2016 23:59:60 GMT', Date.UTC(2017, 0, 1)],
  // A two-digit year is at most 50 years ahead (RFC 9110 §5.6.7).
  ['Monday, 01-Jan-76 00:00:00 GMT', Date.UTC(2076, 0, 1)],
  ['Monday, 01-Jan-77 00:00:00 GMT', Date.UTC(1977, 0, 1)],
  ['Monday, 01-Jan-26 00:00:00 GMT', Date.UTC(2026, 0, 1)],
  ['Monday, 01-Jan-00 00:00:00 GMT', Date.UTC(2000, 0, 1)],
];

const none = [
  ...['', '0', '784111777', '1994-11-06T08:49:37Z', 'Sun, 06 Nov 1994 08:49:37'],
  ...['Sun, 6 Nov 1994 08:49:37 GMT', 'Sun, 06 Nov 94 08:49:37 GMT'],
  ...['Sun, 06 Nov 1994 08:49:37 UTC', 'Sun, 06 Nov 1994 08:49:37 +0000'],
  ...['sun, 06 nov 1994 08:49:37 gmt', 'Sun 06 Nov 1994 08:49:37 GMT'],
  ...['Sun, 31 Feb 1994 08:49:37 GMT', 'Sun, 00 Nov 1994 08:49:37 GMT'],
  ...['Sun, 29 Feb 2023 08:49:37 GMT', 'Sun, 06 Nov 1994 24:00:00 GMT'],
  ...['Sun, 06 Nov 1994 08:60:37 GMT', 'Sun, 06 Nov 1994 08:49:61 GMT'],
  ...['Sun Nov 6 08:49:37 1994', 'Sun, 06-Nov-94 08:49:37 GMT', 'Sunday, 06-Nov-1994 08:49:37 GMT'],
  ...['Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT', ' Sun, 06 Nov 1994'],
];

suite('a date in a header', () => {
  for (const [text, moment] of dates) {
    test(`${text} is ${new Date(moment).toISOString()}`, () => {
      assert.equal(parseHttpDate(text, year2026), moment);
    });
  }

  for (const text of none) {
    test(`${JSON.stringify(text)} is not valid`, () => {
      assert.equal(parseHttpDate(text, year2026), undefined);
    });
  }

  test('is written as in RFC 9110, within the years that its format can hold', () => {
    assert.equal(formatHttpDate(sample + 999), 'Sun, 06 Nov 1994 08:49:37 GMT');
    assert.equal(formatHttpDate(-1), 'Thu, 01 Jan 1970 00:00:00 GMT');
    assert.equal(formatHttpDate(8.64e15), 'Fri, 31 Dec 9999 23:59:59 GMT');
  });

  test('is read back as it was written', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 253_402_300_799 }), fc.integer(), (seconds, clock) => {
        assert.equal(parseHttpDate(formatHttpDate(seconds * 1000), clock), seconds * 1000);
      }),
    );
  });
});
