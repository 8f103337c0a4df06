import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import {
  instantText,
  isTimeZone,
  minutesOfDay,
  nextTimeOfDay,
  parseDateTime,
} from '../../../src/core/values/time.ts';

const hour = 3_600_000;

function next(after: string, times: readonly string[], zone: string): string {
  const minutes = times.map((time) => minutesOfDay(time) ?? assert.fail(time));
  return new Date(nextTimeOfDay(Date.parse(after), minutes, zone)).toISOString();
}

suite('the next time of day', () => {
  for (const [title, after, times, zone, expected] of [
    ['may be today', '2026-11-23T00:10Z', ['02:00'], 'Europe/Zurich', '2026-11-23T01:00Z'],
    ['may be tomorrow', '2026-11-23T01:10Z', ['02:00'], 'Europe/Zurich', '2026-11-24T01:00Z'],
    [
      'is never the same moment',
      '2026-11-23T01:00Z',
      ['02:00'],
      'Europe/Zurich',
      '2026-11-24T01:00Z',
    ],
    [
      'is the nearest of several',
      '2026-07-01T11:00Z',
      ['23:30', '13:30'],
      'Asia/Kolkata',
      '2026-07-01T18:00Z',
    ],
    ['may be midnight', '2026-07-01T11:00Z', ['00:00'], 'America/New_York', '2026-07-02T04:00Z'],
    [
      'may be in a zone with an offset only',
      '2026-07-01T11:00Z',
      ['12:00'],
      '-05:30',
      '2026-07-01T17:30Z',
    ],
    // Zurich puts its clocks forward on 2026-03-29 at 02:00 (01:00Z), and back on 2026-10-25.
    [
      'that clocks skip is the moment of the change',
      '2026-03-28T23:00Z',
      ['02:30'],
      'Europe/Zurich',
      '2026-03-29T01:00Z',
    ],
    [
      'is as usual on the day after that',
      '2026-03-29T01:00Z',
      ['02:30'],
      'Europe/Zurich',
      '2026-03-30T00:30Z',
    ],
    [
      'that clocks show twice is the first one',
      '2026-10-24T23:00Z',
      ['02:30'],
      'Europe/Zurich',
      '2026-10-25T00:30Z',
    ],
    ['is not the second one', '2026-10-25T00:30Z', ['02:30'], 'Europe/Zurich', '2026-10-26T01:30Z'],
    [
      'may be skipped by half an hour',
      '2026-10-03T14:00Z',
      ['02:10'],
      'Australia/Lord_Howe',
      '2026-10-03T15:30Z',
    ],
    [
      'may be on a day that a zone skips',
      '2011-12-30T09:00Z',
      ['12:00'],
      'Pacific/Apia',
      '2011-12-30T10:00Z',
    ],
  ] as const) {
    test(title, () => {
      assert.equal(next(after, times, zone), new Date(expected).toISOString());
    });
  }

  test('agrees with Temporal for any moment and zone, once a day', () => {
    const { Temporal } = globalThis as unknown as { Temporal?: TemporalLike };
    if (Temporal === undefined) return;
    const zones = ['Europe/Zurich', 'America/St_Johns', 'Australia/Lord_Howe', 'Africa/Casablanca'];
    const moments = fc.integer({ min: Date.UTC(1990), max: Date.UTC(2030) });
    const day = fc.record({ ms: moments, minute: fc.nat(1439), zone: fc.constantFrom(...zones) });
    fc.assert(
      fc.property(day, ({ ms, minute, zone }) => {
        const found = nextTimeOfDay(ms, [minute], zone);
        assert.ok(found > ms && found - ms <= 26 * hour);
        const local = Temporal.Instant.fromEpochMilliseconds(found).toZonedDateTimeISO(zone);
        const time = `${pad(Math.floor(minute / 60))}:${pad(minute % 60)}`;
        // For a skipped time, "earlier" is as long before the change as the time is after it.
        const plain = `${local.toPlainDate().toString()}T${time}[${zone}]`;
        const exact = Temporal.ZonedDateTime.from(plain, { disambiguation: 'earlier' });
        if (exact.toPlainTime().toString().startsWith(time)) {
          assert.equal(found, exact.epochMilliseconds);
        } else {
          const just = Temporal.Instant.fromEpochMilliseconds(found - 1).toZonedDateTimeISO(zone);
          assert.notEqual(just.offset, local.offset);
        }
      }),
      { numRuns: 500 },
    );
  });
});

interface ZonedLike {
  readonly epochMilliseconds: number;
  readonly offset: string;
  toPlainDate(): { toString(): string };
  toPlainTime(): { toString(): string };
}

/** The part of Temporal that this test uses; Node 24 has no Temporal. */
interface TemporalLike {
  readonly Instant: {
    fromEpochMilliseconds(ms: number): { toZonedDateTimeISO(zone: string): ZonedLike };
  };
  readonly ZonedDateTime: {
    from(text: string, options: { readonly disambiguation: 'earlier' }): ZonedLike;
  };
}

function pad(number: number): string {
  return String(number).padStart(2, '0');
}

test('invalid times and time zones are refused', () => {
  assert.deepEqual(
    ['00:00', '02:05', '23:59', '24:00', '2:00', '02:60', '02:00:00', ''].map(minutesOfDay),
    [0, 125, 1439, undefined, undefined, undefined, undefined, undefined],
  );
  assert.deepEqual(['Europe/Zurich', 'UTC', '+02:00', 'Mars/Olympus', ''].map(isTimeZone), [
    true,
    true,
    true,
    false,
    false,
  ]);
});

test('a leap second is the first second of the next day, and none is in the middle of one', () => {
  for (const [text, utc] of [
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
    ['2017-01-01T00:59:60.5+01:00', '2017-01-01T00:00:00.500Z'],
    ['2016-12-31T12:00:60Z', undefined],
    ['2016-12-31T23:60:00Z', undefined],
  ] as const) {
    assert.equal(parseDateTime(text), utc, text);
  }
  assert.equal(instantText('2016-12-31T23:59:60.25Z'), '2017-01-01T00:00:00.25');
});
