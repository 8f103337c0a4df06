import assert from 'node:assert/strict';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import { arrivingBytesMax, arrivingLagBytesMax } from '../../../src/model/limits.ts';
import { takeIn } from '../../../src/site/cache/intake.ts';

const mib = 2 ** 20;

/** Content of so many mebibytes, each of them one chunk of its number. */
function content(mebibytes: number): Readable {
  return Readable.from(
    Array.from({ length: mebibytes }, (_, n) => Buffer.alloc(mib, n)),
    { highWaterMark: 1 },
  );
}

suite('content on its way', () => {
  const many = arrivingBytesMax / mib;

  test('is kept while there is room, and always read as a whole', async () => {
    // One that nobody reads takes nearly all the room, until its reader leaves.
    const first = takeIn(content(many - 1), arrivingBytesMax);
    const idle = first.read();
    assert.equal((await first.whole)?.length, (many - 1) * mib);

    const second = takeIn(content(8), arrivingBytesMax);
    const read = buffer(second.read());
    assert.equal(await second.whole, undefined, 'no room');
    assert.deepEqual(await read, await buffer(content(8)));

    idle.destroy();
    const third = takeIn(content(8), arrivingBytesMax);
    const again = buffer(third.read());
    assert.deepEqual(await third.whole, await buffer(content(8)));
    assert.deepEqual(await again, await buffer(content(8)));
  });

  test('is not cut off for one who reads it alone, however slowly', async () => {
    const first = takeIn(content(many - 16), arrivingBytesMax);
    const idle = first.read();
    await first.whole;
    const second = takeIn(content(24), arrivingBytesMax);
    const slow = second.read();
    assert.equal(await second.whole, undefined);
    // It has not begun to read; the content came as far as there was room.
    assert.deepEqual(await buffer(slow), await buffer(content(24)));
    idle.destroy();
  });

  test('is cut off for one who is far behind another, where there is no room', async () => {
    const first = takeIn(content(many - 1), arrivingBytesMax);
    const idle = first.read();
    await first.whole;
    const second = takeIn(content(24), arrivingBytesMax);
    const slow = second.read();
    const cut = new Promise<Error>((resolve) => slow.once('error', resolve));
    assert.deepEqual(await buffer(second.read()), await buffer(content(24)));
    assert.match((await cut).message, /too slowly/);
    assert.ok(24 * mib > arrivingLagBytesMax);
    idle.destroy();
  });

  test('that breaks off makes room again', async () => {
    const broken = new Readable({ read: () => undefined });
    const first = takeIn(broken, arrivingBytesMax);
    const reader = first.read();
    const failed = new Promise((resolve) => reader.once('error', resolve));
    for (let n = 0; n < many - 1; n += 1) broken.push(Buffer.alloc(mib));
    broken.destroy(new Error('gone'));
    assert.equal(await first.whole, undefined);
    await failed;
    const second = takeIn(content(8), arrivingBytesMax);
    assert.equal((await second.whole)?.length, 8 * mib);
  });
});
