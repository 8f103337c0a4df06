import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { type Duplex, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type TestContext, suite, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import tls from 'node:tls';
import type { Dialler, OutboundRequest } from '../../../../src/core/outbound/dialler.ts';
import type { SourceResponse } from '../../../../src/core/outbound/exchange.ts';
import { outboundConnectionsMax } from '../../../../src/core/outbound/h1/http1-client.ts';
import { type UnixSocket, everySocket } from '../../../../src/core/values/network/unix-socket.ts';
import { temporaryFolder } from '../../../folder.ts';
import { httpSource, loopback, outbound, rawSource, selfSigned, testDialler } from '../sources.ts';

async function contentOf(answer: SourceResponse): Promise<string> {
  const content = answer.content();
  return Buffer.isBuffer(content) ? content.toString() : text(content);
}

/** A source that answers with what it got: method, framing, content and trailer fields. */
async function echoing(t: TestContext): Promise<string> {
  const { origin } = await httpSource(t, (request, response) => {
    void described(request).then((line) => response.end(line));
  });
  return origin;
}

async function described(request: IncomingMessage): Promise<string> {
  const { method = '', headers } = request;
  const framing = headers['transfer-encoding'] ?? headers['content-length'] ?? 'none';
  const content = await text(request);
  return [method, framing, content, ...request.rawTrailers].join(' ');
}

suite('a request in HTTP/1.1', () => {
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'DELETE', 'POST', 'PUT', 'SEARCH', 'PURGE']) {
    test(`has content with any method, over a used connection too: ${method}`, async (t) => {
      const origin = await echoing(t);
      const dialler = testDialler(t);
      for (let count = 0; count < 3; count += 1) {
        for (const fields of [['content-length', '7'], []]) {
          const body = Readable.from(['cont', 'ent']);
          const answer = await dialler.send(outbound(origin, { method, body, fields }));
          const framing = fields[1] ?? 'chunked';
          const expected = method === 'HEAD' ? '' : `${method} ${framing} content`;
          assert.equal(await contentOf(answer), expected);
        }
      }
    });
  }

  test('has trailer fields, with its content over a used connection', async (t) => {
    const origin = await echoing(t);
    const dialler = testDialler(t);
    for (let count = 0; count < 3; count += 1) {
      const trailers = () => ['X-Sum', '1', 'x-sum', ''];
      const body = Readable.from(['content']);
      const answer = await dialler.send(outbound(origin, { method: 'PUT', body, trailers }));
      assert.equal(await contentOf(answer), 'PUT chunked content X-Sum 1 x-sum ');
    }
  });

  test('with a trailer field that HTTP cannot carry fails', async (t) => {
    const origin = await echoing(t);
    const trailers = () => ['x', 'a\r\nb: c'];
    const body = Readable.from(['content']);
    const sent = testDialler(t).send(outbound(origin, { method: 'PUT', body, trailers }));
    await assert.rejects(sent, { code: 'invalid' });
  });

  test('sends content while its answer arrives', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      response.flushHeaders();
      request.pipe(response);
    });
    const body = new Readable({ read: () => undefined });
    const answer = await testDialler(t).send(outbound(origin, { method: 'POST', body }));
    const content = answer.content();
    assert.ok(content instanceof Readable);
    for (const piece of ['one', 'two']) {
      body.push(piece);
      const [chunk] = (await once(content, 'data')) as [Buffer];
      assert.equal(chunk.toString(), piece);
    }
    body.push(null);
    await once(content, 'end');
  });

  test('does not end with a piece that is empty', async (t) => {
    const origin = await echoing(t);
    const dialler = testDialler(t);
    for (let count = 0; count < 3; count += 1) {
      const body = Readable.from([Buffer.from('cont'), Buffer.alloc(0), Buffer.from('ent')]);
      const answer = await dialler.send(outbound(origin, { method: 'POST', body }));
      assert.equal(await contentOf(answer), 'POST chunked content');
    }
  });

  const endings: Readonly<Record<string, (body: Readable) => void>> = {
    'breaks off': (body) => body.destroy(new Error('reset')),
    'goes on': (body) => body.push('more'),
  };
  for (const [what, end] of Object.entries(endings)) {
    test(`leaves the next one alone if its content ${what} after its length`, async (t) => {
      const { promise: isOpen, resolve: opened } = Promise.withResolvers<ServerResponse>();
      const { origin } = await httpSource(t, (request, response) => {
        if (request.method === 'GET') opened(response);
        else void text(request).then((content) => response.end(content));
      });
      const dialler = testDialler(t);
      const body = new Readable({ read: () => undefined });
      body.push('12345');
      const fields = ['content-length', '5'];
      const first = await dialler.send(outbound(origin, { method: 'POST', body, fields }));
      assert.equal(await contentOf(first), '12345');
      const next = dialler.send(outbound(origin));
      const response = await isOpen;
      end(body);
      await turn();
      response.end('next');
      assert.equal(await contentOf(await next), 'next');
    });
  }

  test('waits for a free connection if there are too many', async (t) => {
    const open = new Set<Socket>();
    const { origin, server } = await httpSource(t, (_, response) => {
      setImmediate(() => response.end('hello'));
    });
    let most = 0;
    server.on('connection', (socket: Socket) => {
      open.add(socket.once('close', () => open.delete(socket)));
      most = Math.max(most, open.size);
    });
    const dialler = testDialler(t);
    const answers = await Promise.all(
      Array.from({ length: 1_100 }, async () => contentOf(await dialler.send(outbound(origin)))),
    );
    assert.ok(answers.every((answer) => answer === 'hello'));
    assert.ok(most <= 1_024, String(most));
  });

  test('is not sent if all of many clients have left before a connection was free', async (t) => {
    const responses: ServerResponse[] = [];
    const full = Promise.withResolvers<undefined>();
    const { origin } = await httpSource(t, (_, response) => {
      if (responses.push(response) === outboundConnectionsMax) full.resolve(undefined);
    });
    const dialler = testDialler(t);
    const send = async (controller: AbortController) =>
      contentOf(await dialler.send(outbound(origin, { controller })));
    const staying = new AbortController();
    const held = Array.from({ length: outboundConnectionsMax }, () => send(staying));
    await full.promise;
    const leaving = new AbortController();
    const left = Promise.allSettled(Array.from({ length: 5_000 }, () => send(leaving)));
    leaving.abort();
    await left;
    for (const response of responses) response.end('hello');
    assert.deepEqual(new Set(await Promise.all(held)), new Set(['hello']));
    assert.equal(responses.length, outboundConnectionsMax);
  });
});

