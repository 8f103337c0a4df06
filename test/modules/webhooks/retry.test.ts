import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import {
  retryDelayMs,
  type FailedDelivery,
  verdictOn,
  type Verdict,
} from '../../../src/modules/webhooks/retry.ts';

const second = 1_000;
const day = 86_400 * second;

function delay(given: Partial<FailedDelivery> = {}): number | undefined {
  return retryDelayMs({
    attempts: 1,
    attemptsMax: 10,
    retryMs: [5 * second, 300 * second],
    retryAfterMs: undefined,
    random: 0.5,
    ...given,
  });
}

suite('the delay of a retry', () => {
  const cases: readonly (readonly [string, Partial<FailedDelivery>, number | undefined])[] = [
    ['after the first attempt', {}, 5 * second],
    ['after the second attempt', { attempts: 2 }, 300 * second],
    ['after more attempts than there are delays', { attempts: 7 }, 300 * second],
    ['20 % shorter', { random: 0 }, 4 * second],
    ['20 % longer', { random: 1 }, 6 * second],
    ['before the last attempt', { attempts: 9 }, 300 * second],
    ['after the last attempt', { attempts: 10 }, undefined],
    ['after more attempts than retry_limit', { attempts: 11 }, undefined],
    ['with a retry_limit of one', { attemptsMax: 1 }, undefined],
    ['with an empty [webhook] retry', { retryMs: [] }, undefined],
    ['with a longer Retry-After', { retryAfterMs: 60 * second, random: 0 }, 60 * second],
    [
      'with a longer Retry-After, up to 20 % more',
      { retryAfterMs: 60 * second, random: 1 },
      72 * second,
    ],
    ['with a shorter Retry-After', { retryAfterMs: 2 * second }, 5 * second],
    ['with a Retry-After of a day', { retryAfterMs: day, random: 1 }, day],
    [
      'after the last attempt, even with a Retry-After',
      { attempts: 10, retryAfterMs: 1 },
      undefined,
    ],
  ];
  for (const [what, given, expected] of cases) {
    test(what, () => {
      assert.equal(delay(given), expected);
    });
  }

  test('with the default [webhook] retry, ten attempts take about three days', () => {
    const hours = [5 / 3600, 5 / 60, 0.5, 2, 5, 10, 14, 20, 24];
    const retryMs = hours.map((count) => count * 3_600_000);
    const waits: number[] = [];
    for (let attempts = 1; ; attempts += 1) {
      const waitMs = delay({ attempts, retryMs });
      if (waitMs === undefined) break;
      waits.push(waitMs);
    }
    assert.equal(waits.length, 9);
    assert.ok(waits.every((waitMs, at) => Math.abs(waitMs - (retryMs[at] ?? 0)) <= 1));
  });

  test('is never shorter than Retry-After, and at most 20 % above the longer of the two', () => {
    fc.assert(
      fc.property(
        fc.record({
          attempts: fc.integer({ min: 1, max: 9 }),
          retryMs: fc.array(fc.integer({ min: 1, max: day }), { minLength: 1 }),
          retryAfterMs: fc.integer({ min: 0, max: day }),
          random: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
        (given) => {
          const waitMs = delay(given) ?? NaN;
          const planned = given.retryMs[Math.min(given.attempts, given.retryMs.length) - 1] ?? NaN;
          assert.ok(waitMs >= Math.max(planned * 0.8 - 1, given.retryAfterMs));
          assert.ok(waitMs <= Math.max(planned, given.retryAfterMs) * 1.2 + 1);
        },
      ),
    );
  });
});

suite('the outcome of an attempt', () => {
  const cases: readonly (readonly [readonly (number | undefined)[], Verdict['outcome']])[] = [
    [[200, 201, 202, 204, 206, 226, 299], 'completed'],
    [[404], 'completed_404'],
    [[300, 301, 302, 303, 304, 307, 308, 399], 'failed'],
    [[400, 401, 402, 403, 405, 406, 409, 410, 413, 418, 422, 451, 499], 'failed'],
    [[408, 425, 429, 500, 501, 502, 503, 504, 599], 'failed'],
    [[100, 101, 199, 600, 999, 0], 'failed'],
    [[undefined], 'failed'],
  ];
  for (const [statuses, outcome] of cases) {
    for (const status of statuses) {
      test(`${status ?? 'no answer'}: ${outcome}`, () => {
        assert.equal(verdictOn(status).outcome, outcome);
      });
    }
  }

  test('only a 410 pauses the hook', () => {
    const pausing = everyStatus().filter((status) => verdictOn(status).isGone);
    assert.deepEqual(pausing, [410]);
  });

  test('only a 413 splits a batch', () => {
    const splitting = everyStatus().filter((status) => verdictOn(status).isTooLarge);
    assert.deepEqual(splitting, [413]);
  });

  test('a receiver that is unreachable or overloaded counts as failing, not as refusing', () => {
    const sick = [undefined, 408, 425, 429, 500, 503];
    const unwilling = [302, 400, 401, 403, 413, 422];
    assert.deepEqual(
      new Set(sick.map((status) => verdictOn(status).receiver)),
      new Set(['failing']),
    );
    assert.deepEqual(
      new Set(unwilling.map((status) => verdictOn(status).receiver)),
      new Set(['refusing']),
    );
    const completed = everyStatus().filter((status) => verdictOn(status).outcome !== 'failed');
    assert.ok(completed.every((status) => verdictOn(status).receiver === 'healthy'));
  });
});

function everyStatus(): readonly number[] {
  return Array.from({ length: 600 }, (_, status) => status);
}
