import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTlsSite } from '../tls/tls-rig.ts';
import {
  connectRaw,
  fieldBlock,
  flags,
  frame,
  preface,
  settings,
  told,
  uint32,
  type RawClient,
} from './raw-client.ts';

type Fields = readonly (readonly [name: string, value: string])[];

const { END_STREAM, END_HEADERS, PADDED, PRIORITY, ACK } = flags;
const whole = END_STREAM | END_HEADERS;

const get: Fields = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/a'],
  [':authority', 'localhost'],
];
const post: Fields = [
  [':method', 'POST'],
  [':scheme', 'https'],
  [':path', '/svc1/userinterface/get'],
  [':authority', 'localhost'],
];
const without = (name: string) => get.filter(([one]) => one !== name);
const replaced = (name: string, value: string): Fields =>
  get.map(([one, before]) => [one, one === name ? value : before]);

/** HEADERS of a whole request; `fields` behind those of a GET. */
const ask = (stream: number, fields: Fields = []) =>
  frame('HEADERS', whole, stream, fieldBlock([...get, ...fields]));
const only = (fields: Fields) => frame('HEADERS', whole, 1, fieldBlock(fields));
const open = (stream: number, fields: Fields = []) =>
  frame('HEADERS', END_HEADERS, stream, fieldBlock([...post, ...fields]));
const data = (stream: number, text: string | Buffer = '', flag = 0) =>
  frame('DATA', flag, stream, text);
const reset = (stream: number) => frame('RST_STREAM', 0, stream, uint32(8));

const block = fieldBlock(get);
const half = block.length >> 1;

/**
 * Sends frames and a PING, and tells what the server says of streams and connection before it
 * answers the PING, or `went on`; waits for an answer that is expected as well.
 */
async function outcome(
  client: RawClient,
  frames: readonly Buffer[],
  expected: string,
): Promise<string> {
  client.send(...frames, frame('PING', 0, 0, '12345678'));
  const said = () =>
    client.frames.filter(({ type }) => telling.includes(type)).map((one) => told(one));
  const saysOf = (what: string) => said().some((text) => text.startsWith(what));
  const isAnswered = () =>
    client.frames.some(({ type, payload }) => type === 'PING' && payload.toString() === '12345678');
  const isEnough = () => isAnswered() && (!expected.startsWith('answer') || saysOf('answer'));
  await client.until(() => isEnough() || saysOf('GOAWAY'));
  return isAnswered() || saysOf('GOAWAY') ? said().join(', ') || 'went on' : 'closed';
}

const telling: readonly string[] = ['GOAWAY', 'RST_STREAM', 'HEADERS'];

type Case = readonly [name: string, outcome: string, frames: readonly Buffer[]];

