import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type TestContext, suite, test } from 'node:test';
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import tls, { type TLSSocket } from 'node:tls';
import fc from 'fast-check';
import { trimOws } from '../../../../src/core/http/syntax.ts';
import {
  type SourceResponse,
  outboundUnreadBytesMax,
} from '../../../../src/core/outbound/exchange.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import { withTimeout } from '../../../timeouts.ts';
import { httpSource, outbound, rawSource, selfSigned, testDialler } from '../sources.ts';

async function contentOf(answer: SourceResponse): Promise<string> {
  const content = answer.content();
  return Buffer.isBuffer(content)
    ? content.toString('latin1')
    : text(content.setEncoding('latin1'));
}

const hello = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';

/**
 * A source that sends its responses in pieces, each in another turn of the event loop; an empty
 * piece ends the connection. Has the connections that requests came on.
 */
async function inPieces(
  t: TestContext,
  pieces: (request: number) => readonly string[],
): Promise<{ readonly origin: string; readonly connections: readonly Socket[] }> {
  const connections: Socket[] = [];
  const { origin } = await rawSource(t, (socket, request) => {
    if (!connections.includes(socket)) connections.push(socket);
    socket.setNoDelay(true);
    const write = ([piece, ...others]: readonly string[]): void => {
      if (piece === undefined) return;
      if (piece === '') socket.end();
      else
        socket.write(Buffer.from(piece, 'latin1'), () => {
          setImmediate(() => {
            setImmediate(write, others);
          });
        });
    };
    write(pieces(request));
  });
  return { origin, connections };
}

