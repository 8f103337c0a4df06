import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { limitFreshness } from '../../../src/core/http/representation/limited-freshness.ts';
import { noBody, type FieldList } from '../../../src/core/http/reply.ts';

const nowMs = Date.UTC(2026, 10, 30, 12);

/** The fields of an answer whose rule ends in 61 s: caches may use it for 60. */
function limited(...fields: FieldList): FieldList {
  const reply = { status: 200, fields, body: noBody, source: 'rule:x' };
  return limitFreshness(reply, { endMs: nowMs + 61_500, nowMs }).fields;
}

suite('the freshness of an answer that ends soon', () => {
  for (const [name, sent, kept] of [
    ['a longer one', 'max-age=3600, public', 'max-age=60, public'],
    ['one for shared caches', 's-maxage=3600, max-age=5', 's-maxage=60, max-age=5'],
    ['a shorter one', 'max-age=60', 'max-age=60'],
    ['stale answers', 'max-age=30, stale-while-revalidate=60', 'max-age=30'],
    [
      'stale answers that end before',
      'max-age=30, stale-if-error=9',
      'max-age=30, stale-if-error=9',
    ],
    ['immutable', 'max-age=31536000, immutable', 'max-age=60'],
    ['upper case and quotes', 'MAX-AGE="3600"', 'MAX-AGE=60'],
    ['no-cache', 'private, no-cache', 'private, no-cache'],
    ['no-store', 'no-store, max-age=3600', 'no-store, max-age=3600'],
    ['none that is explicit', 'public', 'public, no-cache'],
  ] as const) {
    test(name, () => {
      assert.deepEqual(limited('Cache-Control', sent), ['Cache-Control', kept]);
    });
  }

  test('without any field, no cache guesses', () => {
    assert.deepEqual(limited('ETag', '"x"'), ['ETag', '"x"', 'Cache-Control', 'no-cache']);
  });

  test('that of providers, and Expires', () => {
    const at = new Date(nowMs + 60_000).toUTCString();
    assert.deepEqual(limited('CDN-Cache-Control', 'max-age=90', 'Cache-Control', 'max-age=9'), [
      ...['Cache-Control', 'max-age=9', 'CDN-Cache-Control', 'max-age=60'],
    ]);
    assert.deepEqual(limited('Expires', new Date(nowMs + 90_000).toUTCString()), ['Expires', at]);
    assert.deepEqual(limited('Expires', at), ['Expires', at]);
  });

  test('that of caches with a field of another form', () => {
    const others = ['X-Accel-Expires', '3600', 'Edge-Control', 'max-age=1h'];
    const kept = ['Cache-Control', 'max-age=9'];
    assert.deepEqual(limited(...others, ...kept), kept);
  });

  test('counts what a cache has already used', () => {
    assert.deepEqual(limited('Age', '40', 'Cache-Control', 'max-age=100'), [
      ...['Age', '40', 'Cache-Control', 'max-age=100'],
    ]);
  });
});