const cases: readonly Case[] = [
  ['4.1 frame of an unknown type', 'answer 200', [frame(0x16, 0, 0, 'x'), ask(1)]],
  ['4.1 unknown flag', 'answer 200', [frame('PING', 0x16, 0, 'abcdefgh'), ask(1)]],
  ['4.1 reserved bit', 'answer 200', [frame('PING', 0, 0x80000000, 'abcdefgh'), ask(1)]],
  ['4.2 DATA of 2^14', 'answer 400', [open(1), data(1, Buffer.alloc(16_384), END_STREAM)]],
  [
    '4.2 DATA of more',
    'GOAWAY FRAME_SIZE_ERROR',
    [open(1), data(1, Buffer.alloc(16_385), END_STREAM)],
  ],
  ['4.2 HEADERS of more', 'GOAWAY FRAME_SIZE_ERROR', [ask(1, [['x-a', 'x'.repeat(16_400)]])]],
  [
    '4.3 unreadable block',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.of(0x40))],
  ],
  [
    '4.3 PRIORITY in a block',
    'GOAWAY PROTOCOL_ERROR',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, half)),
      frame('PRIORITY', 0, 1, Buffer.alloc(5)),
      frame('CONTINUATION', END_HEADERS, 1, block.subarray(half)),
    ],
  ],
  [
    '4.3 HEADERS of another stream in a block',
    'GOAWAY PROTOCOL_ERROR',
    [frame('HEADERS', END_STREAM, 1, block.subarray(0, half)), ask(3)],
  ],
  ['5.1 idle: DATA', 'GOAWAY PROTOCOL_ERROR', [data(1, 'x', END_STREAM)]],
  ['5.1 idle: RST_STREAM', 'GOAWAY PROTOCOL_ERROR', [reset(1)]],
  ['5.1 idle: WINDOW_UPDATE', 'GOAWAY PROTOCOL_ERROR', [frame('WINDOW_UPDATE', 0, 1, uint32(100))]],
  [
    '5.1 idle: CONTINUATION',
    'GOAWAY PROTOCOL_ERROR',
    [frame('CONTINUATION', END_HEADERS, 1, block)],
  ],
  ['5.1 half closed: DATA', 'GOAWAY STREAM_CLOSED', [ask(1), data(1, 'x', END_STREAM)]],
  ['5.1 half closed: HEADERS', 'GOAWAY STREAM_CLOSED', [ask(1), ask(1)]],
  [
    '5.1 half closed: CONTINUATION',
    'GOAWAY PROTOCOL_ERROR',
    [ask(1), frame('CONTINUATION', END_HEADERS, 1, block)],
  ],
  ['5.1 closed: DATA after RST_STREAM', 'went on', [open(1), reset(1), data(1, 'x', END_STREAM)]],
  ['5.1 closed: HEADERS after RST_STREAM', 'went on', [open(1), reset(1), ask(1)]],
  [
    '5.1 closed: CONTINUATION after RST_STREAM',
    'GOAWAY PROTOCOL_ERROR',
    [open(1), reset(1), frame('CONTINUATION', END_HEADERS, 1, block)],
  ],
  ['5.1 closed: WINDOW_UPDATE', 'answer 200', [ask(1), frame('WINDOW_UPDATE', 0, 1, uint32(1))]],
  ['5.1.1 even identifier', 'GOAWAY PROTOCOL_ERROR', [ask(2)]],
  ['5.1.1 smaller identifier', 'answer 200', [ask(5), ask(3)]],
  [
    '5.3.1 HEADERS that depends on itself',
    'GOAWAY PROTOCOL_ERROR',
    [frame('HEADERS', whole | PRIORITY, 1, Buffer.concat([uint32(1), Buffer.of(10), block]))],
  ],
  [
    '5.3.1 PRIORITY that depends on itself',
    'answer 200',
    [frame('PRIORITY', 0, 1, Buffer.concat([uint32(1), Buffer.of(10)])), ask(1)],
  ],
  [
    '5.5 unknown frame in a block',
    'GOAWAY PROTOCOL_ERROR',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, half)),
      frame(0x16, 0, 0, 'x'),
      frame('CONTINUATION', END_HEADERS, 1, block.subarray(half)),
    ],
  ],
  ['6.1 DATA on stream 0', 'GOAWAY PROTOCOL_ERROR', [data(0, 'x')]],
  [
    '6.1 padding as long as the frame',
    'GOAWAY PROTOCOL_ERROR',
    [open(1), frame('DATA', END_STREAM | PADDED, 1, Buffer.of(6, 1, 2, 3, 4, 5))],
  ],
  ['6.2 HEADERS on stream 0', 'GOAWAY PROTOCOL_ERROR', [frame('HEADERS', whole, 0, block)]],
  [
    '6.2 padding as long as the frame',
    'GOAWAY PROTOCOL_ERROR',
    [frame('HEADERS', whole | PADDED, 1, Buffer.concat([Buffer.of(block.length + 1), block]))],
  ],
  [
    '6.2 padded and with priority',
    'answer 200',
    [
      frame(
        'HEADERS',
        whole | PADDED | PRIORITY,
        1,
        Buffer.concat([Buffer.of(3), uint32(0), Buffer.of(1), block, Buffer.alloc(3)]),
      ),
    ],
  ],
  ['6.3 PRIORITY on stream 0', 'went on', [frame('PRIORITY', 0, 0, Buffer.alloc(5))]],
  [
    '6.3 PRIORITY of another length',
    'GOAWAY FRAME_SIZE_ERROR',
    [ask(1), frame('PRIORITY', 0, 1, Buffer.alloc(4))],
  ],
  ['6.4 RST_STREAM on stream 0', 'GOAWAY PROTOCOL_ERROR', [reset(0)]],
  [
    '6.4 RST_STREAM of another length',
    'GOAWAY FRAME_SIZE_ERROR',
    [open(1), frame('RST_STREAM', 0, 1, Buffer.alloc(3))],
  ],
  [
    '6.5 acknowledgement with content',
    'GOAWAY FRAME_SIZE_ERROR',
    [frame('SETTINGS', ACK, 0, settings([3, 1]))],
  ],
  ['6.5 SETTINGS on a stream', 'GOAWAY PROTOCOL_ERROR', [frame('SETTINGS', 0, 1)]],
  [
    '6.5 SETTINGS of another length',
    'GOAWAY FRAME_SIZE_ERROR',
    [frame('SETTINGS', 0, 0, Buffer.alloc(3))],
  ],
  ['6.5.2 ENABLE_PUSH 2', 'GOAWAY PROTOCOL_ERROR', [frame('SETTINGS', 0, 0, settings([2, 2]))]],
  [
    '6.5.2 INITIAL_WINDOW_SIZE 2^31',
    'GOAWAY FLOW_CONTROL_ERROR',
    [frame('SETTINGS', 0, 0, settings([4, 0x80000000]))],
  ],
  [
    '6.5.2 MAX_FRAME_SIZE 2^14 - 1',
    'GOAWAY PROTOCOL_ERROR',
    [frame('SETTINGS', 0, 0, settings([5, 16_383]))],
  ],
  [
    '6.5.2 MAX_FRAME_SIZE 2^24',
    'GOAWAY PROTOCOL_ERROR',
    [frame('SETTINGS', 0, 0, settings([5, 1 << 24]))],
  ],
  ['6.5.2 unknown setting', 'answer 200', [frame('SETTINGS', 0, 0, settings([0xff, 1])), ask(1)]],
  ['6.7 PING on a stream', 'GOAWAY PROTOCOL_ERROR', [frame('PING', 0, 1, 'abcdefgh')]],
  ['6.7 PING of another length', 'GOAWAY FRAME_SIZE_ERROR', [frame('PING', 0, 0, 'abcdef')]],
  ['6.7 acknowledged PING', 'GOAWAY INTERNAL_ERROR', [frame('PING', ACK, 0, 'abcdefgh'), ask(1)]],
  ['6.8 GOAWAY on a stream', 'GOAWAY PROTOCOL_ERROR', [frame('GOAWAY', 0, 1, Buffer.alloc(8))]],
  ['6.9 WINDOW_UPDATE of 0', 'GOAWAY PROTOCOL_ERROR', [frame('WINDOW_UPDATE', 0, 0, uint32(0))]],
  [
    '6.9 WINDOW_UPDATE of 0 on a stream',
    'GOAWAY PROTOCOL_ERROR',
    [open(1), frame('WINDOW_UPDATE', 0, 1, uint32(0))],
  ],
  [
    '6.9 WINDOW_UPDATE of another length',
    'GOAWAY FRAME_SIZE_ERROR',
    [frame('WINDOW_UPDATE', 0, 0, Buffer.alloc(3))],
  ],
  [
    '6.9.1 window of the connection above 2^31 - 1',
    'GOAWAY FLOW_CONTROL_ERROR',
    [
      frame('WINDOW_UPDATE', 0, 0, uint32(0x7fffffff)),
      frame('WINDOW_UPDATE', 0, 0, uint32(0x7fffffff)),
    ],
  ],
  [
    '6.9.1 window of a stream above 2^31 - 1',
    'GOAWAY FLOW_CONTROL_ERROR',
    [
      open(1),
      frame('WINDOW_UPDATE', 0, 1, uint32(0x7fffffff)),
      frame('WINDOW_UPDATE', 0, 1, uint32(0x7fffffff)),
    ],
  ],
  [
    '6.9.2 setting that takes a window above 2^31 - 1',
    'GOAWAY FLOW_CONTROL_ERROR',
    [
      open(1),
      frame('WINDOW_UPDATE', 0, 1, uint32(0x7fff0000)),
      frame('SETTINGS', 0, 0, settings([4, 0x7fffffff])),
    ],
  ],
  [
    '6.10 several CONTINUATION',
    'answer 200',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, 5)),
      frame('CONTINUATION', 0, 1, block.subarray(5, half)),
      frame('CONTINUATION', END_HEADERS, 1, block.subarray(half)),
    ],
  ],
  [
    '6.10 CONTINUATION, then DATA',
    'GOAWAY PROTOCOL_ERROR',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, half)),
      frame('CONTINUATION', 0, 1, ''),
      data(1, 'x'),
    ],
  ],
  [
    '6.10 CONTINUATION on stream 0',
    'GOAWAY PROTOCOL_ERROR',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, half)),
      frame('CONTINUATION', END_HEADERS, 0, block.subarray(half)),
    ],
  ],
  [
    '6.10 CONTINUATION after the end of a block',
    'GOAWAY PROTOCOL_ERROR',
    [ask(1), frame('CONTINUATION', END_HEADERS, 1, '')],
  ],
  [
    '7 GOAWAY with an unknown code',
    'GOAWAY NO_ERROR',
    [frame('GOAWAY', 0, 0, Buffer.concat([uint32(0), uint32(0xff)]))],
  ],
  [
    '7 RST_STREAM with an unknown code',
    'answer 200',
    [open(1), frame('RST_STREAM', 0, 1, uint32(0xff)), ask(3)],
  ],
  [
    '8.1 trailers',
    'answer 400',
    [open(1, []), data(1, 'x'), frame('HEADERS', whole, 1, fieldBlock([['x-sum', '1']]))],
  ],
  [
    '8.1 trailers without an end',
    'RST_STREAM PROTOCOL_ERROR',
    [open(1), data(1, 'x'), frame('HEADERS', END_HEADERS, 1, fieldBlock([['x-sum', '1']]))],
  ],
  [
    '8.1 trailers with a pseudo-header field',
    'RST_STREAM PROTOCOL_ERROR',
    [open(1), data(1, 'x'), frame('HEADERS', whole, 1, fieldBlock([[':method', 'GET']]))],
  ],
  [
    '8.2 PUSH_PROMISE',
    'GOAWAY PROTOCOL_ERROR',
    [ask(1), frame('PUSH_PROMISE', END_HEADERS, 1, Buffer.concat([uint32(2), block]))],
  ],
  ['8.2.1 upper case', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['X-A', '1']])]],
  ['8.2.1 space in a name', 'answer 200', [ask(1, [['x a', '1']])]],
  ['8.2.1 colon in a name', 'answer 200', [ask(1, [['x:a', '1']])]],
  ['8.2.1 empty name', 'answer 200', [ask(1, [['', '1']])]],
  ['8.2.1 NUL in a value', 'answer 200', [ask(1, [['x-a', 'a\0b']])]],
  ['8.2.1 CR in a value', 'answer 200', [ask(1, [['x-a', 'a\rb']])]],
  ['8.2.1 LF in a value', 'answer 200', [ask(1, [['x-a', 'a\nb']])]],
  ['8.2.1 space around a value', 'answer 200', [ask(1, [['x-a', ' a']])]],
  ['8.2.1 control character in a value', 'answer 200', [ask(1, [['x-a', 'a\x01b']])]],
  ['8.2.2 Connection', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['connection', 'close']])]],
  ['8.2.2 Keep-Alive', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['keep-alive', '5']])]],
  [
    '8.2.2 Proxy-Connection',
    'RST_STREAM PROTOCOL_ERROR',
    [ask(1, [['proxy-connection', 'close']])],
  ],
  [
    '8.2.2 Transfer-Encoding',
    'RST_STREAM PROTOCOL_ERROR',
    [ask(1, [['transfer-encoding', 'chunked']])],
  ],
  ['8.2.2 Upgrade', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['upgrade', 'websocket']])]],
  ['8.2.2 TE other than trailers', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['te', 'gzip']])]],
  ['8.2.2 TE trailers', 'answer 200', [ask(1, [['te', 'trailers']])]],
  [
    '8.2.3 cookie in crumbs',
    'answer 200',
    [
      ask(1, [
        ['cookie', 'a=b'],
        ['cookie', 'c=d'],
      ]),
    ],
  ],
  [
    '8.3 unknown pseudo-header field',
    'RST_STREAM PROTOCOL_ERROR',
    [only([[':test', 'x'], ...get])],
  ],
  [
    '8.3 pseudo-header field of an answer',
    'RST_STREAM PROTOCOL_ERROR',
    [only([...get.slice(0, 3), [':status', '200']])],
  ],
  [
    '8.3 pseudo-header field behind another',
    'RST_STREAM PROTOCOL_ERROR',
    [only([...get.slice(0, 3), ['x-a', 'b'], [':authority', 'localhost']])],
  ],
  ['8.3 pseudo-header field twice', 'RST_STREAM PROTOCOL_ERROR', [only([...get, [':path', '/b']])]],
  ['8.3.1 no :method', 'RST_STREAM PROTOCOL_ERROR', [only(without(':method'))]],
  ['8.3.1 no :scheme', 'RST_STREAM PROTOCOL_ERROR', [only(without(':scheme'))]],
  ['8.3.1 no :path', 'RST_STREAM PROTOCOL_ERROR', [only(without(':path'))]],
  ['8.3.1 empty :path', 'RST_STREAM PROTOCOL_ERROR', [only(replaced(':path', ''))]],
  [':path without a slash', 'RST_STREAM PROTOCOL_ERROR', [only(replaced(':path', 'a'))]],
  [
    ':path of absolute form',
    'RST_STREAM PROTOCOL_ERROR',
    [only(replaced(':path', 'https://localhost/a'))],
  ],
  [
    '8.3.1 no :authority, but Host',
    'answer 200',
    [only([...without(':authority'), ['host', 'localhost']])],
  ],
  ['8.3.1 no :authority, no Host', 'RST_STREAM PROTOCOL_ERROR', [only(without(':authority'))]],
  ['8.3.1 :authority and the same Host', 'answer 200', [ask(1, [['host', 'localhost']])]],
  ['8.3.1 :authority and another Host', 'answer 400', [ask(1, [['host', 'evil.example']])]],
  [
    '8.3.1 :authority with userinfo',
    'RST_STREAM PROTOCOL_ERROR',
    [only(replaced(':authority', 'a@localhost'))],
  ],
  ['8.3.1 :scheme http', 'answer 400', [only(replaced(':scheme', 'http'))]],
  ['8.3.1 :scheme other', 'answer 400', [only(replaced(':scheme', 'ftp'))]],
  [
    '8.3.1 OPTIONS *',
    'answer 204',
    [
      only([
        [':method', 'OPTIONS'],
        [':scheme', 'https'],
        [':path', '*'],
        [':authority', 'localhost'],
      ]),
    ],
  ],
  [
    '8.5 CONNECT',
    'answer 400',
    [
      frame(
        'HEADERS',
        END_HEADERS,
        1,
        fieldBlock([
          [':method', 'CONNECT'],
          [':authority', 'localhost:443'],
        ]),
      ),
    ],
  ],
  [
    '8.5 CONNECT with :path',
    'RST_STREAM PROTOCOL_ERROR',
    [only([[':method', 'CONNECT'], ...get.slice(1)])],
  ],
  [
    'RFC 8441 extended CONNECT',
    'RST_STREAM PROTOCOL_ERROR',
    [only([[':method', 'CONNECT'], [':protocol', 'websocket'], ...get.slice(1)])],
  ],
  [':method not a token', 'RST_STREAM PROTOCOL_ERROR', [only(replaced(':method', 'G ET'))]],
  [
    '8.1.1 content shorter than announced',
    'RST_STREAM PROTOCOL_ERROR',
    [open(1, [['content-length', '5']]), data(1, 'x', END_STREAM)],
  ],
  [
    '8.1.1 content longer than announced',
    'GOAWAY INTERNAL_ERROR',
    [open(1, [['content-length', '1']]), data(1, 'xx', END_STREAM)],
  ],
  [
    '8.1.1 content over several frames',
    'GOAWAY INTERNAL_ERROR',
    [open(1, [['content-length', '1']]), data(1, 'x'), data(1, 'x', END_STREAM)],
  ],
  [
    '8.1.1 Content-Length twice',
    'RST_STREAM PROTOCOL_ERROR',
    [
      ask(1, [
        ['content-length', '0'],
        ['content-length', '0'],
      ]),
    ],
  ],
  [
    '8.1.1 Content-Length not a number',
    'RST_STREAM PROTOCOL_ERROR',
    [ask(1, [['content-length', '+1']])],
  ],
  [
    'HPACK 2.3.3 index that is none',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.concat([block, Buffer.of(0xfe)]))],
  ],
  [
    'HPACK 4.2 table larger than allowed',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.concat([Buffer.of(0x3f, 0xe1, 0xff, 0x03), block]))],
  ],
  [
    'HPACK 4.2 size of the table at the end',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.concat([block, Buffer.of(0x20)]))],
  ],
  [
    'HPACK 5.2 Huffman with EOS',
    'GOAWAY COMPRESSION_ERROR',
    [
      frame(
        'HEADERS',
        whole,
        1,
        Buffer.concat([block, Buffer.of(0, 0x84, 0xff, 0xff, 0xff, 0xff, 1, 0x61)]),
      ),
    ],
  ],
  [
    'HPACK 5.2 padding of a byte',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.concat([block, Buffer.of(0, 0x82, 0x1f, 0xff, 1, 0x61)]))],
  ],
  [
    'HPACK 6.1 index 0',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.concat([block, Buffer.of(0x80)]))],
  ],
  [
    'HPACK length that overflows',
    'GOAWAY COMPRESSION_ERROR',
    [
      frame(
        'HEADERS',
        whole,
        1,
        Buffer.concat([block, Buffer.of(0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f)]),
      ),
    ],
  ],
];

