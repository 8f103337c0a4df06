import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { verdictOn, type Verdict } from '../../src/webhooks/outcome.ts';

suite('the outcome of an attempt', () => {
  const cases: readonly (readonly [readonly (number | undefined)[], Verdict['outcome']])[] = [
    [[200, 201, 202, 204, 206, 226, 299], 'completed'],
    [[404], 'completed_404'],
    [[410], 'completed'],
    [[300, 301, 302, 303, 304, 307, 308, 399], 'failed'],
    [[400, 401, 402, 403, 405, 406, 409, 413, 418, 422, 451, 499], 'failed'],
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

  test('only a 410 pauses the hook, and completes the delivery', () => {
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
