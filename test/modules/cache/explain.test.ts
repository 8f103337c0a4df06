import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { toCachedResponse } from '../../../src/modules/cache/cached-reply.ts';
import { explainCached } from '../../../src/modules/cache/explain.ts';
import { freshnessOf } from '../../../src/modules/cache/freshness.ts';
import { requestDirectives } from '../../../src/modules/cache/directives.ts';

suite('an explanation says what the cache does with a request', () => {
  const cases: readonly (readonly [string, number, string])[] = [
    ['max-age=10', 4, 'The cache has a response, 4 s old and fresh for 6 s more.'],
    [
      'max-age=10, stale-while-revalidate=9',
      12,
      'The cache has a response, 2 s stale; it validates it meanwhile.',
    ],
    ['max-age=10', 12, 'The cache has a response, 12 s old; it validates it first.'],
  ];
  for (const [cacheControl, ageSeconds, note] of cases) {
    test(`${cacheControl} after ${ageSeconds} s: ${note}`, () => {
      const fields = ['Cache-Control', cacheControl];
      const cached = toCachedResponse(
        {
          id: 'a',
          url: 'https://shop.example/',
          rule: 'r',
          plan: 'p',
          status: 200,
          shownStatus: 200,
          fields,
          freshness: freshnessOf({ status: 200, fields, requestMs: 0, responseMs: 0 }),
          varyNames: [],
          selecting: [''],
          range: undefined,
          bytesLength: 0,
        },
        undefined,
      );
      const at = { directives: requestDirectives({}), nowMs: ageSeconds * 1000 };
      assert.deepEqual(explainCached(cached, { status: null }, at).notes, [note]);
    });
  }
});
