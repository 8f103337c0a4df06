import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { http2ResetsMax } from '../../../../src/core/server/h2/connections.ts';
import type { LimitName } from '../../../../src/core/values/limit.ts';
import { startTlsSite } from '../tls/tls-rig.ts';
import {
  type Frame,
  connectRaw,
  describeFrame,
  fieldBlock,
  flags,
  frame,
  settings,
  uint32,
} from './raw-client.ts';

type Fields = readonly (readonly [name: string, value: string])[];

const { END_STREAM, END_HEADERS, ACK } = flags;

const get: Fields = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/a'],
  [':authority', 'localhost'],
];
/** A request that waits for its content. */
const post: Fields = [
  [':method', 'POST'],
  [':scheme', 'https'],
  [':path', '/svc1/userinterface/get'],
  [':authority', 'localhost'],
];

const ask = (stream: number, more: Fields = []) =>
  frame('HEADERS', END_STREAM | END_HEADERS, stream, fieldBlock([...get, ...more]));
const open = (stream: number) => frame('HEADERS', END_HEADERS, stream, fieldBlock(post));
const reset = (stream: number) => frame('RST_STREAM', 0, stream, uint32(8));
const many = (count: number, make: (stream: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, at) => make(2 * at + 1)));
const fields = (count: number): Fields =>
  Array.from({ length: count }, (_, at) => [`x-${at}`, '1'] as const);
/** Cookies as browsers send them (RFC 9113 §8.2.3). */
const cookies = (count: number): Fields =>
  Array.from({ length: count }, (_, at) => ['cookie', `c${at}=v`] as const);

/** Floods of frames, and the limit that each exceeds. */
const floods: readonly (readonly [name: string, frames: Buffer, limit: LimitName])[] = [
  [
    'requests that it resets at once (CVE-2023-44487)',
    many(2_000, (stream) => Buffer.concat([ask(stream), reset(stream)])),
    'http2_resets',
  ],
  [
    'requests that it makes the server reset (CVE-2025-8671)',
    many(2_000, (stream) =>
      Buffer.concat([open(stream), frame('WINDOW_UPDATE', 0, stream, uint32(0))]),
    ),
    'http2_frames',
  ],
  [
    'CONTINUATION without an end (CVE-2024-27983)',
    Buffer.concat([
      frame('HEADERS', END_STREAM, 1, fieldBlock(get)),
      many(1_000, () => frame('CONTINUATION', 0, 1, fieldBlock([['x-a', 'b']]))),
    ]),
    'http2_frames',
  ],
  [
    'empty CONTINUATION',
    Buffer.concat([
      frame('HEADERS', END_STREAM, 1, fieldBlock(get)),
      many(1_000, () => frame('CONTINUATION', 0, 1)),
    ]),
    'http2_frames',
  ],
  ['PING (CVE-2019-9512)', many(1_000, () => frame('PING', 0, 0, 'abcdefgh')), 'http2_pings'],
  [
    'PING acknowledgements without a PING',
    many(1_000, () => frame('PING', ACK, 0, 'abcdefgh')),
    'http2_pings',
  ],
  [
    'SETTINGS (CVE-2019-9515)',
    many(1_000, () => frame('SETTINGS', 0, 0, settings([3, 100]))),
    'http2_pings',
  ],
  [
    'entries of SETTINGS',
    frame('SETTINGS', 0, 0, settings(...Array.from({ length: 100 }, () => [3, 1] as const))),
    'http2_frames',
  ],
  [
    'empty DATA (CVE-2019-9518)',
    Buffer.concat([open(1), many(1_000, () => frame('DATA', 0, 1))]),
    'http2_frames',
  ],
  [
    'priorities without effect',
    many(100_001, (stream) => frame('PRIORITY', 0, stream, '\0\0\0\0\x01')),
    'http2_frames',
  ],
  [
    'windows of a request of the past',
    Buffer.concat([ask(1), reset(1), many(100_001, () => frame('WINDOW_UPDATE', 0, 1, uint32(1)))]),
    'http2_frames',
  ],
  ['malformed requests', many(1_000, (stream) => ask(stream, [['X-A', 'b']])), 'http2_frames'],
  ['requests above those allowed', many(1_000, open), 'http2_frames'],
];

