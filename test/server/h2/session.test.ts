import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { createHttp2Server } from '../../../src/server/h2/server.ts';
import { updateFlow, newSession } from '../../../src/server/h2/session.ts';
import { createAuthority } from '../../certificates.ts';
import { fieldBlock, frame, preface, settings, uint32 } from './raw-client.ts';

const path = { ':method': 'GET', ':scheme': 'https', ':path': '/', ':authority': 'localhost' };
const asking = Buffer.concat([
  Buffer.from(preface),
  frame('SETTINGS', 0, 0, settings([4, 2 ** 31 - 1])),
  frame('WINDOW_UPDATE', 0, 0, uint32(2 ** 30)),
  frame('HEADERS', 5, 1, fieldBlock(Object.entries(path))),
]);

function answerMuch(stream: ServerHttp2Stream): void {
  stream.on('error', () => undefined);
  stream.respond();
  stream.write(Buffer.alloc(1 << 25));
}

test('a full socket is distinguished from a client whose window is closed', async (t) => {
  const server = createHttp2Server();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const client = connect(address.port, '127.0.0.1').pause();
  t.after(() => client.destroy());
  const [[socket], [session]] = (await Promise.all([
    once(server, 'connection'),
    once(server, 'session'),
  ])) as [[Socket], [ServerHttp2Session]];
  server.on('stream', answerMuch);
  client.write(asking);
  const known = newSession(socket, 0);
  updateFlow(session, known, 0);
  while (known.queuedBytes === 0) {
    await nextTurn();
    updateFlow(session, known, 0);
  }
  const { remoteWindowSize = 0, outboundQueueSize } = session.state;
  assert.ok(remoteWindowSize > 0 && outboundQueueSize === 0);
  assert.equal(updateFlow(session, known, 0), false);
  client.resume();
  while (!updateFlow(session, known, 0)) await nextTurn();
  assert.equal(known.queuedBytes, 0);
});

test('over TLS, progress of a reading client is seen before it has read everything', async (t: TestContext) => {
  const server = createHttp2Server().on('stream', answerMuch);
  const pair = await (await createAuthority()).issue(['localhost']);
  const front = createTlsServer({ ...pair, ALPNProtocols: ['h2'] }, (socket) => {
    server.emit('connection', socket);
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  t.after(() => front.close());
  const address = front.address();
  assert.ok(address !== null && typeof address === 'object');
  const to = { port: address.port, host: '127.0.0.1', ALPNProtocols: ['h2'] };
  const client = connectTls({ ...to, rejectUnauthorized: false }).pause();
  t.after(() => client.destroy());
  const [[socket], [session]] = (await Promise.all([
    once(front, 'secureConnection'),
    once(server, 'session'),
  ])) as [[TLSSocket], [ServerHttp2Session]];
  client.write(asking);
  const known = newSession(socket, 0);
  while (known.queuedBytes < 1 << 20) {
    await nextTurn();
    updateFlow(session, known, 0);
  }
  const most = known.queuedBytes;
  client.resume();
  const seen = new Set<number>();
  while (!updateFlow(session, known, 0)) {
    seen.add(known.queuedBytes);
    await nextTurn();
  }
  assert.ok(
    [...seen].some((bytes) => bytes > 0 && bytes < most),
    [...seen].join(),
  );
});
