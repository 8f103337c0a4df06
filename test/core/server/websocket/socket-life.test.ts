import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test, type TestContext } from 'node:test';
import { socketRequestsInFlightMax } from '../../../../src/core/operations/limits.ts';
import { startSite, type TestSite } from '../../../harness.ts';
import {
  closing,
  frame,
  opcodes,
  openRaw,
  startHeldSource,
  upgradeRequest,
  type RawClient,
} from './socket-rig.ts';

const status = 'svc1.server.status';
const pingMs = 30_000;

async function startWithSource(t: TestContext) {
  const source = await startHeldSource(t);
  const site = await startSite(t, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    rules: [
      { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${source.url}/*` } },
      { path: '/large', kind: 'content', content: 'x'.repeat(1 << 20) },
    ],
  });
  return { site, source };
}

function contentOf(site: TestSite, path: string): string {
  return JSON.stringify({
    a: 'svc1.userinterface.get_content',
    v: { origin: site.url, path },
    id: path,
  });
}

suite('a websocket client', () => {
  test('gets a ping every 30 s, and is closed if it does not answer', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const site = await startSite(t);
    const { websocket } = await site.socket();
    const silent = await openRaw(t, site.port);
    for (let ping = 0; ping < 3; ping += 1) {
      const pinged = once(websocket, 'ping');
      t.mock.timers.tick(pingMs);
      await pinged;
      if (ping === 0) assert.equal((await silent.next()).opcode, opcodes.ping);
      // The server reads the pong before the next message.
      websocket.send('{}');
      await once(websocket, 'message');
    }
    assert.equal(await silent.closed, undefined, 'cut, without a close frame');
    assert.equal(websocket.readyState, websocket.OPEN);
  });

  test('is not closed for silence while its requests are running', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { site, source } = await startWithSource(t);
    const socket = await site.socket();
    const asked = Array.from({ length: socketRequestsInFlightMax + 1 }, (_, at) =>
      socket.call('svc1.userinterface.get_content', { origin: site.url, path: `/far/${at}` }),
    );
    await source.reached(socketRequestsInFlightMax);
    for (let tick = 0; tick < 4; tick += 1) t.mock.timers.tick(pingMs);
    source.release();
    for (const { data } of await Promise.all(asked)) assert.equal(data.status, 200);
  });

  test('that does not read is closed with a reason, and the server goes on', async (t) => {
    const { site } = await startWithSource(t);
    const { websocket } = await site.socket();
    const closed = closing(websocket);
    websocket.pause();
    for (let at = 0; at < 60; at += 1) websocket.send(contentOf(site, '/large'));
    // The server answers in order: after this answer, those above have been sent or dropped.
    const other = await site.socket(site.adminKey);
    for (let at = 0; at < 60; at += 1)
      assert.equal((await other.call(status, {})).error, undefined);
    websocket.resume();
    assert.deepEqual(await closed, [1013, 'The client reads its answers too slowly.']);
    assert.equal(site.logged().match(/websocket_unread/g)?.length, 1);
  });

  test('that pings and does not read is closed too', async (t) => {
    const site = await startSite(t);
    const { websocket } = await site.socket();
    const closed = closing(websocket);
    websocket.pause();
    const isTold = () => site.logged().includes('websocket_pings');
    while (!isTold()) {
      for (let at = 0; at < 1_000; at += 1) websocket.ping('x'.repeat(125));
      while (websocket.bufferedAmount > 0 && !isTold()) await new Promise(setImmediate);
    }
    websocket.resume();
    assert.deepEqual(await closed, [1008, 'The client sends too many pings.']);
    assert.equal((await site.call(status, {})).status, 200);
  });
});

suite('when the server stops', () => {
  test('a client gets the pending responses, then 1001', async (t) => {
    const { site, source } = await startWithSource(t);
    const { websocket } = await site.socket();
    const idle = await site.socket();
    const ends = Promise.all([closing(websocket), closing(idle.websocket)]);
    const answers: string[] = [];
    websocket.on('message', (data: Buffer) => {
      answers.push((JSON.parse(data.toString()) as { id: string }).id);
    });
    const running = socketRequestsInFlightMax;
    const paths = Array.from({ length: running + 36 }, (_, at) => `/far/${at}`);
    for (const path of paths) websocket.send(contentOf(site, path));
    await source.reached(socketRequestsInFlightMax);
    const stopped = site.waymark.stop(10_000);
    source.release();
    const reason = 'The server is stopping.';
    assert.deepEqual(await ends, [
      [1001, reason],
      [1001, reason],
    ]);
    assert.deepEqual(await stopped, { cut: 0 });
    assert.deepEqual(answers.slice(0, running).sort(), paths.slice(0, running).sort());
  });

  test('responses that take longer than the grace period are cut off and counted', async (t) => {
    const { site, source } = await startWithSource(t);
    const { websocket } = await site.socket();
    const closed = closing(websocket);
    websocket.send(contentOf(site, '/far/1'));
    await source.reached(1);
    assert.deepEqual(await site.waymark.stop(20), { cut: 1 });
    await closed;
  });

  test('a client that does not answer the close does not delay it', async (t) => {
    const site = await startSite(t);
    const silent = await openRaw(t, site.port);
    await site.waymark.stop(50);
    assert.equal(await silent.closed, 1001);
  });
});

suite('a frame that breaks the protocol', () => {
  const envelope = '{"a":"svc1.x.y","id":1}';
  const broken: readonly (readonly [title: string, bytes: Buffer, code: number])[] = [
    ['without a mask', frame(opcodes.text, envelope, { masked: false }), 1002],
    ['of control over 125 bytes', frame(opcodes.ping, 'x'.repeat(126)), 1002],
    ['of control in fragments', frame(opcodes.ping, 'x', { fin: false }), 1002],
    ['of a reserved opcode', frame(3, envelope), 1002],
    ['of a reserved control opcode', frame(11, ''), 1002],
    ['compressed without negotiation', frame(opcodes.text, 'x', { rsv: 4 }), 1002],
    ['with a reserved bit', frame(opcodes.text, envelope, { rsv: 1 }), 1002],
    ['that continues nothing', frame(opcodes.continuation, envelope), 1002],
    [
      'that begins a message inside another',
      Buffer.concat([frame(opcodes.text, '{', { fin: false }), frame(opcodes.text, '}')]),
      1002,
    ],
    ['of text that is not UTF-8', frame(opcodes.text, Buffer.from([0x22, 0xff, 0x22])), 1007],
    ['of close with one byte of a code', frame(opcodes.close, 'x'), 1002],
    ['of close with an undefined code', frame(opcodes.close, Buffer.from([3, 237])), 1002],
    [
      'that announces more than 16 MiB',
      Buffer.from([0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4]),
      1009,
    ],
    [
      'of a length of more than 2^53',
      Buffer.from([0x81, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4]),
      1009,
    ],
  ];
  test('ends its connection only, with the code for it', async (t) => {
    const site = await startSite(t);
    const bystander = await openRaw(t, site.port);
    for (const [title, bytes, code] of broken) {
      const client = await openRaw(t, site.port);
      client.send(bytes);
      assert.equal(await client.closed, code, title);
    }
    assert.match(await answerOf(bystander, envelope), /"code":"not_found"/);
  });

  test('does not include valid frames', async (t) => {
    const site = await startSite(t);
    const client = await openRaw(t, site.port);
    const half = envelope.length / 2;
    client.send(frame(opcodes.text, envelope.slice(0, half), { fin: false }));
    client.send(frame(opcodes.ping, 'between'));
    assert.deepEqual(await client.next(), {
      opcode: opcodes.pong,
      payload: Buffer.from('between'),
    });
    client.send(frame(opcodes.continuation, '', { fin: false }));
    client.send(frame(opcodes.continuation, envelope.slice(half)));
    assert.match((await client.next()).payload.toString(), /"id":1\}$/);
    client.send(frame(opcodes.pong, 'unasked'));
    client.send(frame(opcodes.ping, 'x'.repeat(125)));
    assert.equal((await client.next()).payload.length, 125);
    client.send(frame(opcodes.close, Buffer.from([3, 232])));
    assert.equal(await client.closed, 1000);
  });
});

async function answerOf(client: RawClient, envelope: string): Promise<string> {
  client.send(frame(opcodes.text, envelope));
  return (await client.next()).payload.toString();
}

test('a malformed upgrade is refused, and the server goes on', async (t) => {
  const site = await startSite(t, { server: 'base = /app\n' });
  const line = 'GET /app/svc1/ws HTTP/1.1';
  const cases: readonly (readonly [title: string, request: string, status: RegExp])[] = [
    ['no key', upgradeRequest({ 'Sec-WebSocket-Key': undefined }, line), / 400 /],
    ['a key of 15 bytes', upgradeRequest({ 'Sec-WebSocket-Key': 'YWJj' }, line), / 400 /],
    ['a malformed key', upgradeRequest({ 'Sec-WebSocket-Key': '%' }, line), / 400 /],
    ['no version', upgradeRequest({ 'Sec-WebSocket-Version': undefined }, line), / 400 /],
    [
      'another version',
      upgradeRequest({ 'Sec-WebSocket-Version': '99' }, line),
      / 400 [^]*\r\nSec-WebSocket-Version: 13/,
    ],
    [
      'POST',
      upgradeRequest({ Connection: 'Upgrade, close' }, 'POST /app/svc1/ws HTTP/1.1'),
      / 405 /,
    ],
    ['another place', upgradeRequest({}, 'GET /app/svc1/health HTTP/1.1'), / 404 /],
    ['a path outside the base', upgradeRequest({}, 'GET /svc1/ws HTTP/1.1'), / 404 /],
    ['a path with dot segments', upgradeRequest({}, 'GET /app/svc1/../svc1/ws HTTP/1.1'), / 400 /],
    ['a wrong API key', upgradeRequest({ apikey: 'wmk_wrong' }, line), / 401 /],
    ['no Host', upgradeRequest({ Host: undefined }, line), / 400 /],
    ['two Hosts', upgradeRequest({ host: 'evil.example' }, line), / 400 /],
    [
      'another protocol',
      upgradeRequest({ Upgrade: 'h2c', Connection: 'Upgrade, close' }, line),
      / 400 [^]*ask for an upgrade/,
    ],
    ['no Connection', upgradeRequest({ Connection: 'close' }, line), / 400 [^]*ask for an upgrade/],
  ];
  for (const [title, request, wanted] of cases) {
    const answer = await site.raw(request);
    assert.match(answer, wanted, title);
    assert.match(answer, /\r\nConnection: close\r\n/i, title);
    assert.ok(!answer.includes(site.folder), title);
    const told = [...site.logged().matchAll(/ (\d{3}) [A-Z]+ .* (\d+) B /g)].at(-1);
    assert.match(answer, new RegExp(`^HTTP/1.1 ${told?.[1]} `), title);
    assert.equal(/\r\n\r\n([^]*)$/.exec(answer)?.[1]?.length, Number(told?.[2]), title);
  }
  assert.equal((await fetch(`${site.url}/app/svc1/health`)).status, 200);
});
