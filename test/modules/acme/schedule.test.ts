import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { acmeRestartMs } from '../../../src/modules/acme/limits.ts';
import {
  acmeRetryMs,
  orderAfterStartMs,
  renewalMs,
  retryDelayMs,
  suggestedMs,
} from '../../../src/modules/acme/schedule.ts';

const dayMs = 86_400_000;
const random = fc.double({ min: 0, max: 1, noNaN: true });

suite('when a certificate is renewed', () => {
  const table: readonly (readonly [days: number, random: number, daysBefore: number])[] = [
    [90, 0, 30],
    [90, 1, 34.5],
    [6, 0, 2],
    [6, 1, 2.3],
  ];
  for (const [days, chance, before] of table) {
    test(`one for ${days} days: ${before} days before it expires`, () => {
      const endsMs = days * dayMs;
      const dueMs = renewalMs({ beginsMs: 0, endsMs }, chance);
      assert.ok(Math.abs(dueMs - (endsMs - before * dayMs)) < 1);
    });
  }

  test('always while there is time for many orders', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1e12 }),
        fc.integer({ min: 1, max: 1e11 }),
        random,
        (...given) => {
          const [beginsMs, lifeMs, chance] = given;
          const dueMs = renewalMs({ beginsMs, endsMs: beginsMs + lifeMs }, chance);
          assert.ok(dueMs > beginsMs + lifeMs / 2 && dueMs <= beginsMs + (lifeMs * 2) / 3 + 1);
        },
      ),
    );
  });
});

suite('when an ACME server suggests to renew a certificate', () => {
  const table: readonly (readonly [
    name: string,
    days: number,
    window: readonly [from: number, to: number],
    random: number,
    day: number,
  ])[] = [
    ['in its window', 90, [50, 60], 0.25, 52.5],
    ['after a day, if the window has passed', 90, [-9, -8], 0.5, 1],
    ['after a tenth of a short life', 6, [-9, -8], 0.5, 0.6],
    ['when a sixth is left, if the window is later', 90, [89, 100], 0.5, 75],
  ];
  for (const [name, days, [from, to], chance, day] of table) {
    test(name, () => {
      const lifetime = { beginsMs: 0, endsMs: days * dayMs };
      const window = { startMs: from * dayMs, endMs: to * dayMs };
      assert.equal(
        Math.round(suggestedMs(lifetime, window, { issuedMs: 0, random: chance })),
        day * dayMs,
      );
    });
  }
});

suite('when a failed order is repeated', () => {
  test('sooner before the end of a short-lived certificate, but hourly at most', () => {
    assert.equal(retryDelayMs(20, 0.5, 2 * dayMs), dayMs / 3);
    assert.equal(retryDelayMs(20, 0.5, -1), dayMs / 24);
    assert.equal(retryDelayMs(1, 0.5, 0), 60_000);
  });

  test('at growing intervals, 20 % more or less, up to a day', () => {
    for (let failures = 1; failures < 20; failures += 1) {
      const step = acmeRetryMs[failures - 1] ?? dayMs;
      assert.equal(Math.round(retryDelayMs(failures, 0)), Math.round(0.8 * step));
      assert.equal(Math.round(retryDelayMs(failures, 1)), Math.round(1.2 * step));
    }
  });

  const now = 1_000 * dayMs;
  const table: readonly (readonly [
    name: string,
    lastMs: number | undefined,
    nextMs: number | undefined,
    dueMs: number,
  ])[] = [
    ['at once if there was no order', undefined, undefined, now],
    ['at once if the next order is overdue', now - dayMs, now - 1, now],
    ['as planned if that is soon', now - 1_000, now + 59_000, now + 59_000],
    ['at once if the latest order is long ago', now - dayMs, now + dayMs, now],
    ['a little later if it is not', now - 1_000, now + dayMs, now - 1_000 + acmeRestartMs],
    ['soon if the clock was set back', now + 9 * dayMs, now + 10 * dayMs, now + acmeRestartMs],
  ];
  for (const [name, lastMs, nextMs, dueMs] of table) {
    test(`after a start: ${name}`, () => {
      assert.equal(orderAfterStartMs({ lastMs, nextMs }, now), dueMs);
    });
  }
});
