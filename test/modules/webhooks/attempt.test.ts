import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { suite, test, type TestContext } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { httpSource, rawSource } from '../../core/outbound/sources.ts';
import { attempts, key } from './attempt-rig.ts';

interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

/** A receiver that stores its requests and responds with 200. */
async function receiver(t: TestContext) {
  const received: Received[] = [];
  const { origin, server } = await httpSource(t, (request, response) => {
    const { method, url, headers, rawHeaders } = request;
    void buffer(request).then((body) => {
      received.push({ method, url, headers, rawHeaders, body });
      response.end('thanks');
    });
  });
  return { origin, server, received };
}

suite('an attempt', () => {
  for (const method of ['POST', 'PUT', 'PATCH', 'GET', 'DELETE']) {
    test(`by ${method} sends exactly the bytes that it signs`, async (t) => {
      const { origin, received } = await receiver(t);
      const body = Buffer.from('{"data":{"café":"☕"}}');
      const tried = { method, path: '/a%20b/?c=%C3%A9&d', body };
      const { status, answer, problem } = await attempts(t)(origin, tried);
      assert.deepEqual(
        { status, answer, problem },
        { status: 200, answer: 'thanks', problem: undefined },
      );
      const [got] = received;
      assert.equal(got?.method, method);
      assert.equal(got.url, '/a%20b/?c=%C3%A9&d');
      assert.deepEqual(got.body, body);
      assert.equal(got.headers['content-type'], 'application/json');
      assert.equal(got.headers['content-length'], String(body.length));
      assert.equal(got.headers['user-agent'], 'Waymark/test');
      new Webhook(key.toString('base64')).verify(got.body, got.headers as Record<string, string>);
    });
  }

  test('sends the header fields of the hook, which override only User-Agent', async (t) => {
    const { origin, received } = await receiver(t);
    const forbidden = {
      'CONTENT-TYPE': 'text/plain',
      'Content-Length': '1',
      'Content-Encoding': 'gzip',
      host: 'elsewhere.example',
      'X-Service-Hmac': 'mine',
      'Webhook-Id': 'mine',
      'webhook-timestamp': '1',
      'webhook-signature': 'v1,mine',
      Connection: 'close',
      'Transfer-Encoding': 'chunked',
      Upgrade: 'websocket',
      Expect: '100-continue',
      TE: 'trailers',
      Trailer: 'x',
      'Keep-Alive': 'timeout=1',
      'a b': 'c',
      'x-line': 'a\r\nx-smuggled: b',
      'x-nul': '\0',
      'x-euro': '€',
    };
    const headers = { 'X-Shop': 'demo', Authorization: 'Bearer abc', 'User-Agent': 'Shop/1' };
    const { status } = await attempts(t)(origin, { headers: { ...forbidden, ...headers } });
    assert.equal(status, 200);
    const [got] = received;
    assert.deepEqual(
      got?.rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()),
      [
        ...['host', 'connection', 'content-type', 'x-shop', 'authorization', 'user-agent'],
        ...['webhook-id', 'webhook-timestamp', 'webhook-signature', 'x-service-hmac'],
        'content-length',
      ],
    );
    assert.equal(got.headers.host, new URL(origin).host);
    assert.equal(got.headers['x-shop'], 'demo');
    assert.equal(got.headers.authorization, 'Bearer abc');
    assert.equal(got.headers['user-agent'], 'Shop/1');
    assert.equal(got.headers.connection, 'keep-alive');
    new Webhook(key.toString('base64')).verify(got.body, got.headers as Record<string, string>);
  });

  test('returns the status and the Retry-After of the receiver', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      request.resume();
      const status = Number(request.url?.slice(1));
      response.writeHead(status, { 'Retry-After': '120' }).end(status === 204 ? '' : 'why');
    });
    const attempt = attempts(t);
    for (const status of [200, 204, 302, 404, 410, 413, 429, 503]) {
      const tried = await attempt(origin, { path: `/${status}` });
      assert.equal(tried.status, status);
      assert.equal(tried.retryAfterMs, status < 300 ? undefined : 120_000);
      assert.equal(tried.answer, status === 204 ? '' : 'why');
      assert.equal(tried.problem, undefined);
      assert.ok(tried.ms > 0);
    }
  });

  test('returns the first 4 KiB of the content as text, whatever its bytes', async (t) => {
    const contents = [
      [Buffer.from('☕'.repeat(4_000)), '☕'.repeat(1365)],
      [Buffer.from('caf\xe9 \0', 'latin1'), 'caf\ufffd \0'],
      [Buffer.alloc(0), ''],
    ] as const;
    const { origin } = await httpSource(t, (request, response) => {
      response.end(contents[Number(request.url?.slice(1))]?.[0]);
    });
    const attempt = attempts(t);
    for (const [at, [, expected]] of contents.entries()) {
      assert.equal((await attempt(origin, { path: `/${at}` })).answer, expected);
    }
  });

  test('does not follow a redirect', async (t) => {
    const { origin, received } = await receiver(t);
    const attempt = attempts(t);
    for (const location of [
      'http://169.254.169.254/latest/meta-data/',
      `${origin}/elsewhere`,
      'file:///etc/passwd',
    ]) {
      for (const status of [301, 302, 303, 307, 308]) {
        const { origin: from } = await httpSource(t, (request, response) => {
          request.resume();
          response.writeHead(status, { Location: location }).end();
        });
        assert.equal((await attempt(from)).status, status);
      }
    }
    assert.deepEqual(received, []);
  });

  const unusable: readonly (readonly [string, string])[] = [
    ['ftp://127.0.0.1', '/'],
    ['http://user:secret@127.0.0.1', '/'],
    ['not a URL', '/'],
    ['http://[::', '/'],
    ['http:\\\\127.0.0.1', '/'],
  ];
  for (const [origin, path] of unusable) {
    test(`to ${origin} is not made`, async (t) => {
      const { status, problem } = await attempts(t)(origin, { path });
      assert.equal(status, undefined);
      assert.equal(problem?.code, 'request');
    });
  }
});

