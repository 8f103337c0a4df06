import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type TestContext, suite, test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { statusFor } from '../../../../src/core/http/reply.ts';
import { passContentOn, readBody } from '../../../../src/core/pipeline/body.ts';
import { contentFailure } from '../../../../src/core/pipeline/failures.ts';
import { Connections } from '../../../../src/core/server/h1/connections.ts';
import type { Http1Exchange } from '../../../../src/core/server/h1/http1-exchange.ts';
import { writeAndClose } from '../../../../src/core/server/h1/refusal.ts';
import { type Timeouts, timeouts } from '../../../../src/core/server/h1/timeouts.ts';
import {
  type Listener,
  createHttpServer,
  createHttpsServer,
} from '../../../../src/core/server/listening/listener.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import type { LimitName } from '../../../../src/core/values/limit.ts';
import { withTimeout } from '../../../timeouts.ts';
import { AnswerReader } from '../../pipeline/answers.ts';
import { openSocket, readToClose } from '../../pipeline/raw-client.ts';

interface Given {
  readonly answerBytes?: number;
  /** Connections. */
  readonly max?: number;
  readonly readsContent?: boolean;
  /** Whether the content counts as that of another server. */
  readonly passesOn?: boolean;
}

/** A server with short timeouts, and responses of a length. */
async function startServer(
  t: TestContext,
  {
    answerBytes = 2,
    max = 100,
    readsContent = true,
    passesOn = false,
    ...less
  }: Partial<Timeouts> & Given,
) {
  const { connections, passed, refused } = watchedConnections(max);
  const send = (exchange: Http1Exchange, status: number, bytes: Buffer): unknown =>
    exchange.respond({ status, fields: [], body: { kind: 'bytes', bytes }, source: 'none' });
  const answer = (exchange: Http1Exchange): void => {
    const { body } = exchange;
    if (passesOn && body !== undefined) passContentOn(body);
    const content = readsContent ? readBody({ body, fields: {} }, 1 << 20) : Promise.resolve();
    content.then(
      () => send(exchange, 200, Buffer.alloc(answerBytes)),
      (failure: unknown) => {
        assert.ok(failure instanceof Failure);
        send(exchange, statusFor(failure), Buffer.from(failure.limit ?? ''));
      },
    );
  };
  const waits = { ...timeouts, ...less };
  const server = createHttpServer(connections, { ...noSwitch, answer }, { waits });
  return { port: await listenOn(t, server, connections), passed, refused };
}

const noSwitch = {
  switches: () => false,
  upgrade: () => assert.fail('nothing is switched here'),
};

/** A server that answers 404. */
async function startMissing(t: TestContext, { headersMs }: Pick<Timeouts, 'headersMs'>) {
  const checkMs = 50;
  const { connections, passed, refused } = watchedConnections(100);
  const answer = (exchange: Http1Exchange): void => {
    void exchange.respond(contentFailure(new Failure('not_found', ''), 'id', undefined));
  };
  const waits = { ...timeouts, headersMs, keepAliveMs: 200, checkMs };
  const server = createHttpServer(connections, { ...noSwitch, answer }, { waits });
  return { port: await listenOn(t, server, connections), passed, refused, checkMs };
}

function watchedConnections(max: number) {
  const passed: LimitName[] = [];
  const refused: Failure[] = [];
  const connections = new Connections({
    max,
    perAddress: () => max,
    refuse: (socket, failure) => {
      refused.push(failure);
      writeAndClose(socket, contentFailure(failure, 'id', undefined), Date.now());
    },
    passed: (limit) => passed.push(limit),
    now: Date.now,
  });
  return { connections, passed, refused };
}

/** Lets a server listen during a test; resolves to its port. */
async function listenOn(
  t: TestContext,
  server: Listener,
  connections: Connections,
): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    connections.destroyAll();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const brief = { headersMs: 100, requestMs: 200, checkMs: 50 };
/**
 * Timeouts of content, in rising order: on a busy machine, even the head can take longer than the
 * first.
 */
const contentMs = [200, 2_000, 10_000];
const waitsFor = (requestMs: number) => ({ headersMs: requestMs / 2, requestMs, checkMs: 50 });
const host = 'Host: localhost\r\n';

