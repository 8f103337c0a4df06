import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { daysOf } from '../../console/src/calendar/entries.ts';
import { momentParts, textOfMoment } from '../../console/src/pages/moment.ts';

suite('the fields of a moment', () => {
  for (const [stored, local, zone] of [
    ['2026-12-01T07:00:00.000Z[Europe/Berlin]', '2026-12-01T08:00', 'Europe/Berlin'],
    ['2026-07-01T06:00:00.000Z[Europe/Berlin]', '2026-07-01T08:00', 'Europe/Berlin'],
    ['2026-03-29T01:00:00.000Z[Europe/Berlin]', '2026-03-29T03:00', 'Europe/Berlin'],
    ['2026-12-01T07:00:00.000Z', '2026-12-01T07:00', 'UTC'],
    ['2026-12-01T07:00:05.000Z', '2026-12-01T07:00:05', 'UTC'],
    ['2026-12-01T07:00:00.250Z[UTC]', '2026-12-01T07:00:00.250', 'UTC'],
    ['2026-12-01T07:00:00.000Z[Mars/Olympus]', '2026-12-01T07:00', 'UTC'],
    ['0099-12-01T07:00:00.000Z[UTC]', '0099-12-01T07:00', 'UTC'],
  ] as const) {
    test(stored, () => {
      const parts = momentParts(stored);
      assert.deepEqual(parts, { local, zone });
      assert.deepEqual(momentParts(textOfMoment(parts)), parts);
    });
  }

  test('are empty for other texts, and keep a time zone while it is typed', () => {
    assert.equal(momentParts(''), undefined);
    assert.equal(momentParts('soon'), undefined);
    assert.equal(textOfMoment({ local: '', zone: 'UTC' }), '');
    const typed = { local: '2026-12-01T08:00', zone: 'Eur' };
    assert.deepEqual(momentParts(textOfMoment(typed)), typed);
  });
});

suite('the days of the calendar', () => {
  const rule = { id: 'r', origin: '*', path: '/a' } as const;
  const rules = [
    { ...rule, at: '2026-12-01T22:59:59.000Z', what: 'begins' },
    { ...rule, at: '2026-12-01T23:00:00.000Z', what: 'ends' },
  ] as const;
  const drafts = [
    { id: 'd', name: 'winter', schedule: { at: '2026-12-01T23:00:00.000Z' } },
    { id: 'e', name: 'late', schedule: { at: '2027-01-01T00:00:00.000Z' } },
    { id: 'f', name: 'none' },
  ] as const;

  test('are those of the time zone, with pages and drafts in order', () => {
    const days = daysOf({ rules, drafts, isEnd: true }, 'Europe/Berlin');
    assert.deepEqual(
      days.map(({ date, entries }) => [
        date,
        ...entries.map(({ what, name }) => `${name} ${what}`),
      ]),
      [
        ['2026-12-01', '/a begins'],
        ['2026-12-02', '/a ends', 'winter publish'],
        ['2027-01-01', 'late publish'],
      ],
    );
  });

  test('end where more pages may come', () => {
    const days = daysOf({ rules, drafts, isEnd: false }, 'Europe/Berlin');
    assert.deepEqual(
      days.map(({ date }) => date),
      ['2026-12-01', '2026-12-02'],
    );
  });
});
