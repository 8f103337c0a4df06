import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  freshnessOf,
  mayServeStale,
  reuseOf,
  type Reuse,
} from '../../../src/modules/cache/freshness.ts';
import { requestDirectives } from '../../../src/modules/cache/directives.ts';

const bornMs = Date.UTC(2026, 0, 2, 12);

function freshness(cacheControl: string) {
  const fields = ['Cache-Control', cacheControl];
  return freshnessOf({ status: 200, fields, requestMs: bornMs, responseMs: bornMs });
}

const said = (cacheControl: string | undefined) =>
  requestDirectives(cacheControl === undefined ? {} : { 'cache-control': cacheControl });

suite('a stored response is reused (RFC 9111 §4.2, §5.2.1, RFC 5861 §3)', () => {
  type Row = readonly [answer: string, seconds: number, asked: string | undefined, reuse: Reuse];
  const cases: readonly Row[] = [
    ['max-age=10', 9, undefined, 'fresh'],
    ['max-age=10', 10, undefined, 'validate'],
    ['max-age=10', 9, 'unknown', 'fresh'],
    ['max-age=10', 0, 'no-cache', 'validate'],
    ['max-age=10, no-cache', 0, undefined, 'validate'],
    ['max-age=10, no-cache="a"', 0, undefined, 'fresh'],
    ['max-age=10', 5, 'max-age=5', 'fresh'],
    ['max-age=10', 6, 'max-age=5', 'validate'],
    ['max-age=10', 1, 'max-age=x', 'validate'],
    ['max-age=10', 6, 'min-fresh=4', 'fresh'],
    ['max-age=10', 7, 'min-fresh=4', 'validate'],
    ['max-age=10', 12, 'max-stale', 'stale'],
    ['max-age=10', 12, 'max-stale=2', 'stale'],
    ['max-age=10', 13, 'max-stale=2', 'validate'],
    ['max-age=10, must-revalidate', 12, 'max-stale', 'validate'],
    ['s-maxage=10', 12, 'max-stale', 'validate'],
    ['max-age=10, stale-while-revalidate=5', 14, undefined, 'while_revalidating'],
    ['max-age=10, stale-while-revalidate=5', 15, undefined, 'validate'],
    ['max-age=10, stale-while-revalidate=5', 12, 'max-age=11', 'validate'],
    ['max-age=10, stale-while-revalidate=5, no-cache', 12, undefined, 'validate'],
    ['max-age=10, stale-while-revalidate=5', 12, 'min-fresh=1', 'validate'],
  ];
  for (const [answer, seconds, asked, reuse] of cases) {
    test(`${answer} after ${seconds} s, requested with ${asked ?? 'no directive'}: ${reuse}`, () => {
      assert.equal(reuseOf(freshness(answer), said(asked), bornMs + seconds * 1000), reuse);
    });
  }
});

suite('a stale response replaces an error (RFC 9111 §4.2.4, RFC 5861 §4)', () => {
  type Row = readonly [
    answer: string,
    seconds: number,
    asked: string | undefined,
    error: boolean,
    unreachable: boolean,
  ];
  const cases: readonly Row[] = [
    ['max-age=10', 20, undefined, false, true],
    ['max-age=10', 3611, undefined, false, false],
    ['max-age=10, stale-if-error=20', 30, undefined, true, true],
    ['max-age=10, stale-if-error=7200', 7000, undefined, true, true],
    ['max-age=10, stale-if-error=20', 31, undefined, false, true],
    ['max-age=10', 20, 'stale-if-error=10', true, true],
    ['max-age=10', 5, 'no-cache, stale-if-error=10', false, false],
    ['max-age=10, stale-if-error=20', 12, 'max-age=11', false, false],
    ['max-age=10, stale-if-error=20, must-revalidate', 11, undefined, false, false],
    ['no-cache, stale-if-error=20', 1, undefined, false, false],
    ['s-maxage=10', 11, undefined, false, false],
  ];
  for (const [answer, seconds, asked, error, unreachable] of cases) {
    test(`${answer} after ${seconds} s, requested with ${asked ?? 'no directive'}`, () => {
      const nowMs = bornMs + seconds * 1000;
      assert.equal(mayServeStale(freshness(answer), 'error', said(asked), nowMs), error);
      assert.equal(
        mayServeStale(freshness(answer), 'unreachable', said(asked), nowMs),
        unreachable,
      );
    });
  }
});
