import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, get } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { connect, createServer } from 'node:tls';
import { TurnWriteBatcher } from '../../../../src/core/outbound/h1/turn-write-batcher.ts';
import { readHead } from '../../../../src/core/http/reading/head.ts';
import { Http1Exchange } from '../../../../src/core/server/h1/http1-exchange.ts';
import { peerOf } from '../../../../src/core/server/listening/accept.ts';
import { tlsWriteBytes } from '../../../../src/core/server/h1/pieces.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import { createAuthority } from '../../../certificates.ts';
import { startTlsSite } from './tls-rig.ts';

const bytes = Buffer.alloc(8 << 20, '0123456789abcdef');
const fields = ['Content-Length', String(bytes.length)];

const ways: Readonly<Record<string, (exchange: Http1Exchange) => unknown>> = {
  'as it was found': (exchange) =>
    exchange.respond({ status: 200, fields, body: { kind: 'bytes', bytes }, source: 'stored' }),
  'as it was prepared': (exchange) => {
    const unused = {
      head: `HTTP/1.1 200 OK\r\nContent-Length: ${bytes.length}\r\n`,
      isDated: false,
      cache: undefined,
      isCurrent: undefined,
      admits: undefined,
    };
    const known = { status: 200, fields, content: bytes, bytes: bytes.length, source: 'stored' };
    exchange.respondPrepared({ ...known, ...unused }, Date.now());
  },
};

suite('a large page over TLS', () => {
  for (const [name, answer] of Object.entries(ways)) {
    test(`${name} is encrypted as its client reads it, and arrives whole`, async (t) => {
      const authority = await createAuthority();
      const server = createServer(await authority.issue(['localhost']));
      const sockets: Socket[] = [];
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      t.after(() => {
        for (const socket of sockets) socket.destroy();
        server.close();
      });
      const { port } = server.address() as AddressInfo;
      const client = connect({ port, ca: authority.cert, servername: 'localhost' });
      client.pause().write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
      const [socket] = (await once(server, 'secureConnection')) as [Socket];
      sockets.push(socket);
      const head = readHead('GET / HTTP/1.1\r\nConnection: close\r\n');
      assert.ok(!(head instanceof Failure));
      const closeWhenWritten = (): unknown => socket.end();
      const parts = { batcher: new TurnWriteBatcher(), now: Date.now, closeWhenWritten };
      answer(new Http1Exchange({ ...parts, socket, peer: peerOf(socket) }, head, undefined));
      assert.ok(socket.writableLength <= 2 * tlsWriteBytes, `${socket.writableLength} bytes wait`);
      const received = await buffer(client);
      assert.ok(received.subarray(received.indexOf('\r\n\r\n') + 4).equals(bytes));
    });
  }

  test('arrives whole each time, also on one connection', async (t) => {
    const content = bytes.toString('latin1', 0, 1 << 20);
    const site = await startTlsSite(t, { rules: [{ path: '/p', kind: 'content', content }] });
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: site.authority.cert });
    t.after(() => {
      agent.destroy();
    });
    for (let time = 0; time < 4; time += 1) {
      const url = { host: '127.0.0.1', port: site.tlsPort, path: '/p', servername: 'localhost' };
      const asked = get({ ...url, agent, headers: { host: `localhost:${site.tlsPort}` } });
      const [message] = (await once(asked, 'response')) as [IncomingMessage];
      assert.equal(message.headers['content-length'], String(content.length));
      assert.equal((await buffer(message)).toString('latin1'), content);
    }
  });
});
