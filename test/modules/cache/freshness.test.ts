import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { formatHttpDate } from '../../../src/core/http/date.ts';
import {
  ageMs,
  cachedDateMs,
  freshnessOf,
  remainingMs,
} from '../../../src/modules/cache/freshness.ts';

const nowMs = Date.UTC(2026, 0, 2, 12);
const at = (seconds: number): string => formatHttpDate(nowMs + seconds * 1000);

function received(fields: readonly string[], { status = 200, delayMs = 0 } = {}) {
  return { status, fields, requestMs: nowMs - delayMs, responseMs: nowMs };
}

suite('the freshness lifetime in seconds (RFC 9111 §4.2.1, §4.2.2)', () => {
  const lastModified = ['Last-Modified', at(-1000)];
  const cases: readonly (readonly [string, readonly string[], number, number?])[] = [
    ['nothing said', [], 0],
    ['max-age', ['Cache-Control', 'max-age=60'], 60],
    ['s-maxage before max-age', ['Cache-Control', 'max-age=60, s-maxage=5'], 5],
    ['in two lines', ['Cache-Control', 'max-age=60', 'Cache-Control', 's-maxage=5'], 5],
    ['max-age before Expires', ['Cache-Control', 'max-age=60', 'Expires', at(5)], 60],
    ['unreadable max-age', ['Cache-Control', 'max-age=x', 'Expires', at(5)], 0],
    ['Expires after now', ['Expires', at(90)], 90],
    ['Expires after Date', ['Expires', at(90), 'Date', at(30)], 60],
    ['Expires before Date', ['Expires', at(90), 'Date', at(100)], 0],
    ['Expires without a date', ['Expires', '0', ...lastModified], 0],
    ['Expires twice', ['Expires', at(90), 'Expires', at(91)], 0],
    ['Date that is none', ['Expires', at(90), 'Date', 'x'], 90],
    ['targeted before all', ['CDN-Cache-Control', 'max-age=7', 'Cache-Control', 'no-store'], 7],
    ['targeted hides Expires', ['CDN-Cache-Control', 'x', 'Expires', at(90)], 0],
    ['a tenth of the time unchanged', lastModified, 100],
    ['before Date', ['Date', at(-500), ...lastModified], 50],
    ['changed in the future', ['Last-Modified', at(1000)], 0],
    ['at most a day', ['Last-Modified', at(-1e8)], 86_400],
    ['404 unchanged', lastModified, 100, 404],
    ['403 unchanged', lastModified, 0, 403],
    ['403 public', ['Cache-Control', 'public', ...lastModified], 100, 403],
  ];
  for (const [name, fields, seconds, status = 200] of cases) {
    test(`${name}: ${seconds}`, () => {
      assert.equal(freshnessOf(received(fields, { status })).lifetimeMs, seconds * 1000);
    });
  }
});

suite('the age on arrival in seconds (RFC 9111 §4.2.3)', () => {
  const cases: readonly (readonly [string, readonly string[], number, number?])[] = [
    ['nothing said', [], 0],
    ['the time it took', [], 3, 3],
    ['Age', ['Age', '10'], 10],
    ['Age and the time it took', ['Age', '10'], 13, 3],
    ['the first of several', ['Age', '10, 20'], 10],
    ['the first of several lines', ['Age', '10', 'Age', '20'], 10],
    ['Age that is no number', ['Age', 'x, 5'], 0],
    ['Age below nothing', ['Age', '-5'], 0],
    ['Age with a fraction', ['Age', '5.5'], 0],
    ['Date in the past', ['Date', at(-20)], 19.001],
    ['Date in the future', ['Date', at(20)], 0],
    ['the older of both', ['Date', at(-20), 'Age', '5'], 19.001],
  ];
  for (const [name, fields, seconds, delay = 0] of cases) {
    test(`${name}: ${seconds}`, () => {
      const freshness = freshnessOf(received(fields, { delayMs: delay * 1000 }));
      assert.equal(ageMs(freshness, nowMs), seconds * 1000);
      assert.equal(ageMs(freshness, nowMs + 5000), seconds * 1000 + 5000);
    });
  }

  test('counts against the lifetime', () => {
    const freshness = freshnessOf(received(['Cache-Control', 'max-age=60', 'Age', '20']));
    assert.equal(remainingMs(freshness, nowMs + 10_000), 30_000);
    assert.equal(remainingMs(freshness, nowMs + 50_000), -10_000);
  });
});

suite('the permitted use of a stale response (RFC 9111 §4.2.4, RFC 5861)', () => {
  const cases: readonly (readonly [string, boolean, number, number])[] = [
    ['max-age=1', false, 0, 0],
    ['max-age=1, stale-while-revalidate=5, stale-if-error=6', false, 5, 6],
    ['max-age=1, must-revalidate, stale-while-revalidate=5, stale-if-error=6', true, 0, 0],
    ['max-age=1, proxy-revalidate, stale-if-error=6', true, 0, 0],
    ['no-cache, stale-if-error=6', true, 0, 0],
    ['no-cache="a", stale-if-error=6', false, 0, 6],
    ['s-maxage=1', true, 0, 0],
    ['s-maxage=1, stale-while-revalidate=5', false, 5, 0],
  ];
  for (const [field, isNeverStale, whileSeconds, ifErrorSeconds] of cases) {
    test(field, () => {
      const freshness = freshnessOf(received(['Cache-Control', field]));
      assert.equal(freshness.isNeverStale, isNeverStale);
      assert.equal(freshness.staleWhileRevalidateMs, whileSeconds * 1000);
      assert.equal(freshness.staleIfErrorMs, ifErrorSeconds * 1000);
    });
  }
});

suite('dates in any case (RFC 9111 §4.2)', () => {
  const moment = Date.UTC(2050, 7, 18, 2, 1, 18);
  const cases: readonly (readonly [string, number | undefined])[] = [
    ['Thu, 18 Aug 2050 02:01:18 GMT', moment],
    ['THU, 18 AUG 2050 02:01:18 gmt', moment],
    ['thursday, 18-aug-50 02:01:18 GMT', moment],
    ['thu aug 18 02:01:18 2050', moment],
    ['Thu, 18 Aug 2050 02:01:18 UTC', undefined],
    ['Thu, 18 Aug 2050 2:01:18 GMT', undefined],
  ];
  for (const [text, ms] of cases) {
    test(text, () => {
      assert.equal(cachedDateMs(text, nowMs), ms);
    });
  }
});