suite('the server closes a connection after a timeout', () => {
  test('of the TLS handshake', async (t) => {
    const { connections, passed } = watchedConnections(100);
    const certificates = { handshakeContext: () => undefined, serve: () => undefined };
    const tls = { certificates, acme: undefined };
    const waits = { ...timeouts, handshakeMs: 100 };
    const server = createHttpsServer(
      connections,
      { ...noSwitch, answer: () => assert.fail() },
      tls,
      {
        waits,
      },
    );
    const socket = await openSocket(t, await listenOn(t, server, connections));
    // The header of a TLS record, without the handshake message in it.
    socket.write(Buffer.from([22, 3, 1, 2, 0]));
    assert.equal(await readToClose(socket), '');
    assert.deepEqual(passed, ['handshake_time']);
  });

  test('of a request head, however slowly it drips in', async (t) => {
    const { port, refused } = await startServer(t, brief);
    for (const start of ['', 'GET /', `GET / HTTP/1.1\r\n${host}X: `]) {
      const socket = await openSocket(t, port);
      const answer = readToClose(socket);
      socket.write(start);
      const drip = setInterval(() => socket.write(start === '' ? '' : 'y'), 10);
      assert.match(await answer, /^HTTP\/1\.1 408 /);
      clearInterval(drip);
    }
    assert.deepEqual(new Set(refused.map(({ limit }) => limit)), new Set(['header_time']));
  });

  test('of an unfinished unknown method behind another request', async (t) => {
    await withTimeout(contentMs, async (headersMs) => {
      const { port, refused } = await startServer(t, { headersMs });
      const socket = await openSocket(t, port);
      const answers = readToClose(socket);
      socket.write(`GET / HTTP/1.1\r\n${host}\r\n`);
      await once(socket, 'data');
      socket.write('F');
      assert.match(await answers, /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 408 /);
      assert.deepEqual(
        refused.map(({ limit }) => limit),
        ['header_time'],
      );
    });
  });

  test('of the content of a request, however slowly it drips in', async (t) => {
    await withTimeout(contentMs, async (requestMs) => {
      const { port } = await startServer(t, waitsFor(requestMs));
      const socket = await openSocket(t, port);
      const answer = readToClose(socket);
      socket.write(`POST / HTTP/1.1\r\n${host}Content-Length: 1000000\r\n\r\n`);
      const drip = setInterval(() => socket.write('y'), 10);
      const text = await answer;
      clearInterval(drip);
      assert.match(text, /^HTTP\/1\.1 408 [^]*\r\nConnection: close\r\n[^]*request_time/);
    });
  });

  test('of a pause in content that goes to another server, which may take longer', async (t) => {
    await withTimeout(contentMs, async (requestMs) => {
      const { port } = await startServer(t, { ...waitsFor(requestMs), passesOn: true });
      const socket = await openSocket(t, port);
      const answer = readToClose(socket);
      const head = `POST / HTTP/1.1\r\n${host}Content-Length: 1000\r\n\r\n`;
      socket.write(head);
      const started = performance.now();
      // Each piece comes in time, all of them take twice as long.
      while (performance.now() - started < 2 * requestMs) {
        socket.write('y');
        await delay(requestMs / 10);
      }
      assert.ok(socket.writable);
      assert.match(await answer, /^HTTP\/1\.1 408 [^]*request_time/);
      assert.ok(performance.now() - started > 2 * requestMs);
    });
  });

  test('of content whose response has been sent already', async (t) => {
    await withTimeout(contentMs, async (requestMs) => {
      const given = { ...waitsFor(requestMs), readsContent: false };
      const { port, passed } = await startServer(t, given);
      const socket = await openSocket(t, port);
      socket.write(`POST / HTTP/1.1\r\n${host}Content-Length: 100\r\n\r\nx`);
      assert.match(await readToClose(socket), /^HTTP\/1\.1 200 /);
      assert.deepEqual(passed, ['request_time']);
    });
  });

  test('of reading a response', async (t) => {
    const { port, passed } = await startServer(t, { stalledMs: 100, answerBytes: 32 << 20 });
    const socket = await openSocket(t, port);
    socket.pause();
    socket.write(`GET / HTTP/1.1\r\n${host}\r\n`);
    while (passed.length === 0) await nextTurn();
    assert.deepEqual(passed, ['unread_answer']);
    const read = await readToClose(socket.resume());
    assert.ok(read.length < 32 << 20);
  });

  test('of content that arrives too slowly, also on the way to another server', async (t) => {
    const leastRate = { bytesPerSecond: 100_000, windowMs: 300 };
    for (const passesOn of [false, true]) {
      const { port } = await startServer(t, { leastRate, checkMs: 50, passesOn });
      const socket = await openSocket(t, port);
      const answer = readToClose(socket);
      socket.write(`POST / HTTP/1.1\r\n${host}Content-Length: 1000000\r\n\r\n`);
      const drip = setInterval(() => socket.write('y'), 10);
      assert.match(await answer, /^HTTP\/1\.1 408 [^]*slow_content/);
      clearInterval(drip);
    }
  });

  test('not of a stream to another server, which has no length', async (t) => {
    const leastRate = { bytesPerSecond: 100_000, windowMs: 100 };
    const { port } = await startServer(t, { leastRate, checkMs: 20, passesOn: true });
    const socket = await openSocket(t, port);
    const answer = once(socket, 'data');
    socket.write(`POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`);
    for (let piece = 0; piece < 20; piece += 1) {
      socket.write('1\r\ny\r\n');
      await delay(20);
    }
    socket.write('0\r\n\r\n');
    assert.match(String(await answer), /^HTTP\/1\.1 200 /);
  });

  test('of reading a response too slowly', async (t) => {
    const leastRate = { bytesPerSecond: 1 << 30, windowMs: 200 };
    const given = { leastRate, checkMs: 20, answerBytes: 256 << 20 };
    const { port, passed } = await startServer(t, given);
    const socket = await openSocket(t, port);
    socket.on('data', () => {
      socket.pause();
      setTimeout(() => socket.resume(), 20);
    });
    socket.write(`GET / HTTP/1.1\r\n${host}\r\n`);
    while (passed.length === 0) await nextTurn();
    assert.deepEqual(passed, ['slow_answer']);
  });

  test('of waiting for another request, without a line in the log', async (t) => {
    const { port, passed } = await startServer(t, { keepAliveMs: 100 });
    const socket = await openSocket(t, port);
    socket.write(`GET / HTTP/1.1\r\n${host}\r\n`);
    assert.match(await readToClose(socket), /^HTTP\/1\.1 200 [^]*\0\0$/);
    assert.deepEqual(passed, []);
  });

  test('of the first request head, and of waiting for the next', async (t) => {
    await withTimeout(contentMs, async (headersMs) => {
      const { port, passed, refused } = await startMissing(t, { headersMs });
      assert.match(await readToClose(await openSocket(t, port)), /^HTTP\/1\.1 408 /);
      assert.deepEqual(
        refused.map(({ limit }) => limit),
        ['header_time'],
      );
      const idle = await openSocket(t, port);
      idle.write(`GET / HTTP/1.1\r\n${host}\r\n`);
      assert.match(await readToClose(idle), /^HTTP\/1\.1 404 [^]*\r\n\r\n(?!HTTP)/);
      assert.deepEqual(passed, []);
    });
  });

  test('but not while requests arrive, even if the first one came late', async (t) => {
    await withTimeout(contentMs, async (headersMs) => {
      const { port, checkMs } = await startMissing(t, { headersMs });
      const socket = await openSocket(t, port);
      const answers = new AnswerReader(socket);
      await once(socket.setTimeout(2 * checkMs), 'timeout');
      const until = performance.now() + 2 * headersMs;
      while (performance.now() < until) {
        socket.write(`GET / HTTP/1.1\r\n${host}\r\n`);
        assert.match((await answers.next()).statusLine, / 404 /);
      }
    });
  });

  test('and refuses connections over its maximum', async (t) => {
    const { port, passed } = await startServer(t, { max: 2 });
    const sockets = [await openSocket(t, port), await openSocket(t, port)];
    assert.equal(await readToClose(await openSocket(t, port)), '');
    assert.deepEqual(passed, ['connections']);
    sockets[0]?.write(`GET / HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
    assert.match(await readToClose(sockets[0] ?? assert.fail()), /^HTTP\/1\.1 200 /);
  });
});