/**
 * Along the sections of RFC 9113 and RFC 7541, with the cases of h2spec: the frames after the
 * preface, and what comes of them. A stream error may be one of the connection (§5.4), where Node
 * makes it one. It leaves out fields with characters that none may have (§8.2.1) instead of
 * refusing them, and takes no notice of PRIORITY, which means nothing any more (§5.3.2).
 */
test('frames are taken, refused or overlooked as they should be', async (t) => {
  const site = await startTlsSite(t, { rules: [{ path: '/a', kind: 'content', content: 'a' }] });
  const outcomes: Record<string, string> = {};
  for (const [name, expected, frames] of cases) {
    const client = await connectRaw(t, site);
    const got = await outcome(client, frames, expected);
    // GOAWAY may be lost when the connection closes right behind it (§5.4.1).
    outcomes[name] = got === 'closed' && expected.startsWith('GOAWAY') ? expected : got;
  }
  assert.deepEqual(outcomes, Object.fromEntries(cases.map(([name, expected]) => [name, expected])));
});

test('what does not begin as HTTP/2 does is closed', async (t) => {
  const site = await startTlsSite(t);
  for (const opening of [
    'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n',
    preface.replace('2.0', '3.0'),
  ]) {
    const client = await connectRaw(t, site, opening);
    await client.until(() => client.closed());
    assert.ok(!client.frames.some(({ type }) => type === 'HEADERS'), opening);
  }
});

