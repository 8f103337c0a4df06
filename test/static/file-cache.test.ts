import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createShelf } from '../../src/static/file-cache.ts';

interface Thing {
  readonly bytes: number;
}

function shelfAt(start: number, bytesMax = 1_000_000) {
  const clock = { nowMs: start };
  const shelf = createShelf<Thing>({
    bytesMax,
    bytesOf: ({ bytes }) => bytes,
    trustMs: 500,
    now: () => clock.nowMs,
  });
  return { clock, shelf };
}

suite('a shelf', () => {
  test('believes what it keeps for as long as it was told to', () => {
    const { clock, shelf } = shelfAt(1_000);
    const thing = { bytes: 1 };
    shelf.keep('a', thing);
    clock.nowMs = 1_499;
    assert.equal(shelf.fresh('a'), thing);
    clock.nowMs = 1_500;
    assert.equal(shelf.fresh('a'), undefined);
    assert.equal(shelf.kept('a'), thing);
    shelf.keep('a', thing);
    assert.equal(shelf.fresh('a'), thing);
    shelf.forget('a');
    assert.equal(shelf.kept('a'), undefined);
  });

  test('believes nothing from a clock that was set back', () => {
    const { clock, shelf } = shelfAt(1_000_000);
    shelf.keep('a', { bytes: 1 });
    clock.nowMs = 999_999;
    assert.equal(shelf.fresh('a'), undefined);
  });

  test('loads once for all who ask meanwhile; its age begins with the load', async () => {
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

  test('forgets what has gone, and tells all who asked of a failure but keeps none', async () => {
    const { shelf } = shelfAt(0);
    shelf.keep('a', { bytes: 1 });
    assert.equal(await shelf.load('a', () => Promise.resolve(undefined)), undefined);
    assert.equal(shelf.kept('a'), undefined);
    const fail = () => Promise.reject(new Error('no'));
    await Promise.all([1, 2].map(() => assert.rejects(shelf.load('a', fail), new Error('no'))));
    const thing = { bytes: 1 };
    assert.equal(await shelf.load('a', () => Promise.resolve(thing)), thing);
  });

  test('is bound by bytes, and lets go first of what nobody asks for', () => {
    const { shelf } = shelfAt(0, 10_000);
    shelf.keep('a', { bytes: 3_000 });
    shelf.keep('b', { bytes: 3_000 });
    shelf.fresh('a');
    shelf.keep('c', { bytes: 3_000 });
    assert.deepEqual(
      ['a', 'b', 'c'].map((key) => shelf.kept(key) !== undefined),
      [true, false, true],
    );
    shelf.keep('large', { bytes: 20_000 });
    assert.equal(shelf.kept('large'), undefined);
  });

  test('closes when what is being loaded has come', async () => {
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
    assert.equal(shelf.kept('a'), undefined);
  });
});