suite('a source that ends its lines with LF alone', () => {
  const answers: Readonly<Record<string, string>> = {
    'with a length': 'HTTP/1.1 200 OK\nContent-Length: 5\n\nhello',
    'until its end': 'HTTP/1.0 200 OK\nContent-Type: text/plain\n\nhello',
    'after an informational one': 'HTTP/1.1 103 Early\nLink: </a>\n\nHTTP/1.1 200 OK\n\nhello',
  };
  for (const [what, bytes] of Object.entries(answers)) {
    for (const method of ['GET', 'POST']) {
      test(`is understood: ${what}, ${method}`, async (t) => {
        const { origin } = await rawSource(t, bytes);
        const body = method === 'POST' ? Readable.from(['x']) : undefined;
        const answer = await testDialler(t).send(outbound(origin, { method, body }));
        assert.deepEqual([answer.status, await contentOf(answer)], [200, 'hello']);
      });
    }
  }
});

/** A server that switches to a protocol and then repeats what it gets, after a first message. */
function switching(server: http.Server): http.Server {
  return server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    void text(request).then((content) => {
      const { upgrade, connection } = request.headers;
      const said = [request.method, connection, upgrade, content].join(' ');
      socket.write(`HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: x/1\r\n\r\n${said}|`);
      if (head.length > 0) socket.unshift(head);
      socket.pipe(socket);
    });
  });
}

async function exchanged(dialler: Dialler, request: OutboundRequest): Promise<string> {
  const { status, fields, connection } = await dialler.send(request);
  assert.equal(status, 101);
  assert.deepEqual(fields, ['Connection', 'Upgrade', 'Upgrade', 'x/1']);
  assert.ok(connection);
  // The other side ends after this one, and its last bytes arrive.
  connection.end('raw\0bytes');
  return text(connection);
}

