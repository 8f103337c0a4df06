import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { FrameCounter } from '../../../../src/core/server/websocket/message.ts';
import { frame, opcodes } from './socket-rig.ts';

suite('the frame counter of a websocket', () => {
  test('counts the bytes of an incomplete message, wherever the bytes are split', () => {
    const text = fc.integer({ min: 0, max: 65_535 }).map((length) => 'x'.repeat(length));
    const message = fc.array(text, { minLength: 1, maxLength: 4 });
    const cuts = fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 1, maxLength: 9 });
    fc.assert(
      fc.property(fc.array(message, { minLength: 1, maxLength: 3 }), cuts, (messages, sizes) => {
        // The frames, and the positions between messages.
        const frames: Buffer[] = [];
        const ends = [0];
        let length = 0;
        const add = (bytes: Buffer): void => {
          frames.push(bytes);
          length += bytes.length;
        };
        for (const texts of messages) {
          add(frame(opcodes.ping, 'between'));
          ends.push(length);
          for (const [at, part] of texts.entries()) {
            const fin = at === texts.length - 1;
            add(frame(at === 0 ? opcodes.text : opcodes.continuation, part, { fin }));
            if (!fin) add(frame(opcodes.ping, 'inside'));
          }
          ends.push(length);
        }
        const follower = new FrameCounter();
        const all = Buffer.concat(frames);
        for (let at = 0, cut = 0; at < all.length; cut += 1) {
          const end = Math.min(all.length, at + (sizes[cut % sizes.length] ?? 1));
          follower.read(all.subarray(at, end));
          const begun = ends.findLast((one) => one <= end) ?? 0;
          assert.equal(follower.bytes, end - begun);
          at = end;
        }
        assert.equal(follower.messages, messages.length);
      }),
      { numRuns: 50 },
    );
  });

  test('reads the announced length from the header', () => {
    const follower = new FrameCounter();
    follower.read(frame(opcodes.text, 'x'.repeat(1_000), { fin: false }));
    assert.equal(follower.contentBytes, 1_000);
    follower.read(Buffer.from([0x80, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0]));
    assert.equal(follower.contentBytes, 1_000, 'the mask is missing');
    follower.read(Buffer.from([1, 2, 3, 4]));
    assert.equal(follower.contentBytes, 1_000 + (1 << 20));
  });
});