suite('a client that floods the server with', () => {
  for (const [name, frames, limit] of floods) {
    test(`${name} is disconnected; other clients are not affected`, async (t) => {
      const site = await startTlsSite(t, {
        rules: [{ path: '/a', kind: 'content', content: 'a' }],
        ini: '[log]\nformat = json\n',
      });
      for (let flood = 0; flood < 2; flood += 1) {
        const client = await connectRaw(t, site);
        client.send(frames);
        await client.until(() => client.closed());
        await site.untilLogged(new RegExp(`"limit":"${limit}"`));
      }
      const other = await connectRaw(t, site);
      other.send(ask(1));
      await other.until(() => other.frames.some((one) => describeFrame(one) === 'answer 200'));
      const lines = site
        .logged()
        .split('\n')
        .filter((line) => line.includes('"limit":'));
      assert.equal(lines.length, 1, lines.join('\n'));
      assert.equal((JSON.parse(lines[0] ?? '') as { address: string }).address, '127.0.0.1');
      const served = site.logged().match(/"method":"(?:GET|POST)"/g) ?? [];
      assert.ok(
        // A machine that is slow gives the client time for a few more.
        served.length > 0 && served.length <= 2 * (http2ResetsMax + 300),
        `${served.length} requests were answered`,
      );
    });
  }
});

test('a page that scrolls may cancel hundreds of pictures at once', async (t) => {
  const site = await startTlsSite(t, { rules: [{ path: '/a', kind: 'content', content: 'a' }] });
  const client = await connectRaw(t, site);
  client.send(
    many(900, (stream) => Buffer.concat([ask(stream), reset(stream)])),
    ask(1_801),
  );
  const isAnswer = (one: Frame): boolean => one.stream === 1_801 && one.type === 'HEADERS';
  await client.until(() => client.closed() || client.frames.some(isAnswer));
  assert.ok(client.frames.some(isAnswer));
});

test('a client that takes content byte by byte is disconnected (CVE-2019-9511)', async (t) => {
  const site = await startTlsSite(t, {
    rules: [{ path: '/a', kind: 'content', content: 'a'.repeat(10_000) }],
    ini: '[log]\nformat = json\n',
  });
  const client = await connectRaw(t, site);
  client.send(frame('SETTINGS', 0, 0, settings([4, 1])), ask(1));
  const pieces = () => client.frames.filter(({ type }) => type === 'DATA').length;
  let taken = 0;
  while (!client.closed()) {
    taken += 1;
    await client.until(() => pieces() >= taken || client.closed());
    client.send(frame('WINDOW_UPDATE', 0, 1, uint32(1)));
  }
  assert.ok(taken > 900 && taken < 1_100, `closed after ${taken} pieces`);
  await site.untilLogged(/"limit":"http2_frames"/);
});

test('the trailer fields of a request are limited', async (t) => {
  const site = await startTlsSite(t);
  const client = await connectRaw(t, site);
  const trailers = (length: number) => fieldBlock([['x-sum', 'v'.repeat(length)]]);
  client.send(open(1), frame('HEADERS', END_STREAM | END_HEADERS, 1, trailers(9_000)));
  const ofFirst = () => client.frames.filter(({ stream }) => stream === 1);
  await client.until(() => ofFirst().length > 0);
  assert.deepEqual(ofFirst().map(describeFrame), ['RST_STREAM ENHANCE_YOUR_CALM']);
  client.send(open(3), frame('HEADERS', END_STREAM | END_HEADERS, 3, trailers(7_000)));
  await client.until(() => client.frames.some(({ stream }) => stream === 3));
  assert.match(
    describeFrame(client.frames.find(({ stream }) => stream === 3) ?? assert.fail()),
    /answer/,
  );
});