suite('a request for another protocol', () => {
  const certificate = selfSigned('localhost');

  for (const isSecure of [false, true]) {
    for (const method of ['GET', 'POST']) {
      test(`gets the connection, ${method}${isSecure ? ' over TLS' : ''}`, async (t) => {
        const server = switching(http.createServer({ shouldUpgradeCallback: () => true }));
        const outer = isSecure
          ? tls.createServer(certificate, (socket) => server.emit('connection', socket))
          : server;
        await once(outer.listen(0, '127.0.0.1'), 'listening');
        t.after(() => outer.close());
        const { port } = outer.address() as AddressInfo;
        const lookup = () => Promise.resolve([{ address: '127.0.0.1', family: 4 as const }]);
        const dialler = testDialler(t, { lookup, ca: [certificate.cert] });
        const origin = `${isSecure ? 'https' : 'http'}://localhost:${port}`;
        const body = method === 'POST' ? Readable.from(['body']) : undefined;
        const got = await exchanged(dialler, outbound(origin, { method, body, upgrade: 'x/1' }));
        const content = method === 'POST' ? 'body' : '';
        assert.equal(got, `${method} upgrade x/1 ${content}|raw\0bytes`);
      });
    }
  }

  test('gets the connection once all of its content is sent', async (t) => {
    const { origin } = await rawSource(t, (socket, request) => {
      if (request > 1) return;
      socket.write('HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 101 Go\r\nUpgrade: x/1\r\n\r\n');
      socket.pipe(socket);
    });
    const { promise: isComing, resolve: interim } = Promise.withResolvers<unknown>();
    const body = new Readable({ read: () => undefined });
    const asked = { method: 'POST', body, upgrade: 'x/1', interim };
    let isGiven = false;
    const sent = testDialler(t).send(outbound(origin, asked));
    void sent.then(() => {
      isGiven = true;
    });
    await isComing;
    await turn();
    assert.equal(isGiven, false);
    body.push('content');
    body.push(null);
    const { connection } = await sent;
    assert.ok(connection);
    connection.end('raw');
    assert.equal(await text(connection), '7\r\ncontent\r\n0\r\n\r\nraw');
  });

  test('may be answered in HTTP', async (t) => {
    const { origin } = await httpSource(t, (_, response) => response.end('no'));
    const answer = await testDialler(t).send(outbound(origin, { upgrade: 'x/1' }));
    assert.deepEqual([answer.status, await contentOf(answer)], [200, 'no']);
  });

  test('is the only one that may be answered with 101', async (t) => {
    const { origin } = await rawSource(t, 'HTTP/1.1 101 Go\r\nUpgrade: x/1\r\n\r\n');
    await assert.rejects(testDialler(t).send(outbound(origin)), { code: 'bad_gateway' });
  });
});

/** The permission for one socket. */
function socketAt(socketPath: string): UnixSocket {
  return { text: `unix:${socketPath}`, socketPath };
}

suite('a source on a unix socket', () => {
  async function onSocket(t: TestContext): Promise<string> {
    const path = join(await temporaryFolder(t), 'app.sock');
    const server = http.createServer((request, response) => {
      void described(request).then((line) => response.end(`${request.headers.host} ${line}`));
    });
    switching(server).listen(path);
    await once(server, 'listening');
    t.after(() => {
      server.close();
      server.closeAllConnections();
    });
    return path;
  }

  test('gets requests and switches protocols, with the host localhost', async (t) => {
    const path = await onSocket(t);
    const dialler = testDialler(t, { allowPrivate: [socketAt(path)] });
    const origin = `unix:${path}`;
    for (const body of [undefined, 'content']) {
      const content = body === undefined ? undefined : Readable.from([body]);
      const answer = await dialler.send(outbound(origin, { method: 'POST', body: content }));
      const framing = body === undefined ? '0 ' : 'chunked content';
      assert.equal(await contentOf(answer), `localhost POST ${framing}`);
    }
    const got = await exchanged(dialler, outbound(origin, { upgrade: 'x/1' }));
    assert.equal(got, 'GET upgrade x/1 |raw\0bytes');
  });

  test('is refused where no one permits it', async (t) => {
    const path = await onSocket(t);
    for (const allowPrivate of [loopback, [], [socketAt(`${path}x`)]]) {
      const sent = testDialler(t, { allowPrivate }).send(outbound(`unix:${path}`));
      await assert.rejects(sent, { code: 'bad_gateway', message: /address is not allowed/ });
    }
  });

  test('that does not exist fails', async (t) => {
    const path = join(await temporaryFolder(t), 'none.sock');
    const sent = testDialler(t, { allowPrivate: [everySocket] }).send(outbound(`unix:${path}`));
    await assert.rejects(sent, { code: 'bad_gateway' });
  });
});
