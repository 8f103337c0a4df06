import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { suite, test } from 'node:test';
import { WebSocketServer } from 'ws';
import { startTlsSite } from '../tls/tls-rig.ts';
import { connectHttp2, type Http2Client } from './client.ts';
import { connectRaw, fieldBlock, frame, uint32 } from './raw-client.ts';
import { nextText, textFrame, websocketFields } from './websocket-client.ts';

/** Asks for a websocket (RFC 8441 §5); resolves to its stream and the head of the answer. */
async function open(client: Http2Client, path: string, fields: Record<string, string> = {}) {
  const stream = client.begin(path, { ...websocketFields, ...fields }, false);
  stream.on('error', () => undefined);
  const [headers] = (await once(stream, 'response')) as [Record<string, string | number>];
  return { stream, headers };
}

suite('a websocket over HTTP/2', () => {
  test('carries operations beside other requests of its connection', async (t) => {
    const site = await startTlsSite(t);
    const client = await connectHttp2(t, site);
    const { stream, headers } = await open(client, '/svc1/ws', { apikey: site.adminKey });
    assert.equal(headers[':status'], 200);
    assert.equal(headers['sec-websocket-accept'], undefined);
    for (const id of ['1', '2']) {
      stream.write(textFrame(JSON.stringify({ id, r: 'svc1.server.status', v: {} })));
      const answer = JSON.parse(await nextText(stream)) as { id: string; data: object };
      assert.equal(answer.id, id);
      assert.equal((await client.ask('/svc1/health')).status, 200);
    }
    stream.end();
    if (!stream.closed) await once(stream, 'close');
    assert.equal((await client.ask('/svc1/health')).status, 200);
  });

  test('reaches a source, with its bytes in both directions', async (t) => {
    const source = createServer().listen(0, '127.0.0.1');
    await once(source, 'listening');
    const sockets = new WebSocketServer({ server: source });
    sockets.on('connection', (socket) => {
      socket.on('message', (message) => {
        socket.send(`echo ${(message as Buffer).toString()}`);
      });
    });
    t.after(() => {
      sockets.close();
      source.closeAllConnections();
      source.close();
    });
    const address = source.address();
    assert.ok(address !== null && typeof address === 'object');
    const site = await startTlsSite(t, {
      ini: `[proxy.app]\npath = /app/\nsource = http://127.0.0.1:${address.port}\n`,
    });
    const client = await connectHttp2(t, site);
    // A key has no meaning over HTTP/2; the source gets that of the server.
    const { stream, headers } = await open(client, '/app/live', { 'sec-websocket-key': 'none' });
    assert.equal(headers[':status'], 200);
    stream.write(textFrame('hello'));
    assert.equal(await nextText(stream), 'echo hello');
    // One that its client resets at once leaves no tunnel behind.
    const early = await connectRaw(t, site);
    const head = fieldBlock([
      [':method', 'CONNECT'],
      [':protocol', 'websocket'],
      [':scheme', 'https'],
      [':path', '/app/early'],
      [':authority', 'localhost'],
      ['sec-websocket-version', '13'],
    ]);
    early.send(frame('HEADERS', 4, 1, head), frame('RST_STREAM', 0, 1, uint32(8)));
    early.send(frame('HEADERS', 4, 3, head));
    const isOpen = () => early.frames.some((one) => one.stream === 3);
    await early.until(isOpen);
    assert.ok(isOpen());
    const { body } = await client.ask('/svc1/metrics');
    assert.match(body.toString(), /^waymark_tunnels 2$/m);
    stream.destroy();
  });

  test('is refused with the answer of HTTP/1.1', async (t) => {
    const site = await startTlsSite(t);
    const client = await connectHttp2(t, site);
    const other = await open(client, '/none');
    assert.equal(other.headers[':status'], 404);
    const old = await open(client, '/svc1/ws', { 'sec-websocket-version': '7' });
    assert.equal(old.headers[':status'], 400);
    assert.equal(old.headers['sec-websocket-version'], '13, 8');
    const unknown = await open(client, '/svc1/ws', { ':protocol': 'connect-udp' });
    assert.equal(unknown.headers[':status'], 501);
    assert.equal((await client.ask('/svc1/health')).status, 200);
  });
});
