import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createFileCache } from '../../../src/modules/files/file-cache.ts';

interface Thing {
  readonly bytes: number;
}

function shelfAt(start: number, bytesMax = 1_000_000) {
  const clock = { nowMs: start };
  const fileCache = createFileCache<Thing>({
    bytesMax,
    bytesOf: ({ bytes }) => bytes,
    validMs: 500,
    now: () => clock.nowMs,
  });
  return { clock, fileCache };
}

suite('the file cache', () => {
  test('keeps values valid for the configured time', () => {
    const { clock, fileCache } = shelfAt(1_000);
    const thing = { bytes: 1 };
    fileCache.confirm('a', thing);
    clock.nowMs = 1_499;
    assert.equal(fileCache.fresh('a'), thing);
    clock.nowMs = 1_500;
    assert.equal(fileCache.fresh('a'), undefined);
    assert.equal(fileCache.stale('a'), thing);
    fileCache.confirm('a', thing);
    assert.equal(fileCache.fresh('a'), thing);
    fileCache.delete('a');
    assert.equal(fileCache.stale('a'), undefined);
  });

  test('treats values as invalid after the clock was set back', () => {
    const { clock, fileCache } = shelfAt(1_000_000);
    fileCache.confirm('a', { bytes: 1 });
    clock.nowMs = 999_999;
    assert.equal(fileCache.fresh('a'), undefined);
  });

  test('shares one load among concurrent calls; the age counts from its start', async () => {
    const { clock, fileCache } = shelfAt(0);
    const { promise, resolve } = Promise.withResolvers<Thing>();
    let loads = 0;
    const load = () => {
      loads += 1;
      return promise;
    };
    const pending = [fileCache.load('a', load), fileCache.load('a', load)];
    clock.nowMs = 400;
    const thing = { bytes: 1 };
    resolve(thing);
    assert.deepEqual(await Promise.all(pending), [thing, thing]);
    assert.equal(loads, 1);
    assert.equal(fileCache.fresh('a'), thing);
    clock.nowMs = 500;
    assert.equal(fileCache.fresh('a'), undefined);
  });

  test('deletes the key of a missing file; a failed load rejects all callers and is not cached', async () => {
    const { fileCache } = shelfAt(0);
    fileCache.confirm('a', { bytes: 1 });
    assert.equal(await fileCache.load('a', () => Promise.resolve(undefined)), undefined);
    assert.equal(fileCache.stale('a'), undefined);
    const fail = () => Promise.reject(new Error('no'));
    await Promise.all([1, 2].map(() => assert.rejects(fileCache.load('a', fail), new Error('no'))));
    const thing = { bytes: 1 };
    assert.equal(await fileCache.load('a', () => Promise.resolve(thing)), thing);
  });

  test('stays within its bytes and evicts the least recently used value', () => {
    const { fileCache } = shelfAt(0, 10_000);
    fileCache.confirm('a', { bytes: 3_000 });
    fileCache.confirm('b', { bytes: 3_000 });
    fileCache.fresh('a');
    fileCache.confirm('c', { bytes: 3_000 });
    assert.deepEqual(
      ['a', 'b', 'c'].map((key) => fileCache.stale(key) !== undefined),
      [true, false, true],
    );
    fileCache.confirm('large', { bytes: 20_000 });
    assert.equal(fileCache.stale('large'), undefined);
  });

  test('closes after the running loads have ended', async () => {
    const { fileCache } = shelfAt(0);
    const { promise, resolve } = Promise.withResolvers<Thing>();
    const loaded = fileCache.load('a', () => promise);
    let isClosed = false;
    const closed = fileCache.close().then(() => {
      isClosed = true;
    });
    await Promise.resolve();
    assert.equal(isClosed, false);
    resolve({ bytes: 1 });
    await Promise.all([loaded, closed]);
    assert.equal(fileCache.stale('a'), undefined);
  });
});
