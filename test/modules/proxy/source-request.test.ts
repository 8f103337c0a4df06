import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { limitBody } from '../../../src/modules/proxy/source-request.ts';

suite('the content of a request to a source', () => {
  test('arrives whole, up to the limit', async () => {
    assert.equal(await text(limitBody(Readable.from(['he', 'llo']), 5)), 'hello');
  });

  test('fails one byte past the limit', async () => {
    await assert.rejects(text(limitBody(Readable.from(['he', 'llo']), 4)), {
      code: 'too_large',
    });
  });

  test('arrives if it ended before', async () => {
    const body = Readable.from([]);
    body.resume();
    await once(body, 'end');
    assert.equal(await text(limitBody(body, 5)), '');
  });

  test('fails when the client goes away', async () => {
    const body = new Readable({ read: () => undefined });
    body.push('he');
    const arriving = text(limitBody(body, 5));
    body.destroy();
    await assert.rejects(arriving, { code: 'ERR_STREAM_PREMATURE_CLOSE' });
  });

  test('may be destroyed at the moment at which the client goes away', async () => {
    const body = new Readable({ read: () => undefined });
    const metered = limitBody(body, 5);
    body.destroy(new Error('aborted'));
    metered.destroy();
    // As `once` of node:events would not: without listening for an error.
    await new Promise((resolve) => body.once('close', resolve));
    assert.equal(body.closed, true);
  });

  test('is read only as fast as the source reads', async () => {
    let asked = 0;
    const body = new Readable({
      read() {
        this.push(Buffer.alloc(10_000, (asked += 1)));
      },
    });
    const metered = limitBody(body, Infinity);
    await once(metered, 'readable');
    await new Promise(setImmediate);
    assert.ok(asked * 10_000 < 400_000, `${asked} chunks`);
    metered.destroy();
  });

  test("can be destroyed, and leaves the request's stream usable", async () => {
    const body = Readable.from(['he', 'llo']);
    const metered = limitBody(body, 5);
    metered.destroy();
    await once(metered, 'close');
    assert.equal(body.destroyed, false);
    assert.equal(body.isPaused(), true);
    assert.match(await text(body), /llo$/);
  });
});
