import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { type TestContext, suite, test } from 'node:test';
import { requestsHeldPerAddressBytesMax } from '../../../../src/core/fair/shared-limits.ts';
import { type Answer, type TestSite, startSite } from '../../../harness.ts';
import { closing, frame, opcodes, openRaw } from './socket-rig.ts';

const insert = 'svc1.userinterface.insert';
const pieceBytes = 60_000;
const piece = 'x'.repeat(pieceBytes);
/** Numbers of pieces of a message: too many for a client without a key, and few enough. */
const [tooMany, many] = [5, 4];

const insertOf = (bytes: number) =>
  JSON.stringify({ a: insert, v: { path: '/a', content: 'x'.repeat(bytes) }, id: 1 });

function unfinished(pieces: number): Buffer {
  return Buffer.concat(
    Array.from({ length: pieces }, (_, at) =>
      frame(at === 0 ? opcodes.text : opcodes.continuation, piece, { fin: false }),
    ),
  );
}

suite('an incomplete message', () => {
  test('has at most 256 KiB if its sender may not write', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call('svc1.key.insert', { name: 'r', scopes: ['read'] });
    for (const key of [undefined, data.key as string]) {
      const { websocket } = await site.socket(key);
      const closed = closing(websocket);
      websocket.send(insertOf(1 << 20));
      assert.deepEqual(await closed, [1009, 'A message has at most 262144 bytes.']);
    }
    assert.match(site.logged(), /content_size/);
    const raw = await openRaw(t, site.port);
    raw.send(unfinished(tooMany));
    assert.equal(await raw.closed, 1009, 'whatever frames it comes in');
    const { websocket } = await site.socket(site.adminKey);
    websocket.send(insertOf(1 << 20));
    const [answer] = (await once(websocket, 'message')) as [Buffer];
    assert.equal((JSON.parse(answer.toString()) as Answer).error, undefined);
  });

  test('may be large after its sender has authenticated', async (t) => {
    const site = await startSite(t);
    const { websocket } = await site.socket();
    const answers: Answer[] = [];
    websocket.on('message', (data: Buffer) => answers.push(JSON.parse(data.toString()) as Answer));
    const v = { apikey: site.adminKey };
    websocket.send(JSON.stringify({ a: 'svc1.session.authenticate', v }));
    websocket.send(insertOf(1 << 20));
    while (answers.length < 2) await once(websocket, 'message');
    assert.deepEqual(
      answers.map(({ error }) => error),
      [undefined, undefined],
    );

    const wrong = await site.socket();
    const closed = closing(wrong.websocket);
    wrong.websocket.send(
      JSON.stringify({ a: 'svc1.session.authenticate', v: { apikey: 'wmk_wrong' } }),
    );
    wrong.websocket.send(insertOf(1 << 20));
    assert.equal((await closed)[0], 1009);
  });

  test('must be complete within 60 s; an idle websocket has no timeout', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    // The site uses real timers to stop.
    t.after(() => {
      t.mock.timers.reset();
    });
    const site = await startSite(t);
    const [idle, slow, again] = [
      await openRaw(t, site.port),
      await openRaw(t, site.port),
      await openRaw(t, site.port),
    ];
    const envelope = '{"a":"svc1.x.y","id":1}';
    const half = frame(opcodes.text, envelope.slice(0, 9), { fin: false });
    const rest = frame(opcodes.continuation, envelope.slice(9));
    const ping = frame(opcodes.ping, '');
    idle.send(Buffer.concat([frame(opcodes.text, envelope), ping]));
    slow.send(Buffer.concat([half, ping]));
    again.send(Buffer.concat([half, ping]));
    for (const client of [idle, slow, again])
      assert.equal((await client.next()).opcode, opcodes.pong);
    assert.match((await idle.next()).payload.toString(), /"id":1/);
    t.mock.timers.tick(59_000);
    // The next message begins in the last piece of this one.
    again.send(Buffer.concat([rest, half]));
    assert.match((await again.next()).payload.toString(), /"id":1/);
    t.mock.timers.tick(1_000);
    assert.equal((await slow.next()).opcode, opcodes.close);
    assert.match(site.logged(), /request_time/);
    again.send(rest);
    assert.match((await again.next()).payload.toString(), /"id":1/);
    idle.send(frame(opcodes.text, envelope));
    assert.match((await idle.next()).payload.toString(), /"id":1/);
  });
});

/** Sends an incomplete body; resolves to the answer, if there is one. */
async function postUnfinished(t: TestContext, site: TestSite): Promise<ClientRequest> {
  const sent = request(`${site.url}/svc1/userinterface/get`, {
    method: 'POST',
    headers: { 'content-length': 200_000, expect: '100-continue' },
  });
  t.after(() => sent.destroy());
  sent.on('error', () => undefined);
  await once(sent, 'continue');
  sent.write('x'.repeat(199_999));
  return sent;
}

suite('the memory of unanswered requests', () => {
  test('is limited for an address, over websocket and HTTP together', async (t) => {
    const site = await startSite(t);
    const first = await openRaw(t, site.port);
    first.send(unfinished(many));
    const clients = Math.floor(requestsHeldPerAddressBytesMax / (many * pieceBytes));
    const closed = Array.from({ length: clients }, async () => {
      const client = await openRaw(t, site.port);
      client.send(unfinished(many));
      return client.closed;
    });
    assert.equal(await Promise.race(closed), 1013);
    assert.match(site.logged(), /requests_held/);

    const post = await postUnfinished(t, site);
    const [refused] = (await once(post, 'response')) as [IncomingMessage];
    assert.deepEqual([refused.statusCode, refused.headers['retry-after']], [429, '1']);

    // Small messages, and callers with a key, still get answers.
    const { websocket } = await site.socket(site.adminKey);
    websocket.send(insertOf(8 << 20));
    const [answer] = (await once(websocket, 'message')) as [Buffer];
    assert.equal((JSON.parse(answer.toString()) as Answer).error, undefined);
  });

  test('is freed when they are answered, or when the client disconnects', async (t) => {
    const site = await startSite(t);
    const rounds = Math.ceil(requestsHeldPerAddressBytesMax / 200_000) + 2;
    const v = { origin: site.url, path: '/a', comment: 'x'.repeat(200_000) };
    const socket = await site.socket();
    for (let round = 0; round < rounds; round += 1) {
      const posted = await site.call('svc1.userinterface.get', v, { apikey: undefined });
      const sent = await socket.call('svc1.userinterface.get', v);
      assert.deepEqual([posted.error?.code, sent.error?.code], ['invalid', 'invalid']);
      const left = await openRaw(t, site.port);
      left.send(unfinished(many));
      left.send(frame(opcodes.continuation, ''));
      left.send(frame(opcodes.close, Buffer.from([3, 232])));
      const gone = await postUnfinished(t, site);
      gone.destroy();
      await left.closed;
    }
  });
});
