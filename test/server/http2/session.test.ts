import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createHttp2Server } from '../../../src/server/http2/server.ts';
import { lookAtFlow, newSession } from '../../../src/server/http2/session.ts';
import { fieldBlock, frame, preface, settings, uint32 } from './raw-client.ts';

test('a socket that is full is told from a client that lets nothing come', async (t) => {
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
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined);
    stream.respond();
    stream.write(Buffer.alloc(1 << 25));
  });
  const path = { ':method': 'GET', ':scheme': 'http', ':path': '/', ':authority': 'localhost' };
  client.write(
    Buffer.concat([
      Buffer.from(preface),
      frame('SETTINGS', 0, 0, settings([4, 2 ** 31 - 1])),
      frame('WINDOW_UPDATE', 0, 0, uint32(2 ** 30)),
      frame('HEADERS', 5, 1, fieldBlock(Object.entries(path))),
    ]),
  );
  const known = newSession(socket, 0);
  lookAtFlow(session, known, 0);
  while (known.queuedBytes === 0) {
    await nextTurn();
    lookAtFlow(session, known, 0);
  }
  const { remoteWindowSize = 0, outboundQueueSize } = session.state;
  assert.ok(remoteWindowSize > 0 && outboundQueueSize === 0);
  assert.equal(lookAtFlow(session, known, 0), false);
  client.resume();
  while (!lookAtFlow(session, known, 0)) await nextTurn();
  assert.equal(known.queuedBytes, 0);
});