suite('a connection of HTTP/1.1', () => {
  const chunks = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
  const usual: Readonly<Record<string, readonly string[]>> = {
    'in one piece': [hello],
    'chunks that arrive together': [chunks],
    'chunks that arrive one by one': [
      chunks.slice(0, -10),
      chunks.slice(-10, -3),
      chunks.slice(-3),
    ],
    'chunk extensions': [chunks.replace('5\r\n', '5;a=b\r\n')],
    'trailer fields': [chunks.replace(/\r\n$/, 'X: y\r\n\r\n')],
    'content that arrives after the head': [hello.slice(0, -5), 'he', 'llo'],
    '304': ['HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 5\r\n\r\n'],
    '204': ['HTTP/1.1 204 No Content\r\n\r\n'],
    '500': ['HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\nhello'],
  };
  for (const [what, pieces] of Object.entries(usual)) {
    test(`carries one response after the other: ${what}`, async (t) => {
      const { origin, connections } = await inPieces(t, () => pieces);
      const dialler = testDialler(t);
      const isBare = /^HTTP\/1.1 (?:204|304)/.test(pieces.join(''));
      for (let count = 0; count < 9; count += 1) {
        const answer = await dialler.send(outbound(origin));
        assert.equal(await contentOf(answer), isBare ? '' : 'hello');
      }
      assert.equal(connections.length, 1);
    });
  }

  const unusual: Readonly<Record<string, readonly string[]>> = {
    'a head in two pieces': [hello.slice(0, 20), hello.slice(20)],
    'a head of which one byte arrives first': ['H', hello.slice(1)],
    'one after early hints': [`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${hello}`],
    'one after a 100': [`HTTP/1.1 100 Continue\r\n\r\n${hello}`],
    'one of HTTP/1.0': [hello.replace('1.1', '1.0')],
    'one that ends with its connection': ['HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello', ''],
  };
  for (const [what, pieces] of Object.entries(unusual)) {
    test(`gets an unusual response with one request: ${what}`, async (t) => {
      let requests = 0;
      const { origin } = await inPieces(t, () => {
        requests += 1;
        return pieces;
      });
      const dialler = testDialler(t);
      for (let count = 1; count <= 3; count += 1) {
        let begun = 0;
        const request = outbound(origin, {
          begun: () => {
            begun += 1;
          },
        });
        const answer = await dialler.send(request);
        assert.equal(answer.status, 200);
        assert.equal(await contentOf(answer), 'hello');
        assert.deepEqual([requests, begun], [count, 1]);
      }
    });
  }

  test('passes informational responses on', async (t) => {
    const { origin } = await inPieces(t, () => [
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n',
      hello,
    ]);
    const dialler = testDialler(t);
    for (let count = 0; count < 3; count += 1) {
      const said: unknown[] = [];
      const interim = (...one: unknown[]): void => void said.push(one);
      assert.equal(await contentOf(await dialler.send(outbound(origin, { interim }))), 'hello');
      assert.deepEqual(said, [[103, ['Link', '</a>'], '1.1']]);
    }
  });

  test('gets a response that ends with the connection', async (t) => {
    const { origin } = await rawSource(t, 'HTTP/1.1 200 OK\r\n\r\nhello');
    const dialler = testDialler(t);
    for (let count = 0; count < 3; count += 1) {
      assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    }
  });

  const broken: Readonly<Record<string, string>> = {
    'another protocol': 'SSH-2.0-OpenSSH\r\n\r\n',
    'two lengths': hello.replace('\r\n\r\n', '\r\nContent-Length: 6\r\n\r\n'),
    'a space before a colon': hello.replace('Length:', 'Length :'),
    'an invalid chunk size': chunks.replace('5\r\n', 'x\r\n'),
    'chunks that break off': chunks.replace('\r\n0\r\n', '\r\n5\r\n'),
  };
  for (const [what, bytes] of Object.entries(broken)) {
    test(`fails for an invalid response: ${what}`, async (t) => {
      const { origin } = await inPieces(t, () => [bytes, '']);
      const dialler = testDialler(t);
      for (let count = 0; count < 3; count += 1) {
        const outcome = dialler.send(outbound(origin)).then(contentOf);
        await assert.rejects(outcome, (error) => error instanceof Failure);
      }
    });
  }

  test('times out if the header section arrives byte by byte without end', async (t) => {
    const { origin } = await rawSource(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nX: ');
      const dripping = setInterval(() => socket.write('x'), 10);
      socket.once('close', () => {
        clearInterval(dripping);
      });
    });
    const given = testDialler(t, { timeoutMs: 200 }).send(outbound(origin));
    await assert.rejects(given, { code: 'gateway_timeout' });
  });

  test('is not reused after bytes that follow a response', async (t) => {
    const { origin, connections } = await inPieces(t, () => [`${hello}HTTP/1.1 200 OK\r\n`]);
    const dialler = testDialler(t);
    for (let count = 1; count <= 3; count += 1) {
      assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
      assert.equal(connections.length, count);
    }
  });

  test('is not reused after Connection: close', async (t) => {
    const last = hello.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
    // As a server does that limits the requests of a connection.
    const { origin, connections } = await inPieces(t, (request) => [
      request % 3 === 0 ? last : hello,
    ]);
    const dialler = testDialler(t);
    for (let count = 0; count < 9; count += 1) {
      assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
      assert.equal(connections.length, 1 + Math.floor(count / 3));
    }
    for (const connection of connections) {
      if (!connection.destroyed) await once(connection, 'close');
    }
  });

  test('is closed by bytes that arrive without a request', async (t) => {
    const { origin, connections } = await inPieces(t, () => [hello]);
    const dialler = testDialler(t);
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    const [connection] = connections;
    assert.ok(connection);
    const closed = once(connection, 'close');
    connection.write(hello);
    await closed;
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    assert.equal(connections.length, 2);
  });

  test('does not take bytes for the response that arrived before the request was sent', async (t) => {
    const { origin, connections } = await inPieces(t, () => [hello]);
    const dialler = testDialler(t);
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    // After this turn, the event loop reads what has arrived before it sends anything.
    const { promise, resolve } = Promise.withResolvers<SourceResponse>();
    setImmediate(() => {
      connections[0]?.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n');
      resolve(dialler.send(outbound(origin)));
    });
    const { status } = await promise;
    assert.deepEqual([status, connections.length], [200, 2]);
  });

  test('is closed before the Keep-Alive timeout of the source, and at once if that is short', async (t) => {
    const kept = (seconds: number): string =>
      hello.replace('\r\n\r\n', `\r\nKeep-Alive: timeout=${seconds}\r\n\r\n`);
    const { origin, connections } = await inPieces(t, (request) => [kept(request < 3 ? 3 : 2)]);
    const dialler = testDialler(t);
    for (let count = 1; count <= 2; count += 1) {
      assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    }
    assert.equal(connections.length, 1);
    const [first] = connections;
    if (first?.destroyed === false) await once(first, 'close');
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    const second = connections[1];
    assert.ok(second);
    if (!second.destroyed) await once(second, 'close');
  });

  test('ends when the content is destroyed before its end', async (t) => {
    const { origin, connections } = await inPieces(t, () => [hello.slice(0, -2)]);
    const dialler = testDialler(t);
    const answer = await dialler.send(outbound(origin));
    const content = answer.content();
    assert.ok(content instanceof Readable);
    const [connection] = connections;
    assert.ok(connection);
    const closed = once(connection, 'close');
    content.destroy();
    await closed;
  });

  test('sends nothing if the client left before it was open, and carries the next request', async (t) => {
    const { origin, connections } = await inPieces(t, () => [hello]);
    const dialler = testDialler(t);
    const controller = new AbortController();
    const given = dialler.send(outbound(origin, { controller }));
    controller.abort();
    await assert.rejects(given, (error) => error instanceof Failure);
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    assert.equal(connections.length, 1);
  });

  test('waits for the reader of long content, and delivers all of it', async (t) => {
    const length = 32 * 1024 * 1024;
    let sent: ServerResponse | undefined;
    const { origin, server } = await httpSource(t, (_, response) => {
      sent = response.setHeader('Content-Length', length).end(Buffer.alloc(length, 'x'));
    });
    let connections = 0;
    server.on('connection', () => (connections += 1));
    const dialler = testDialler(t);
    for (let count = 0; count < 2; count += 1) {
      const content = (await dialler.send(outbound(origin))).content();
      assert.ok(content instanceof Readable);
      await once(content, 'readable');
      // The sockets and the stream hold far less than the content.
      assert.equal(sent?.writableFinished, false);
      let received = 0;
      for await (const chunk of content) received += (chunk as Buffer).length;
      assert.equal(received, length);
    }
    assert.equal(connections, 1);
  });

  test('does not time out while the content waits for its reader', async (t) => {
    const { origin } = await inPieces(t, () => [
      `HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n${'x'.repeat(300_000)}`,
    ]);
    await withTimeout([100, 500, 5_000], async (timeoutMs) => {
      const answer = await testDialler(t, { timeoutMs }).send(outbound(origin));
      // Longer than the timeout, which applies to the source alone.
      await delay(timeoutMs + 300);
      assert.equal((await contentOf(answer)).length, 300_000);
    });
  });

  test('over TLS continues after content whose end arrived during a pause', async (t) => {
    const certificate = selfSigned('localhost');
    const [early, late] = [outboundUnreadBytesMax - 512, 1_024];
    let sendLate: (() => Promise<void>) | undefined;
    const connections: TLSSocket[] = [];
    const server = tls.createServer(certificate, (socket) => {
      connections.push(socket);
      socket.on('error', () => undefined);
      // The late bytes arrive in two TLS records at once: the second one after the pause.
      socket.setMaxSendFragment(512);
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${early + late}\r\n\r\n`);
        socket.write(Buffer.alloc(early, 'x'));
        sendLate = () =>
          new Promise((resolve) => {
            socket.write(Buffer.alloc(late, 'y'), () => {
              resolve();
            });
          });
        socket.once('data', () => socket.write(hello));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
      for (const connection of connections) connection.destroy();
      server.close();
    });
    const origin = `https://localhost:${(server.address() as AddressInfo).port}`;
    const lookup = () => Promise.resolve([{ address: '127.0.0.1', family: 4 as const }]);
    const dialler = testDialler(t, { ca: [certificate.cert], lookup });
    const content = (await dialler.send(outbound(origin))).content();
    assert.ok(content instanceof Readable);
    while (content.readableLength < early) await turn();
    await sendLate?.();
    assert.equal((await text(content)).length, early + late);
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    assert.equal(connections.length, 1);
  });
});

suite('a dialler that closes', () => {
  test('lets content in progress end', async (t) => {
    let finish: (() => void) | undefined;
    const { origin } = await rawSource(t, (socket) => {
      socket.write(hello.slice(0, -2));
      finish = () => socket.write('lo');
    });
    const dialler = testDialler(t);
    const answer = await dialler.send(outbound(origin));
    const closed = dialler.close();
    finish?.();
    assert.equal(await contentOf(answer), 'hello');
    await closed;
  });

  test('breaks content off when it is cut', async (t) => {
    const { origin } = await rawSource(t, (socket) => {
      socket.write(hello.slice(0, -2));
    });
    const dialler = testDialler(t);
    const answer = await dialler.send(outbound(origin));
    const content = contentOf(answer);
    dialler.cut();
    await assert.rejects(content, (error) => error instanceof Failure);
    await dialler.close();
  });

  test('closes idle connections', async (t) => {
    const { origin, connections } = await inPieces(t, () => [hello]);
    const dialler = testDialler(t);
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    const [connection] = connections;
    assert.ok(connection);
    await Promise.all([dialler.close(), once(connection, 'close')]);
  });
});

suite('the client and that of Node', () => {
  const answers = [
    hello,
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n',
    'HTTP/1.1 200 OK\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n',
    'HTTP/1.1 404 Not Found\r\nServer: x\r\nKeep-Alive: timeout=5\r\nContent-Length: 3\r\n\r\nabc',
    'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nConnection: keep-alive\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx',
    'HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello',
  ];
  const bits = ['', '\r', '\n', '\r\n', ' ', ':', ';', ',', '0', '5', '-', 'x', '\0', '\xe9'];
  const change = fc.record({
    at: fc.nat(),
    skip: fc.nat({ max: 2 }),
    put: fc.constantFrom(...bits),
  });
  const answer = fc
    .tuple(fc.constantFrom(...answers), fc.array(change, { maxLength: 3 }))
    .map(([bytes, changes]) =>
      changes.reduce((changed, { at, skip, put }) => {
        const start = at % (changed.length + 1);
        return changed.slice(0, start) + put + changed.slice(start + skip);
      }, bytes),
    )
    // llhttp also reads these versions, and empty lines before a status line.
    .filter((bytes) => !/^HTTP\/(?:0\.9|2\.0)|^\r\n/m.test(bytes))
    // It reads no line that ends with LF alone.
    .filter((bytes) => !/(?<!\r)\n/.test(bytes));

  test('read the same from a response, valid or not, in any fragmentation', async (t) => {
    const dialler = testDialler(t);
    const own = async (origin: string): Promise<unknown> => {
      try {
        const got = await dialler.send(outbound(origin));
        return [got.status, got.fields, await contentOf(got), got.trailers()];
      } catch {
        return undefined;
      }
    };
    const nodes = async (origin: string): Promise<unknown> => {
      const sent = http.get(origin, { agent: false });
      try {
        const [message] = (await once(sent, 'response')) as [http.IncomingMessage];
        const content = await text(message.setEncoding('latin1'));
        const [fields, trailers] = [message.rawHeaders, message.rawTrailers].map((all) =>
          all.map((one) => trimOws(one)),
        );
        return [message.statusCode, withPlainLength(fields ?? []), content, trailers];
      } catch {
        return undefined;
      } finally {
        sent.destroy();
      }
    };
    await fc.assert(
      fc.asyncProperty(answer, fc.nat(), async (bytes, cut) => {
        const end = cut % (2 * bytes.length + 2);
        const pieces = [bytes.slice(0, end), bytes.slice(end)].filter((piece) => piece !== '');
        // Some responses end with the connection.
        const { origin } = await inPieces(t, () => [...pieces, '']);
        assert.deepEqual(await own(origin), await nodes(origin), JSON.stringify(pieces));
      }),
      { numRuns: 100 },
    );
  });
});

/** Fields with their Content-Length as a plain number, as the client reads it. */
function withPlainLength(fields: readonly string[]): readonly string[] {
  return fields.map((value, at) => {
    const isLength = at % 2 === 1 && fields[at - 1]?.toLowerCase() === 'content-length';
    return isLength ? String(Number(value)) : value;
  });
}
