import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type TestContext, suite, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import type { BodyFilePlace } from '../../../src/modules/cache/body-buffer.ts';
import {
  type SharedBody,
  arrivingBytesMax,
  arrivingHeldBytesMax,
  arrivingLagBytesMax,
  shareBody,
} from '../../../src/modules/cache/shared-body.ts';
import { temporaryFolder } from '../../folder.ts';

const mib = 2 ** 20;
const most = 256 * mib;

/** Content whose mebibytes are chunks, each filled with its number. */
function content(mebibytes: number): Readable {
  return Readable.from(
    Array.from({ length: mebibytes }, (_, n) => Buffer.alloc(mib, n)),
    { highWaterMark: 1 },
  );
}

/** The folder of the file of a body. */
interface Place extends BodyFilePlace {
  readonly files: () => Promise<readonly string[]>;
  /** Resolves when the file has been removed. */
  readonly removed: Promise<unknown>;
  readonly reported: unknown[];
  readonly read: () => Promise<Buffer>;
}

async function placeIn(t: TestContext, create?: () => Promise<FileHandle>): Promise<Place> {
  const folder = await temporaryFolder(t);
  const path = join(folder, 'content');
  const reported: unknown[] = [];
  const removed = Promise.withResolvers<string>();
  return {
    create: create ?? (() => open(path, 'wx+')),
    async remove() {
      await rm(path);
      removed.resolve(path);
    },
    removed: removed.promise,
    report: (error) => {
      reported.push(error);
    },
    files: () => readdir(folder),
    reported,
    async read() {
      const handle = await open(path);
      return buffer(handle.createReadStream());
    },
  };
}

/** How a body was stored. */
async function outcome({ whole }: SharedBody): Promise<string> {
  const come = await whole;
  return come === undefined ? 'not stored' : `${come.content.kind} of ${come.bytesLength}`;
}

