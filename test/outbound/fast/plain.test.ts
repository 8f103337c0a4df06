import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import tls, { type TLSSocket } from 'node:tls';
import fc from 'fast-check';
import { Failure } from '../../../src/model/failure.ts';
import { outboundUnreadBytesMax } from '../../../src/outbound/limits.ts';
import { createAgents } from '../../../src/outbound/agents.ts';
import { guardedConnector } from '../../../src/outbound/connector.ts';
import { OutboundExchange, type SourceResponse } from '../../../src/outbound/exchange.ts';
import { withTimeOut } from '../../time-outs.ts';
import { httpSource, loopback, outbound, rawSource, selfSigned, testDialler } from '../sources.ts';

async function contentOf(answer: SourceResponse): Promise<string> {
  const content = answer.content();
  return Buffer.isBuffer(content)
    ? content.toString('latin1')
    : text(content.setEncoding('latin1'));
}

/** A way to the addresses that the tests may dial, but to no name. */
function guarded(): ReturnType<typeof guardedConnector> {
  return guardedConnector({
    allowPrivate: loopback,
    connectTimeoutMs: 20_000,
    ca: undefined,
    lookup: () => Promise.reject(new Error('nothing is to be looked up')),
    localAddress: undefined,
  });
}

const hello = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';

/**
 * A source that answers in some pieces, each in a turn of its own, an empty one being the end of its
 * connection, and knows who asked it.
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

suite('a connection to a source', () => {
  const chunks = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
  const plain: Readonly<Record<string, readonly string[]>> = {
    'in one piece': [hello],
    'in chunks that come at once': [chunks],
    'in chunks that come one by one': [
      chunks.slice(0, -10),
      chunks.slice(-10, -3),
      chunks.slice(-3),
    ],
    'with chunk extensions': [chunks.replace('5\r\n', '5;a=b\r\n')],
    'with trailers': [chunks.replace(/\r\n$/, 'X: y\r\n\r\n')],
    'whose content comes behind its head': [hello.slice(0, -5), 'he', 'llo'],
    'that has not changed': ['HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 5\r\n\r\n'],
    'without content': ['HTTP/1.1 204 No Content\r\n\r\n'],
    'that is an error': ['HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\nhello'],
  };
  for (const [what, pieces] of Object.entries(plain)) {
    test(`brings one answer after the other: ${what}`, async (t) => {
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

  const others: Readonly<Record<string, readonly string[]>> = {
    'that has a head in two pieces': [hello.slice(0, 20), hello.slice(20)],
    'that begins with one byte': ['H', hello.slice(1)],
    'behind another': [`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${hello}`],
    'behind one that says to go on': [`HTTP/1.1 100 Continue\r\n\r\n${hello}`],
    'in HTTP/1.0': [hello.replace('1.1', '1.0')],
    'whose end is that of its connection': [
      'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello',
      '',
    ],
  };
  for (const [what, pieces] of Object.entries(others)) {
    test(`leaves to undici what is not plain, asked for once: ${what}`, async (t) => {
      let asked = 0;
      const { origin } = await inPieces(t, () => {
        asked += 1;
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
        assert.deepEqual([asked, begun], [count, 1]);
      }
    });
  }

  test('lets through what comes ahead of an answer', async (t) => {
    const { origin } = await inPieces(t, () => [
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n',
      hello,
    ]);
    const dialler = testDialler(t);
    for (let count = 0; count < 3; count += 1) {
      const said: unknown[] = [];
      const interim = (...one: unknown[]): void => void said.push(one);
      assert.equal(await contentOf(await dialler.send(outbound(origin, { interim }))), 'hello');
      assert.deepEqual(said, [[103, ['Link', '</a>']]]);
    }
  });

  test('whose answer has no end but its own', async (t) => {
    const { origin } = await rawSource(t, 'HTTP/1.1 200 OK\r\n\r\nhello');
    const dialler = testDialler(t);
    for (let count = 0; count < 3; count += 1) {
      assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    }
  });

  const broken: Readonly<Record<string, string>> = {
    'that is no HTTP': 'SSH-2.0-OpenSSH\r\n\r\n',
    'with two lengths': hello.replace('\r\n\r\n', '\r\nContent-Length: 6\r\n\r\n'),
    'with a blank before a colon': hello.replace('Length:', 'Length :'),
    'with a size of a chunk that is none': chunks.replace('5\r\n', 'x\r\n'),
    'that breaks off its chunks': chunks.replace('\r\n0\r\n', '\r\n5\r\n'),
  };
  for (const [what, bytes] of Object.entries(broken)) {
    test(`brings nothing of an answer ${what}`, async (t) => {
      const { origin } = await inPieces(t, () => [bytes, '']);
      const dialler = testDialler(t);
      for (let count = 0; count < 3; count += 1) {
        const outcome = dialler.send(outbound(origin)).then(contentOf);
        await assert.rejects(outcome, (error) => error instanceof Failure);
      }
    });
  }

  test('is not used again where more comes than its answer', async (t) => {
    const { origin, connections } = await inPieces(t, () => [`${hello}HTTP/1.1 200 OK\r\n`]);
    const dialler = testDialler(t);
    for (let count = 1; count <= 3; count += 1) {
      assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
      assert.equal(connections.length, count);
    }
  });

  test('is not used again where its answer is said to be the last', async (t) => {
    const last = hello.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
    // As by a server that counts what it answers over one, and closes it in a while.
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

  test('is closed where something comes that nobody has asked for', async (t) => {
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

  test('does not bring what came before it was asked as the answer', async (t) => {
    const { origin, connections } = await inPieces(t, () => [hello]);
    const dialler = testDialler(t);
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    // From there on, what has come is read before anything is sent.
    const { promise, resolve } = Promise.withResolvers<SourceResponse>();
    setImmediate(() => {
      connections[0]?.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n');
      resolve(dialler.send(outbound(origin)));
    });
    const { status } = await promise;
    assert.deepEqual([status, connections.length], [200, 2]);
  });

  test('is not kept as long as its source would, and not at all where that is too short', async (t) => {
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

  test('ends when its answer is given up in the middle', async (t) => {
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

  test('is not begun for who has gone before it was there, and serves the next', async (t) => {
    const { origin, connections } = await inPieces(t, () => [hello]);
    const dialler = testDialler(t);
    const controller = new AbortController();
    const given = dialler.send(outbound(origin, { controller }));
    controller.abort();
    await assert.rejects(given, (error) => error instanceof Failure);
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    assert.equal(connections.length, 1);
  });

  test('waits for a reader of long content, and brings all of it', async (t) => {
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
      // What the sockets and the stream hold is far less than what is to come.
      assert.equal(sent?.writableFinished, false);
      let received = 0;
      for await (const chunk of content) received += (chunk as Buffer).length;
      assert.equal(received, length);
    }
    assert.equal(connections, 1);
  });

  test('may be as short of time as it likes while nobody reads', async (t) => {
    const { origin } = await inPieces(t, () => [
      `HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n${'x'.repeat(300_000)}`,
    ]);
    await withTimeOut([100, 500, 5_000], async (timeoutMs) => {
      const answer = await testDialler(t, { timeoutMs }).send(outbound(origin));
      // Longer than the time-out, which is about the source.
      await delay(timeoutMs + 300);
      assert.equal((await contentOf(answer)).length, 300_000);
    });
  });

  test('over TLS is read on after content whose end came to a reader who was late', async (t) => {
    const certificate = selfSigned('localhost');
    const [early, late] = [outboundUnreadBytesMax - 512, 1_024];
    let finish: (() => void) | undefined;
    const connections: TLSSocket[] = [];
    const server = tls.createServer(certificate, (socket) => {
      connections.push(socket);
      socket.on('error', () => undefined);
      // What is late comes in two records, and all at once: the second one after the word to stop.
      socket.setMaxSendFragment(512);
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${early + late}\r\n\r\n`);
        socket.write(Buffer.alloc(early, 'x'));
        finish = () => socket.write(Buffer.alloc(late, 'y'));
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
    const holds = async (length: number): Promise<void> => {
      while (content.readableLength < length) await turn();
    };
    await holds(early);
    finish?.();
    await holds(early + late);
    assert.equal((await text(content)).length, early + late);
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    assert.equal(connections.length, 1);
  });

  test('may be given up at the moment when it is left to undici', async (t) => {
    const { origin } = await inPieces(t, () => ['H']);
    const controller = new AbortController();
    const connect = guarded();
    const agents = createAgents({
      connect(options, callback) {
        connect(options, (...connected) => {
          callback(...connected);
          const [, socket] = connected;
          if (socket === null) return;
          const push = socket.push.bind(socket);
          socket.push = (chunk: Buffer | null) => {
            const wantsMore = push(chunk);
            controller.abort();
            return wantsMore;
          };
        });
      },
      timeoutMs: 1_000,
    });
    const exchange = new OutboundExchange({ signal: controller.signal });
    const options = { origin, path: '/', method: 'GET' as const, headers: [], body: null };
    agents.dispatch(options, exchange, 'pooled');
    await assert.rejects(exchange.answer, (error) => error instanceof Failure);
    await agents.close();
  });
});

suite('a dialler that ends', () => {
  test('lets content that is under way come to its end', async (t) => {
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

  test('breaks it off where it is cut', async (t) => {
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

  test('closes what is idle', async (t) => {
    const { origin, connections } = await inPieces(t, () => [hello]);
    const dialler = testDialler(t);
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    const [connection] = connections;
    assert.ok(connection);
    await Promise.all([dialler.close(), once(connection, 'close')]);
  });
});

suite('what a plain connection makes of an answer', () => {
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
    // undici takes a blank behind a length, which may be there (RFC 9112 §5), for a part of it.
    .filter((bytes) => !/^content-length:.*[0-9][ \t]+\r$/im.test(bytes));

  test('is what undici makes of it, however it comes', async (t) => {
    const agents = createAgents({
      connect: guarded(),
      timeoutMs: 20_000,
    });
    t.after(() => agents.close());
    const outcome = async (origin: string, how: 'pooled' | 'alone'): Promise<unknown> => {
      const exchange = new OutboundExchange({ signal: new AbortController().signal });
      const options = { origin, path: '/', method: 'GET' as const, headers: [], body: null };
      agents.dispatch(options, exchange, how);
      try {
        const got = await exchange.answer;
        return [got.status, got.fields, await contentOf(got), got.trailers()];
      } catch {
        return undefined;
      }
    };
    await fc.assert(
      fc.asyncProperty(answer, fc.nat(), async (bytes, cut) => {
        const end = cut % (2 * bytes.length + 2);
        const pieces = [bytes.slice(0, end), bytes.slice(end)].filter((piece) => piece !== '');
        // What has no other end comes to its end so.
        const { origin } = await inPieces(t, () => [...pieces, '']);
        const [made, byUndici] = [await outcome(origin, 'pooled'), await outcome(origin, 'alone')];
        assert.deepEqual(made, byUndici, JSON.stringify(pieces));
      }),
      { numRuns: 100 },
    );
  });
});
