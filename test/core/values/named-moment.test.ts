import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Failure } from '../../../src/core/values/failure.ts';
import { parseNamedMoment, shownMoment } from '../../../src/core/values/time.ts';

const berlin = 'Europe/Berlin';

suite('a named moment', () => {
  for (const [text, zone, at] of [
    ['2026-12-01T08:00Z', undefined, '2026-12-01T08:00:00.000Z'],
    ['2026-12-01T08:00+05:30', undefined, '2026-12-01T02:30:00.000Z'],
    ['2026-12-01T08:00', berlin, '2026-12-01T07:00:00.000Z'],
    ['2026-07-01 08:00', berlin, '2026-07-01T06:00:00.000Z'],
    ['2026-12-24T20:00[Europe/Berlin]', undefined, '2026-12-24T19:00:00.000Z'],
    ['2026-12-24T20:00+01:00[Europe/Berlin]', undefined, '2026-12-24T19:00:00.000Z'],
    ['2026-12-24T19:00Z', berlin, '2026-12-24T19:00:00.000Z'],
    ['2026-12-01T08:00', 'UTC', '2026-12-01T08:00:00.000Z'],
    // Clocks show 02:30 twice on that day; the first time is that of summer.
    ['2026-10-25T02:30', berlin, '2026-10-25T00:30:00.000Z'],
    ['2026-10-25T02:30+01:00', berlin, '2026-10-25T01:30:00.000Z'],
    // After 2^31 seconds, and the last day that a date can have.
    ['2038-01-19T03:14:08', 'UTC', '2038-01-19T03:14:08.000Z'],
    ['9999-12-31T12:00', 'America/New_York', '9999-12-31T17:00:00.000Z'],
    ['2026-01-01T00:00', 'Pacific/Kiritimati', '2025-12-31T10:00:00.000Z'],
  ] as const) {
    test(`${text} in ${zone ?? 'no zone'}`, () => {
      assert.equal(parseNamedMoment(text, zone).at, at);
    });
  }

  for (const [text, zone, message] of [
    ['2026-12-01T08:00', undefined, /^Which time zone/],
    ['2026-03-29T02:30', berlin, /^Clocks in Europe\/Berlin skip 2026-03-29T02:30: 03:00/],
    ['2026-12-01T08:00+02:00', berlin, /does not have the offset \+02:00/],
    ['2026-12-01T08:00[Europe/Paris]', berlin, /differ/],
    ['2026-12-01T08:00', 'Europe/Bern', /no time zone "Europe\/Bern"/],
    ['2026-12-01T08:00[]', undefined, /no time zone ""/],
    ['2026-02-30T08:00', berlin, /is no date-time/],
    ['0001-01-01T00:00', berlin, /before 1970/],
    ['9999-12-31T23:59:59', 'America/New_York', /is no/],
    ['tomorrow', berlin, /is no date-time/],
    ['', undefined, /is no date-time/],
    ['2026-12-01T08:00[UTC][UTC]', undefined, /is no date-time/],
  ] as const) {
    test(`refuses ${text} in ${zone ?? 'no zone'}`, () => {
      assert.throws(() => parseNamedMoment(text, zone), isInvalid(message));
    });
  }

  test('is shown in its time zone', () => {
    const moment = parseNamedMoment('2026-12-01T08:00', berlin);
    assert.equal(shownMoment(moment), '2026-12-01 08:00 Europe/Berlin');
    assert.equal(shownMoment({ at: '2026-12-01T07:00:00.000Z' }), '2026-12-01 07:00 UTC');
  });
});

function isInvalid(message: RegExp): (thrown: unknown) => boolean {
  return (thrown) =>
    thrown instanceof Failure && thrown.code === 'invalid' && message.test(thrown.message);
}