test('the first frame is SETTINGS, and those of the client are acknowledged', async (t) => {
  const site = await startTlsSite(t);
  const client = await connectRaw(t, site);
  await client.until(() =>
    client.frames.some(({ type, flags: flag }) => type === 'SETTINGS' && flag === ACK),
  );
  const [first] = client.frames;
  assert.ok(first?.type === 'SETTINGS');
  const entries = Array.from({ length: first.payload.length / 6 }, (_, at) => [
    first.payload.readUInt16BE(at * 6),
    first.payload.readUInt32BE(at * 6 + 2),
  ]);
  // ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_HEADER_LIST_SIZE.
  assert.deepEqual(
    new Map(entries as [number, number][]),
    new Map([
      [2, 0],
      [3, 100],
      [4, 65_536],
      [6, 40_960],
    ]),
  );
});

test('content goes out as far as the windows of stream and connection let it', async (t) => {
  const site = await startTlsSite(t, {
    rules: [{ path: '/a', kind: 'content', content: 'x'.repeat(100_000) }],
  });
  const client = await connectRaw(
    t,
    site,
    Buffer.concat([Buffer.from(preface), frame('SETTINGS', 0, 0, settings([4, 1]))]),
  );
  const received = () =>
    client.frames
      .filter(({ type }) => type === 'DATA')
      .reduce((sum, { payload }) => sum + payload.length, 0);
  /** What has come once the server has answered a PING. */
  const settled = async (name: string) => {
    client.send(frame('PING', 0, 0, name));
    await client.until(() =>
      client.frames.some(({ type, payload }) => type === 'PING' && payload.toString() === name),
    );
    return received();
  };
  client.send(ask(1));
  await client.until(() => received() === 1);
  assert.equal(await settled('window-1'), 1);
  client.send(frame('WINDOW_UPDATE', 0, 1, uint32(9)));
  await client.until(() => received() === 10);
  assert.equal(await settled('window-2'), 10);
  client.send(frame('SETTINGS', 0, 0, settings([4, 31])));
  await client.until(() => received() === 40);
  // A window may be below zero: what has gone out beyond it has to be made up for.
  client.send(frame('SETTINGS', 0, 0, settings([4, 0])), frame('WINDOW_UPDATE', 0, 1, uint32(30)));
  assert.equal(await settled('window-3'), 40);
  client.send(frame('WINDOW_UPDATE', 0, 1, uint32(100_000)));
  await client.until(() => received() === 65_535);
  assert.equal(await settled('window-4'), 65_535, 'the window of the connection');
  client.send(frame('WINDOW_UPDATE', 0, 0, uint32(100_000)));
  await client.until(() => received() === 100_000);
});
