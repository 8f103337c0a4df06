import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { SharedCache } from '../../../src/core/fair/shared-cache.ts';

suite('a cache that clients share', () => {
  test('keeps what a client has, whatever another one brings', () => {
    const cache = new SharedCache<number>(4);
    cache.set('b', { owner: 'B', value: 0 });
    for (let at = 0; at < 100; at += 1) cache.set(`a${at}`, { owner: 'A', value: at });
    assert.equal(cache.get('b'), 0);
    assert.deepEqual(
      ['a96', 'a97', 'a98', 'a99'].map((key) => cache.get(key)),
      [undefined, 97, 98, 99],
    );
    // Another client takes the places that the first one has beyond its share.
    for (const key of ['c1', 'c2', 'c3']) cache.set(key, { owner: 'C', value: 1 });
    assert.equal(cache.get('b'), 0);
    assert.equal(cache.get('a99'), 99);
    assert.equal(cache.get('c3'), 1);
  });

  test('forgets what a client has not used for the longest time', () => {
    const cache = new SharedCache<string>(2);
    for (const key of ['x', 'y']) cache.set(key, { owner: 'A', value: key });
    assert.equal(cache.get('x'), 'x');
    cache.set('z', { owner: 'A', value: 'z' });
    assert.deepEqual([cache.get('x'), cache.get('y'), cache.get('z')], ['x', undefined, 'z']);
  });
});
