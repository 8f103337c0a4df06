import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTlsSite } from '../tls/tls-rig.ts';
import { ask, type Sent } from './corpus/case.ts';
import { extensionCases } from './corpus/extensions.ts';
import { frameCases } from './corpus/frames.ts';
import { hpackCases } from './corpus/hpack.ts';
import { messageCases } from './corpus/messages.ts';
import {
  connectRaw,
  flags,
  frame,
  preface,
  settings,
  describeFrame,
  uint32,
  type RawClient,
} from './raw-client.ts';

const { END_STREAM, ACK } = flags;

const telling: readonly string[] = ['GOAWAY', 'RST_STREAM', 'HEADERS'];
const ping = frame('PING', 0, 0, '12345678');

/** Sends frames and a PING; returns the outcome in the form of `Case`. */
async function outcome(client: RawClient, sent: Sent, expected: string): Promise<string> {
  const said = () =>
    client.frames.filter(({ type }) => telling.includes(type)).map((one) => describeFrame(one));
  const saysOf = (what: string) => said().some((text) => text.startsWith(what));
  const hasEnded = () =>
    client.frames.some(
      ({ type, flags: flag }) => ['DATA', 'HEADERS'].includes(type) && (flag & END_STREAM) !== 0,
    );
  let together: Buffer[] = [];
  for (const piece of sent) {
    if (typeof piece !== 'string') {
      together.push(piece);
      continue;
    }
    client.send(...together);
    together = [];
    await client.until(() => (piece === 'begun' ? saysOf('answer') : hasEnded()));
  }
  client.send(...together, ping);
  const isOver = () => said().some((text) => /^GOAWAY (?!NO_ERROR)/.test(text));
  const isAnswered = () =>
    client.frames.some(({ type, payload }) => type === 'PING' && payload.equals(ping.subarray(9)));
  const isEnough = () => isAnswered() && (!expected.includes('answer') || saysOf('answer'));
  await client.until(() => isEnough() || saysOf('GOAWAY'));
  // The server closes the connection after a connection error (§5.4.1).
  if (isOver()) await client.until(() => client.closed());
  return isAnswered() || saysOf('GOAWAY') ? said().join(', ') || 'went on' : 'closed';
}

const cases = [...frameCases, ...messageCases, ...hpackCases, ...extensionCases];

/**
 * Follows the sections of RFC 9113 and RFC 7541, with the cases of h2spec, and of the extensions.
 */
test('frames are accepted, refused or ignored as RFC 9113 says', async (t) => {
  const site = await startTlsSite(t, { rules: [{ path: '/a', kind: 'content', content: 'a' }] });
  const outcomes: Record<string, string> = {};
  for (const [name, expected, sent] of cases) {
    const client = await connectRaw(t, site);
    const got = await outcome(client, sent, expected);
    // A close directly after GOAWAY may lose it (§5.4.1).
    outcomes[name] = got === 'closed' && expected.includes('GOAWAY') ? expected : got;
  }
  assert.deepEqual(outcomes, Object.fromEntries(cases.map(([name, expected]) => [name, expected])));
  assert.equal(Object.keys(outcomes).length, cases.length);
});

test('a connection without the preface of HTTP/2 is closed', async (t) => {
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

test('the first frame is SETTINGS, and the settings of the client are acknowledged', async (t) => {
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
  // ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_HEADER_LIST_SIZE,
  // ENABLE_CONNECT_PROTOCOL, NO_RFC7540_PRIORITIES.
  assert.deepEqual(
    new Map(entries as [number, number][]),
    new Map([
      [2, 0],
      [3, 100],
      [4, 65_536],
      [6, 40_960],
      [8, 1],
      [9, 1],
    ]),
  );
});

test('content is sent as far as the windows of stream and connection allow', async (t) => {
  const site = await startTlsSite(t, {
    rules: [{ path: '/a', kind: 'content', content: 'x'.repeat(100_000) }],
  });
  const client = await connectRaw(
    t,
    site,
    Buffer.concat([Buffer.from(preface), frame('SETTINGS', 0, 0, settings([4, 100], [4, 1]))]),
  );
  const received = () =>
    client.frames
      .filter(({ type }) => type === 'DATA')
      .reduce((sum, { payload }) => sum + payload.length, 0);
  /** Resolves to the received bytes once the server has answered a PING. */
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
  // A window may be negative: the client must make up for the excess first.
  client.send(frame('SETTINGS', 0, 0, settings([4, 0])), frame('WINDOW_UPDATE', 0, 1, uint32(30)));
  assert.equal(await settled('window-3'), 40);
  client.send(frame('WINDOW_UPDATE', 0, 1, uint32(100_000)));
  await client.until(() => received() === 65_535);
  assert.equal(await settled('window-4'), 65_535, 'the window of the connection');
  client.send(frame('WINDOW_UPDATE', 0, 0, uint32(100_000)));
  await client.until(() => received() === 100_000);
});