suite('a shared body', () => {
  test('is in memory, without a file, if it is short', async (t) => {
    const place = await placeIn(t);
    const sharedBody = shareBody(
      Readable.from([Buffer.from('a'), Buffer.from('b')]),
      { bytesMax: most, bytesLength: 0 },
      place,
    );
    assert.deepEqual(await sharedBody.whole, {
      content: { kind: 'bytes', bytes: Buffer.from('ab') },
      bytesLength: 2,
    });
    assert.equal((await buffer(sharedBody.read())).toString(), 'ab');
    assert.deepEqual([await place.files(), place.reported], [[], []]);
  });

  test('is in its file if it is long, for any number of readers, fast or slow', async (t) => {
    const place = await placeIn(t);
    const sent = await buffer(content(24));
    const sharedBody = shareBody(content(24), { bytesMax: most, bytesLength: 0 }, place);
    const idle = sharedBody.read();
    const quick = buffer(sharedBody.read());
    const half = sharedBody.read();
    half.once('data', () => half.pause());
    const whole = await sharedBody.whole;
    assert.deepEqual(whole?.content, { kind: 'file', crc: crc32(sent) });
    assert.ok((await place.read()).equals(sent));
    assert.ok((await quick).equals(sent));
    assert.ok((await buffer(idle)).equals(sent));
    half.destroy();
  });

  test('with a held end is complete for no reader before its end is released', async (t) => {
    for (const [sent, bytesLength, before] of [
      [[Buffer.from('ab'), Buffer.from('c')], 3, 'ab'],
      [[Buffer.from('abc')], 3, 'ab'],
      [[Buffer.from('a')], 1, ''],
      // Without a known length, only the end of the stream is held.
      [[Buffer.from('abc')], 0, 'abc'],
    ] as const) {
      const place = await placeIn(t);
      const limits = { bytesMax: most, bytesLength, isEndHeld: true };
      const sharedBody = shareBody(Readable.from(sent), limits, place);
      const reader = sharedBody.read().setEncoding('latin1');
      let read = '';
      reader.on('data', (text: string) => (read += text));
      const ended = once(reader, 'end');
      await sharedBody.whole;
      await turn();
      assert.deepEqual([read, reader.readableEnded], [before, false]);
      sharedBody.releaseEnd();
      await ended;
      assert.equal(read, Buffer.concat(sent).toString());
      assert.equal((await buffer(sharedBody.read())).toString(), read);
    }
  });

  test('with a held end ends as usual if it is not stored', async (t) => {
    const place = await placeIn(t);
    const limits = { bytesMax: mib, bytesLength: 0, isEndHeld: true };
    const sharedBody = shareBody(content(2), limits, place);
    assert.equal((await buffer(sharedBody.read())).length, 2 * mib);
    assert.equal(await outcome(sharedBody), 'not stored');
  });

  test('is received no faster than the disk writes it', async (t) => {
    const held = Promise.withResolvers<FileHandle>();
    const folder = await temporaryFolder(t);
    const place = await placeIn(t, () => held.promise);
    let sent = 0;
    const source = new Readable({
      read() {
        sent += 1;
        this.push(sent > 64 ? null : Buffer.alloc(mib / 4));
      },
    });
    const sharedBody = shareBody(source, { bytesMax: most, bytesLength: 0 }, place);
    if (!source.isPaused()) await once(source, 'pause');
    assert.ok(sent * (mib / 4) <= 4 * arrivingHeldBytesMax, `${sent} pieces`);
    held.resolve(await open(join(folder, 'late'), 'wx+'));
    assert.equal(await outcome(sharedBody), `file of ${16 * mib}`);
  });

  test('is stored also when many arrive at once', async (t) => {
    const many = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const place = await placeIn(t);
        const sharedBody = shareBody(content(3), { bytesMax: most, bytesLength: 0 }, place);
        return { place, read: buffer(sharedBody.read()), outcome: outcome(sharedBody) };
      }),
    );
    const sent = await buffer(content(3));
    for (const { place, read, outcome: come } of many) {
      assert.equal(await come, `file of ${3 * mib}`);
      assert.ok((await read).equals(sent));
      assert.ok((await place.read()).equals(sent));
    }
  });

  test('that is complete does not count as arriving while clients still read it', async (t) => {
    for (let round = 0; round < 4; round += 1) {
      const sharedBody = shareBody(
        content(8),
        { bytesMax: 8 * mib, bytesLength: 0 },
        await placeIn(t),
      );
      const slow = sharedBody.read();
      assert.equal(await outcome(sharedBody), `file of ${8 * mib}`);
      t.after(() => slow.destroy());
    }
  });

  test('that is too long to be stored reaches its readers, and its file is removed', async (t) => {
    const place = await placeIn(t);
    const sharedBody = shareBody(content(24), { bytesMax: 8 * mib, bytesLength: 0 }, place);
    const slow = sharedBody.read();
    assert.equal(await outcome(sharedBody), 'not stored');
    // The reader has not begun; the body was received as far as it was stored.
    assert.ok((await buffer(slow)).equals(await buffer(content(24))));
    await place.removed;
    assert.deepEqual([await place.files(), place.reported], [[], []]);
  });

  test('that cannot be written reaches its readers, and is reported', async (t) => {
    const place = await placeIn(t, () => Promise.reject(new Error('disk full')));
    const sharedBody = shareBody(content(12), { bytesMax: most, bytesLength: 0 }, place);
    const [first, second] = [buffer(sharedBody.read()), buffer(sharedBody.read())];
    assert.equal(await outcome(sharedBody), 'not stored');
    const sent = await buffer(content(12));
    assert.ok((await first).equals(sent) && (await second).equals(sent));
    assert.match(String(place.reported[0]), /disk full/);
  });

  test('reports a failure to close its file, and reaches its readers', async (t) => {
    const closing = Promise.withResolvers<unknown>();
    const folder = await temporaryFolder(t);
    const place: BodyFilePlace = {
      async create() {
        const handle = await open(join(folder, 'content'), 'wx+');
        const close = handle.close.bind(handle);
        handle.close = () => close().then(() => Promise.reject(new Error('quota exceeded')));
        return handle;
      },
      remove: () => Promise.resolve(),
      report: closing.resolve,
    };
    const sharedBody = shareBody(content(3), { bytesMax: most, bytesLength: 0 }, place);
    assert.equal((await buffer(sharedBody.read())).length, 3 * mib);
    assert.match(String(await closing.promise), /quota exceeded/);
  });

  test('is not stored when arriving bodies take twice the space of the longest one', async (t) => {
    const limits = { bytesMax: 8 * mib, bytesLength: 7 * mib };
    const places = [await placeIn(t), await placeIn(t), await placeIn(t)];
    const bodies = places.map((place) => shareBody(content(7), limits, place));
    // Files count as arriving while they have readers.
    const idle = bodies.map((sharedBody) => sharedBody.read());
    const outcomes = await Promise.all(bodies.map(outcome));
    assert.equal(outcomes.filter((one) => one === 'not stored').length, 1, String(outcomes));
    const sent = await buffer(content(7));
    for (const reader of idle) assert.ok((await buffer(reader)).equals(sent));
    const place = await placeIn(t);
    assert.equal(await outcome(shareBody(content(7), limits, place)), `file of ${7 * mib}`);
  });

  test('that is not stored fails for a reader far behind another one', async (t) => {
    const place = await placeIn(t, () => Promise.reject(new Error('disk full')));
    const mebibytes = arrivingBytesMax / mib + 24;
    const sharedBody = shareBody(content(mebibytes), { bytesMax: most, bytesLength: 0 }, place);
    const slow = sharedBody.read();
    const cut = once(slow, 'error');
    let read = 0;
    for await (const chunk of sharedBody.read()) read += (chunk as Buffer).length;
    assert.equal(read, mebibytes * mib);
    assert.match(String((await cut)[0]), /too slowly/);
    assert.ok(mebibytes * mib > arrivingLagBytesMax);
  });

  test('that broke off fails for later readers, too', async (t) => {
    const source = new Readable({ read: () => undefined });
    const sharedBody = shareBody(source, { bytesMax: most, bytesLength: 0 }, await placeIn(t));
    source.push('beginning');
    await once(source, 'data');
    source.destroy(new Error('broken'));
    assert.equal(await outcome(sharedBody), 'not stored');
    await assert.rejects(buffer(sharedBody.read()), /broken|aborted|closed/i);
  });

  test('that breaks off fails for all readers, and its file is removed', async (t) => {
    const place = await placeIn(t);
    const broken = new Readable({ read: () => undefined });
    const sharedBody = shareBody(broken, { bytesMax: most, bytesLength: 0 }, place);
    const reader = sharedBody.read();
    const failed = once(reader, 'error');
    let read = 0;
    reader.on('data', (chunk: Buffer) => {
      read += chunk.length;
      if (read === 8 * mib) broken.destroy(new Error('gone'));
    });
    for (let n = 0; n < 8; n += 1) broken.push(Buffer.alloc(mib));
    assert.match(String((await failed)[0]), /gone/);
    assert.equal(await outcome(sharedBody), 'not stored');
    await place.removed;
    assert.deepEqual([await place.files(), place.reported], [[], []]);
  });
});