suite('connections', () => {
  test('are reused', async (t) => {
    const { origin, server, received } = await receiver(t);
    let connections = 0;
    server.on('connection', () => (connections += 1));
    const attempt = attempts(t);
    for (let count = 0; count < 20; count += 1) await attempt(origin);
    assert.equal(received.length, 20);
    // A second one if the first was not free again in time.
    assert.ok(connections <= 2, `${connections} connections`);
  });

  test('do not mix up the responses of concurrent attempts', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      void buffer(request).then((body) => response.end(body));
    });
    const attempt = attempts(t);
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, at) =>
        attempt(origin, { body: Buffer.from(`{"at":${at}}`) }),
      ),
    );
    assert.deepEqual(
      answers.map(({ answer }) => answer),
      answers.map((_, at) => `{"at":${at}}`),
    );
  });

  const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';

  /** A receiver that responds to the first message of a connection and resets it at the second. */
  async function forgetful(t: TestContext, answers: (request: number) => boolean) {
    const seen = { requests: 0, resets: 0 };
    const used = new Set<Socket>();
    const { origin } = await rawSource(t, (socket, request) => {
      seen.requests = request;
      if (!used.has(socket) && answers(request)) socket.write(ok);
      else {
        seen.resets += 1;
        socket.resetAndDestroy();
      }
      used.add(socket);
    });
    return { origin, seen };
  }

  test('that were reused and have ended do not fail the attempt', async (t) => {
    const { origin, seen } = await forgetful(t, () => true);
    const attempt = attempts(t);
    for (let count = 0; count < 6; count += 1) {
      assert.equal((await attempt(origin)).status, 200);
      // By then, the connection is free again.
      await setImmediate();
    }
    assert.ok(seen.resets >= 2, `${seen.resets} resets`);
    assert.equal(seen.requests, 6 + seen.resets);
  });

  test('that are new and end fail the attempt, which is not repeated', async (t) => {
    let requests = 0;
    const { origin } = await rawSource(t, (socket, request) => {
      requests = request;
      socket.resetAndDestroy();
    });
    const { status, problem } = await attempts(t)(origin);
    assert.equal(status, undefined);
    assert.equal(problem?.code, 'broken');
    assert.equal(requests, 1);
  });

  test('that end again and again repeat a message only once', async (t) => {
    const { origin, seen } = await forgetful(t, (request) => request === 1);
    const attempt = attempts(t);
    await attempt(origin);
    await setImmediate();
    assert.equal((await attempt(origin)).problem?.code, 'broken');
    assert.equal(seen.requests, 3);
    await setImmediate();
    assert.equal((await attempt(origin)).problem?.code, 'broken');
    assert.equal(seen.requests, 4);
  });

  test('to a closed port fail the attempt', async (t) => {
    const { origin, server } = await httpSource(t, () => undefined);
    server.close();
    await once(server, 'close');
    const { status, problem } = await attempts(t)(origin);
    assert.equal(status, undefined);
    assert.equal(problem?.code, 'connect');
    assert.match(problem.message, /ECONNREFUSED/);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
});

