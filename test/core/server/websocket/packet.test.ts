import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import {
  noBody,
  type Body,
  type FieldList,
  type FileSource,
  type Reply,
} from '../../../../src/core/http/reply.ts';
import { contentPacket as packetOf } from '../../../../src/core/server/websocket/packet.ts';

const mib = 1 << 20;

function replyOf(body: Body, fields: FieldList = []): Reply {
  return { status: 200, fields, body, source: 'disk:site' };
}

function bytesOf(bytes: Buffer | string): Body {
  return { kind: 'bytes', bytes: Buffer.from(bytes) };
}

/** A file that is read a few bytes at a time, and records `close`. */
function fileOf(bytes: Buffer, atOnce = 7) {
  const state = { closed: 0 };
  const file: FileSource = {
    read(buffer, position) {
      const count = bytes.copy(buffer, 0, position, Math.min(position + atOnce, bytes.length));
      return Promise.resolve(count);
    },
    close() {
      state.closed += 1;
      return Promise.resolve();
    },
  };
  return { file, state };
}

/** Returns the packet of an answer after serialising and parsing it. */
async function contentPacket(reply: Reply) {
  const { content, content_base64: base64, ...packet } = await packetOf(reply);
  return {
    ...packet,
    ...(content !== undefined && { content: content.toJSON() as string }),
    ...(base64 !== undefined && { content_base64: base64.toJSON() as string }),
  };
}

suite('a response as a websocket packet', () => {
  test('has status, headers and source; names in lower case, repeated ones joined', async () => {
    const fields = ['Content-Type', 'text/plain', 'X-A', '1', 'x-b', '', 'x-a', '2'];
    assert.deepEqual(await contentPacket({ ...replyOf(noBody, fields), status: 404 }), {
      status: 404,
      headers: Object.assign(Object.create(null), {
        'content-type': 'text/plain',
        'x-a': '1, 2',
        'x-b': '',
      }),
      contenttype: 'text/plain',
      content: '',
      source: 'disk:site',
    });
    assert.equal((await contentPacket(replyOf(noBody))).contenttype, null);
  });

  test('has headers of any name unchanged', async () => {
    const fields = ['Constructor', 'a', '__proto__', 'b', 'toString', 'c', 'toString', 'd'];
    const { headers } = await contentPacket(replyOf(noBody, fields));
    assert.equal(JSON.stringify(headers), '{"constructor":"a","__proto__":"b","tostring":"c, d"}');
  });

  const contents: readonly (readonly [
    title: string,
    bytes: Buffer,
    content: string | undefined,
  ])[] = [
    ['text', Buffer.from('hällo 😀'), 'hällo 😀'],
    ['nothing', Buffer.alloc(0), ''],
    ['a byte-order mark', Buffer.from([0xef, 0xbb, 0xbf, 0x61]), '\ufeffa'],
    ['NUL and controls', Buffer.from([0, 27, 13, 10]), '\0\x1b\r\n'],
    ['latin1', Buffer.from('hällo', 'latin1'), undefined],
    ['an incomplete character', Buffer.from('😀').subarray(0, 3), undefined],
    ['an encoded surrogate', Buffer.from([0xed, 0xa0, 0x80]), undefined],
    ['bytes', Buffer.from([0xff, 0xfe, 0, 1]), undefined],
  ];
  for (const [title, bytes, content] of contents) {
    test(`has the same bytes of ${title}`, async () => {
      const bodies: readonly Body[] = [
        bytesOf(bytes),
        {
          kind: 'file',
          file: fileOf(bytes).file,
          parts: bytes.length === 0 ? [] : [{ first: 0, last: bytes.length - 1 }],
          bytesLength: bytes.length,
        },
        {
          kind: 'stream',
          stream: Readable.from([...bytes].map((byte) => Buffer.from([byte]))),
          bytesLength: undefined,
        },
      ];
      for (const body of bodies) {
        const packet = await contentPacket(replyOf(body));
        assert.equal(packet.content, content, body.kind);
        const base64 = content === undefined ? bytes.toString('base64') : undefined;
        assert.equal(packet.content_base64, base64, body.kind);
      }
    });
  }

  test('has the ranges of a file in order, and closes the file', async () => {
    const { file, state } = fileOf(Buffer.from('0123456789'), 2);
    const parts = [
      Buffer.from('<'),
      { first: 5, last: 9 },
      Buffer.from('|'),
      { first: 0, last: 0 },
    ];
    const packet = await contentPacket(replyOf({ kind: 'file', file, parts, bytesLength: 8 }));
    assert.equal(packet.content, '<56789|0');
    assert.equal(state.closed, 1);
  });

  test('is refused if the file was truncated, and closes the file', async () => {
    const { file, state } = fileOf(Buffer.from('012'));
    const body: Body = { kind: 'file', file, parts: [{ first: 0, last: 9 }], bytesLength: 10 };
    await assert.rejects(contentPacket(replyOf(body)), { code: 'unavailable' });
    assert.equal(state.closed, 1);
  });
});

suite('content of more than 16 MiB', () => {
  const refusal = { code: 'too_large', message: /Fetch it over HTTP/ };

  test('of a file is refused before it is read', async () => {
    const { file, state } = fileOf(Buffer.alloc(0));
    const last = 16 * mib;
    const body: Body = { kind: 'file', file, parts: [{ first: 0, last }], bytesLength: last + 1 };
    await assert.rejects(contentPacket(replyOf(body)), refusal);
    assert.equal(state.closed, 1);
  });

  for (const bytesLength of [16 * mib + 1, undefined]) {
    test(`of a stream ${bytesLength ? 'of known length' : 'without end'} is refused, and destroys the stream`, async () => {
      const chunk = Buffer.alloc(mib);
      let made = 0;
      const stream = new Readable({
        read() {
          made += 1;
          this.push(chunk);
        },
      });
      const body: Body = { kind: 'stream', stream, bytesLength };
      await assert.rejects(contentPacket(replyOf(body)), refusal);
      assert.ok(stream.destroyed);
      assert.ok(made < 20);
    });
  }

  test('is refused, exactly 16 MiB is not', async () => {
    const stream = Readable.from([Buffer.alloc(16 * mib, 'a')]);
    const packet = await contentPacket(replyOf({ kind: 'stream', stream, bytesLength: undefined }));
    assert.equal(packet.content?.length, 16 * mib);
  });
});

test('a stream that breaks off is refused with its error', async () => {
  const stream = new Readable({
    read() {
      this.destroy(new Error('gone'));
    },
  });
  const body: Body = { kind: 'stream', stream, bytesLength: undefined };
  await assert.rejects(contentPacket(replyOf(body)), new Error('gone'));
});
