import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import net, { type AddressInfo, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { suite, test, type TestContext } from 'node:test';
import type { OutboundRequest } from '../../../src/core/outbound/dialler.ts';
import { outbound, selfSigned, testDialler } from './sources.ts';

const preamble = Buffer.from('PROXY UNKNOWN\r\n');
const certificate = selfSigned('localhost');

/** A server behind another that takes the preamble of each connection away. */
async function source(t: TestContext, server: net.Server) {
  const counts = { connections: 0 };
  const sockets = new Set<Socket>();
  const outer = net.createServer((socket) => {
    counts.connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('readable', () => {
      assert.deepEqual(socket.read(preamble.length), preamble);
      server.emit('connection', socket);
    });
  });
  outer.listen(0, '127.0.0.1');
  await once(outer, 'listening');
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    outer.close();
    await once(outer, 'close');
  });
  const { port } = outer.address() as AddressInfo;
  return { port, counts };
}

const answer = (_: http.IncomingMessage, response: http.ServerResponse) => response.end('ok');
const answerStream = (stream: http2.ServerHttp2Stream): void => {
  stream.respond({ ':status': 200 }, { endStream: true });
};

suite('bytes at the beginning of a connection', () => {
  const body = () => ({ method: 'POST', body: Readable.from(['a']) });
  const requests: readonly (() => Partial<OutboundRequest>)[] = [
    () => ({}),
    body,
    () => ({ ...body(), trailers: () => ['x-a', '1'] }),
  ];
  for (const [name, isTls, isHttp2, server] of [
    ['HTTP/1.1', false, false, () => http.createServer(answer)],
    ['HTTP/1.1 over TLS', true, false, () => https.createServer(certificate, answer)],
    ['h2c', false, true, () => http2.createServer().on('stream', answerStream)],
    [
      'HTTP/2 over TLS',
      true,
      true,
      () => http2.createSecureServer(certificate).on('stream', answerStream),
    ],
  ] as const) {
    test(`come before ${name}, once for each request`, async (t) => {
      const { port, counts } = await source(t, server());
      const dialler = testDialler(t, { isHttp2, ca: [certificate.cert] });
      const origin = `${isTls ? 'https' : 'http'}://localhost:${port}`;
      for (const request of requests) {
        const reply = await dialler.send(outbound(origin, { preamble, ...request() }));
        assert.equal(reply.status, 200);
        const content = reply.content();
        if (content instanceof Readable) await content.toArray();
      }
      assert.equal(counts.connections, requests.length);
    });
  }
});