suite('a receiver that answers before it has the message', () => {
  /** More than the kernel takes for a receiver that does not read. */
  const body = Buffer.alloc(32 * 2 ** 20, ' ');
  const sized = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  const answers: Readonly<Record<string, string>> = {
    'with a length': sized,
    'until the connection ends': 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok',
    'without content': 'HTTP/1.1 204 No Content\r\n\r\n',
    'with more content than anybody reads': `HTTP/1.1 200 OK\r\n\r\n${' '.repeat(100_000)}`,
  };
  for (const [what, answer] of Object.entries(answers)) {
    test(`has it if it reads on: ${what}`, async (t) => {
      const isUnframed = !/Content-Length|204/.test(answer);
      const receiver = await hastyReceiver(t, answer, (socket) => {
        if (isUnframed) socket.end();
        socket.resume();
      });
      const { status, problem } = await attempts(t)(receiver.origin, { body });
      assert.deepEqual([status, problem], [answer.includes('204') ? 204 : 200, undefined]);
      await receiver.read(body.length);
    });

    test(`does not have it if it resets the connection: ${what}`, async (t) => {
      const { origin } = await hastyReceiver(t, answer, (socket) => socket.resetAndDestroy());
      const { problem } = await attempts(t)(origin, { body });
      // The reset may discard the answer.
      assert.match(problem?.code ?? '', /^(?:unsent|broken)$/);
    });

    test(`does not have it if it never reads: ${what}`, async (t) => {
      const { origin } = await hastyReceiver(t, answer, () => undefined);
      const { status = 0, problem } = await attempts(t, { timeoutMs: 100 })(origin, { body });
      assert.deepEqual([status < 300, problem?.code], [true, 'unsent']);
    });
  }

  test('may refuse it so: its status counts', async (t) => {
    const refusal = 'HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
    const { origin } = await hastyReceiver(t, refusal, () => undefined);
    const { status, problem } = await attempts(t)(origin, { body });
    assert.deepEqual([status, problem], [413, undefined]);
  });

  test('gets the next message, too', async (t) => {
    const receiver = await hastyReceiver(t, sized, (socket) => socket.resume());
    const attempt = attempts(t);
    for (const count of [1, 2]) {
      assert.equal((await attempt(receiver.origin, { body })).problem, undefined);
      await receiver.read(count * body.length);
    }
  });
});

/**
 * A receiver that answers the first bytes of each request, without reading on, and then does
 * something. `read` resolves once it has read a number of bytes.
 */
async function hastyReceiver(t: TestContext, answer: string, then: (socket: Socket) => void) {
  let bytes = 0;
  const arrived = new EventEmitter();
  const sockets = new Set<Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      arrived.emit('bytes');
      if (!chunk.includes('POST ')) return;
      socket.pause().write(answer, () => {
        then(socket);
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  const read = async (count: number): Promise<void> => {
    while (bytes < count) await once(arrived, 'bytes');
  };
  return { origin: `http://127.0.0.1:${port}`, read };
}