test('the requests of a connection are limited; further ones may be repeated', async (t) => {
  const site = await startTlsSite(t);
  const client = await connectRaw(t, site);
  client.send(many(105, open));
  const refused = () => client.frames.filter(({ type }) => type === 'RST_STREAM');
  await client.until(() => refused().length === 5);
  assert.deepEqual(
    refused().map((one) => [one.stream, describeFrame(one)]),
    [201, 203, 205, 207, 209].map((stream) => [stream, 'RST_STREAM REFUSED_STREAM']),
  );
  // When one request ends, the server accepts another.
  client.send(frame('DATA', END_STREAM, 1, '{}'));
  await client.until(() =>
    client.frames.some(({ type, stream }) => type === 'DATA' && stream === 1),
  );
  client.send(ask(211));
  await client.until(() => client.frames.some(({ stream }) => stream === 211));
  assert.equal(
    describeFrame(client.frames.find(({ stream }) => stream === 211) as never),
    'answer 404',
  );
});

test('a header block with too many fields, or too large, is refused', async (t) => {
  const site = await startTlsSite(t);
  const large = 'x'.repeat(12_000);
  const block = frame('HEADERS', END_STREAM, 1, fieldBlock(get));
  const continuation = (flag: number) =>
    frame('CONTINUATION', flag, 1, fieldBlock([['x-a', large]]));
  // A field of 4,000 bytes, and 1,000 bytes that each refer to it (HPACK).
  const name = fieldBlock([['x-b', 'b'.repeat(4_000)]]);
  name[0] = 0x40;
  const bomb = Buffer.concat([fieldBlock(get), name, Buffer.alloc(1_000, 0xbe)]);
  const withPath = (bytes: number): Buffer => {
    const path = [':path', '/'.padEnd(bytes, 'a')] as const;
    const all = fieldBlock(get.map((field) => (field[0] === ':path' ? path : field)));
    const pieces = Array.from({ length: Math.ceil(all.length / 16_000) }, (_, at) =>
      all.subarray(at * 16_000, (at + 1) * 16_000),
    );
    return Buffer.concat(
      pieces.map((piece, at) => {
        const end = at + 1 === pieces.length ? END_HEADERS : 0;
        if (at > 0) return frame('CONTINUATION', end, 1, piece);
        return frame('HEADERS', END_STREAM | end, 1, piece);
      }),
    );
  };
  const table: readonly (readonly [name: string, frames: Buffer, outcome: string])[] = [
    ['100 fields', ask(1, fields(99)), 'answer 404'],
    ['101 fields', ask(1, fields(100)), 'answer 431'],
    ['99 fields and 180 cookies', ask(1, [...fields(98), ...cookies(180)]), 'answer 404'],
    ['101 fields, with the cookies', ask(1, [...fields(99), ...cookies(180)]), 'answer 431'],
    ['400 fields', ask(1, fields(400)), 'RST_STREAM ENHANCE_YOUR_CALM'],
    ['400 cookies', ask(1, cookies(400)), 'RST_STREAM ENHANCE_YOUR_CALM'],
    [
      '48 KiB',
      Buffer.concat([block, continuation(0), continuation(0), continuation(0), continuation(4)]),
      'answer 431',
    ],
    ['a path of 9,000 bytes', withPath(9_000), 'answer 414'],
    ['a path of 45,000 bytes', withPath(45_000), 'answer 414'],
    ['4 MiB when unpacked', frame('HEADERS', 5, 1, bomb), 'RST_STREAM ENHANCE_YOUR_CALM'],
  ];
  for (const [what, frames, expected] of table) {
    const client = await connectRaw(t, site);
    client.send(frames);
    await client.until(() => client.frames.some(({ stream }) => stream === 1));
    assert.equal(
      describeFrame(client.frames.find(({ stream }) => stream === 1) as never),
      expected,
      what,
    );
  }
  assert.match(site.logged(), /"limit":"header_size"/);
  assert.match(site.logged(), /"limit":"target_size"/);
  // As over HTTP/1.1, each answered request has its line in the access log.
  assert.equal(site.logged().match(/ 431 GET localhost\/a [1-9]\d* B/g)?.length, 3);
});
