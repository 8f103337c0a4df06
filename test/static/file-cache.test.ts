import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createFileCache } from '../../src/static/file-cache.ts';

interface Thing {
  readonly bytes: number;
}

function shelfAt(start: number, bytesMax = 1_000_000) {
  const clock = { nowMs: start };
  const shelf = createFileCache<Thing>({
    bytesMax,
    bytesOf: ({ bytes }) => bytes,
    validMs: 500,
    now: () => clock.nowMs,
  });
  return { clock, shelf };
}

suite('the file cache', () => {
  test('keeps values valid for the configured time', () => {
    const { clock, shelf } = shelfAt(1_000);
    const thing = { bytes: 1 };
    shelf.confirm('a', thing);
    clock.nowMs = 1_499;
    assert.equal(shelf.fresh('a'), thing);
    clock.nowMs = 1_500;
    assert.equal(shelf.fresh('a'), undefined);
    assert.equal(shelf.stale('a'), thing);
    shelf.confirm('a', thing);
    assert.equal(shelf.fresh('a'), thing);
    shelf.delete('a');
    assert.equal(shelf.stale('a'), undefined);
  });

  test('treats values as invalid after the clock was set back', () => {
    const { clock, shelf } = shelfAt(1_000_000);
    shelf.confirm('a', { bytes: 1 });
    clock.nowMs = 999_999;
    assert.equal(shelf.fresh('a'), undefined);
  });

  test('shares one load among concurrent calls; the age counts from its start', async () => {
    const { clock, shelf } = shelfAt(0);
    const { promise, resolve } = Promise.withResolvers<Thing>();
    let loads = 0;
    const load = () => {
      loads += 1;
      return promise;
    };
    const asked = [shelf.load('a', load), shelf.load('a', load)];
    clock.nowMs = 400;
    const thing = { bytes: 1 };
    resolve(thing);
    assert.deepEqual(await Promise.all(asked), [thing, thing]);
    assert.equal(loads, 1);
    assert.equal(shelf.fresh('a'), thing);
    clock.nowMs = 500;
    assert.equal(shelf.fresh('a'), undefined);
  });

  test('deletes the key of a missing file; a failed load rejects all callers and is not cached', async () => {
    const { shelf } = shelfAt(0);
    shelf.confirm('a', { bytes: 1 });
    assert.equal(await shelf.load('a', () => Promise.resolve(undefined)), undefined);
    assert.equal(shelf.stale('a'), undefined);
    const fail = () => Promise.reject(new Error('no'));
    await Promise.all([1, 2].map(() => assert.rejects(shelf.load('a', fail), new Error('no'))));
    const thing = { bytes: 1 };
    assert.equal(await shelf.load('a', () => Promise.resolve(thing)), thing);
  });

  test('stays within its bytes and evicts the least recently used value', () => {
    const { shelf } = shelfAt(0, 10_000);
    shelf.confirm('a', { bytes: 3_000 });
    shelf.confirm('b', { bytes: 3_000 });
    shelf.fresh('a');
    shelf.confirm('c', { bytes: 3_000 });
    assert.deepEqual(
      ['a', 'b', 'c'].map((key) => shelf.stale(key) !== undefined),
      [true, false, true],
    );
    shelf.confirm('large', { bytes: 20_000 });
    assert.equal(shelf.stale('large'), undefined);
  });

  test('closes after the running loads have ended', async () => {
    const { shelf } = shelfAt(0);
    const { promise, resolve } = Promise.withResolvers<Thing>();
    const loaded = shelf.load('a', () => promise);
    let isClosed = false;
    const closed = shelf.close().then(() => {
      isClosed = true;
    });
    await Promise.resolve();
    assert.equal(isClosed, false);
    resolve({ bytes: 1 });
    await Promise.all([loaded, closed]);
    assert.equal(shelf.stale('a'), undefined);
  });
});
