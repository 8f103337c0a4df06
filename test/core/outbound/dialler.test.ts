import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import tls from 'node:tls';
import { parseCidr } from '../../../src/core/values/network/cidr.ts';
import { Failure, type FailureCode } from '../../../src/core/values/failure.ts';
import type { OneShotOptions } from '../../../src/core/outbound/one-shot-request.ts';
import type { SourceResponse } from '../../../src/core/outbound/exchange.ts';
import { withTimeout } from '../../timeouts.ts';
import {
  httpSource,
  oneAddress,
  outbound,
  rawSource,
  selfSigned,
  testDialler,
  tlsSource,
} from './sources.ts';

async function contentOf(answer: SourceResponse): Promise<string> {
  const content = answer.content();
  return Buffer.isBuffer(content) ? content.toString() : text(content);
}

/** Waits for a Failure; returns its code, its message and its cause. */
async function failureOf(promise: Promise<unknown>): Promise<Failure> {
  const outcome = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(outcome instanceof Failure, `no Failure but ${String(outcome)}`);
  return outcome;
}

async function fails(promise: Promise<unknown>, code: FailureCode): Promise<void> {
  assert.equal((await failureOf(promise)).code, code);
}

const plain = (_: unknown, response: { end: (content: string) => void }): void => {
  response.end('hello');
};

suite('the dialler refuses to connect to', () => {
  const literals: readonly string[] = [
    'http://10.0.0.1',
    'http://169.254.169.254',
    'http://[::1]:9',
    'http://[fd00:ec2::254]',
    'http://[::ffff:10.0.0.1]',
    'http://[64:ff9b::7f00:1]',
    'http://[::127.0.0.1]',
    'http://0.0.0.0:9',
    'http://167772161',
    'http://0xa.1',
    'https://192.168.0.1',
    'https://[fe80::1]',
  ];
  for (const origin of literals) {
    test(`a private address in a URL: ${origin}`, async (t) => {
      const failure = await failureOf(testDialler(t).send(outbound(origin)));
      assert.equal(failure.code, 'bad_gateway');
      assert.equal(failure.message, 'The source’s address is not allowed.');
      assert.match((failure.cause as Error).message, /is not in allow_private/);
    });
  }

  const answers: readonly (readonly [string, readonly string[]])[] = [
    ['a private address', ['10.0.0.1']],
    ['several private addresses', ['10.0.0.1', '::1', '169.254.169.254']],
    ['an IPv4 address in IPv6', ['::ffff:10.0.0.1']],
    ['NAT64 of a loopback address', ['64:ff9b::7f00:1']],
    ['no address', []],
    ['malformed addresses', ['localhost', '127.1']],
  ];
  for (const [what, addresses] of answers) {
    test(`a name with ${what}`, async (t) => {
      const lookup = () =>
        Promise.resolve(addresses.map((address) => ({ address, family: 4 }) as const));
      const failure = await failureOf(
        testDialler(t, { lookup }).send(outbound('http://rebound.example')),
      );
      assert.equal(failure.code, 'bad_gateway');
      assert.doesNotMatch(failure.message, /rebound|10\.0/);
      assert.match((failure.cause as Error).message, /rebound\.example/);
    });
  }

  test('the private addresses of a name that has an allowed one, too', async (t) => {
    const { port } = await httpSource(t, plain);
    const forbidden: string[] = [];
    await trap(t, port, forbidden);
    const mixtures = [
      ['127.0.0.2', '127.0.0.1'],
      ['127.0.0.1', '127.0.0.2'],
      ['::1', '127.0.0.2', '127.0.0.1'],
    ];
    for (const addresses of mixtures) {
      const dialler = testDialler(t, {
        allowPrivate: oneAddress,
        lookup: () => Promise.resolve(addresses.map(withFamily)),
      });
      const answer = await dialler.send(outbound(`http://mixed.example:${port}`));
      assert.equal(await contentOf(answer), 'hello');
    }
    assert.deepEqual(forbidden, []);
  });

  test('a name whose address has become private since the last request', async (t) => {
    const { port } = await httpSource(t, (_, response) => {
      response.setHeader('Connection', 'close').end('hello');
    });
    const forbidden: string[] = [];
    await trap(t, port, forbidden);
    const asked: string[] = [];
    const dialler = testDialler(t, {
      allowPrivate: oneAddress,
      lookup: (hostname) => {
        asked.push(hostname);
        return Promise.resolve([withFamily(asked.length === 1 ? '127.0.0.1' : '127.0.0.2')]);
      },
    });
    const origin = `http://rebound.example:${port}`;
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    await fails(dialler.send(outbound(origin)), 'bad_gateway');
    assert.deepEqual(asked, ['rebound.example', 'rebound.example']);
    assert.deepEqual(forbidden, []);
  });

  test('the host in a Host field instead of that in the URL', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      response.end(request.headers.host);
    });
    const lookup = () => Promise.reject(new Error('nothing is to be looked up'));
    for (const host of ['localhost', '10.0.0.1', 'other.example:99', '[::1]']) {
      const answer = await testDialler(t, { lookup }).send(
        outbound(origin, { fields: ['host', host] }),
      );
      assert.equal(await contentOf(answer), host);
    }
  });
});

/** A one-shot GET of `/`. */
function briefRequest(origin: string): OneShotOptions {
  return { origin, target: '/', method: 'GET', fields: [], body: Buffer.alloc(0) };
}

suite('the dialler with a local address', () => {
  const localAddress = '127.0.0.9';

  test('connects from it, with and without TLS', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      response.end(request.socket.remoteAddress);
    });
    const certificate = selfSigned('localhost');
    const secure = https.createServer(certificate, (request, response) => {
      response.end(request.socket.remoteAddress);
    });
    await once(secure.listen(0, '127.0.0.1'), 'listening');
    t.after(() => {
      secure.close();
      secure.closeAllConnections();
    });
    const { port } = secure.address() as AddressInfo;
    const lookup = () => Promise.resolve([withFamily('127.0.0.1')]);
    const dialler = testDialler(t, { localAddress, lookup, ca: [certificate.cert] });
    for (const one of [origin, `https://localhost:${port}`]) {
      assert.equal(await contentOf(await dialler.send(outbound(one))), localAddress);
      const brief = await dialler.exchange(briefRequest(one));
      assert.equal(brief.content.toString(), localAddress);
    }
  });

  test('connects only to addresses of its family', async (t) => {
    const { origin, port } = await httpSource(t, (request, response) => {
      response.end(request.socket.remoteAddress);
    });
    const both = () => Promise.resolve(['::1', '127.0.0.1'].map(withFamily));
    const dialler = testDialler(t, { localAddress, lookup: both });
    const { content } = await dialler.exchange(briefRequest(`http://both.example:${port}`));
    assert.equal(content.toString(), localAddress);
    const only = () => Promise.resolve([withFamily('::1')]);
    const allowPrivate = ['::1/128'].flatMap((text) => parseCidr(text) ?? []);
    const other = testDialler(t, { localAddress, lookup: only, allowPrivate });
    for (const host of ['only.example', '[::1]']) {
      const answer = await other.exchange(briefRequest(`http://${host}:${port}`));
      assert.equal(answer.problem?.code, 'family', host);
    }
    const foreign = testDialler(t, { localAddress: '192.0.2.7' });
    const { problem } = await foreign.exchange(briefRequest(origin));
    assert.match(problem?.message ?? '', /^The connection could not be made: EADDRNOTAVAIL/);
  });
});

suite('the dialler over TLS', () => {
  const certificate = selfSigned('localhost');

  async function secureSource(t: TestContext): Promise<string> {
    const server = https.createServer(certificate, plain).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    });
    return `:${(server.address() as AddressInfo).port}`;
  }

  test('refuses a certificate of an unknown authority, even with NODE_TLS_REJECT_UNAUTHORIZED', async (t) => {
    const port = await secureSource(t);
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
    await fails(testDialler(t).send(outbound(`https://localhost${port}`)), 'bad_gateway');
  });

  test('accepts a trusted certificate for its own name only', async (t) => {
    const port = await secureSource(t);
    const before = tls.getCACertificates('default');
    tls.setDefaultCACertificates([...before, certificate.cert]);
    t.after(() => {
      tls.setDefaultCACertificates(before);
    });
    const lookup = () => Promise.resolve([withFamily('127.0.0.1')]);
    const dialler = testDialler(t, { lookup });
    assert.equal(
      await contentOf(await dialler.send(outbound(`https://localhost${port}`))),
      'hello',
    );
    await fails(dialler.send(outbound(`https://other.example${port}`)), 'bad_gateway');
  });
});

suite('the timeouts of the dialler limit the wait', { concurrency: true }, () => {
  test('for a name', async (t) => {
    const lookup = () => Promise.withResolvers<never>().promise;
    const dialler = testDialler(t, { lookup, connectTimeoutMs: 50 });
    await fails(dialler.send(outbound('http://slow.example')), 'gateway_timeout');
  });

  test('for a connection, including TLS', async (t) => {
    const { port } = await rawSource(t, () => undefined);
    const dialler = testDialler(t, { connectTimeoutMs: 50 });
    await fails(dialler.send(outbound(`https://127.0.0.1:${port}`)), 'gateway_timeout');
  });

  const heads = ['', 'HTTP/1.1 200 OK\r\nContent-', 'HTTP/1.1 103 Early Hints\r\n\r\n'];
  for (const head of heads) {
    test(`for a header section that stops after ${JSON.stringify(head)}`, async (t) => {
      const { origin } = await rawSource(t, (socket) => socket.write(head));
      const dialler = testDialler(t, { timeoutMs: 50 });
      await fails(dialler.send(outbound(origin)), 'gateway_timeout');
    });
  }

  test('for more content', async (t) => {
    const { origin } = await rawSource(t, (socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'),
    );
    const answer = testDialler(t, { timeoutMs: 50 }).send(outbound(origin));
    await fails(answer.then(contentOf), 'gateway_timeout');
  });

  test('but not for its own reader', async (t) => {
    const big = Buffer.alloc(4_000_000, 'x');
    const { origin } = await httpSource(t, (_, response) => response.end(big));
    await withTimeout([50, 500, 5_000], async (timeoutMs) => {
      const answer = await testDialler(t, { timeoutMs }).send(outbound(origin));
      const content = answer.content() as Readable;
      await once(content, 'readable');
      // Longer than the timeout: the source waits for the reader, not the other way round.
      await delay(timeoutMs + 1_150);
      assert.equal((await buffer(content)).length, big.length);
    });
  });
});

suite('a malformed response', () => {
  const ok = 'HTTP/1.1 200 OK\r\n';
  const broken: Readonly<Record<string, string | Buffer>> = {
    nothing: '',
    'another protocol': 'SSH-2.0-OpenSSH_9.6\r\n\r\n',
    'a page without a head': '<html></html>',
    'half a status line': 'HTTP/1.1 20',
    'no status': 'HTTP/1.1 OK\r\n\r\n',
    'status 42': 'HTTP/1.1 042 Low\r\nContent-Length: 0\r\n\r\n',
    'a field without a colon': `${ok}Nonsense\r\n\r\n`,
    'a name that is no token': `${ok}Bad Name: x\r\n\r\n`,
    'a NUL in a value': `${ok}X: a\0b\r\nContent-Length: 0\r\n\r\n`,
    'a length that is no number': `${ok}Content-Length: ten\r\n\r\n0123456789`,
    'two lengths': `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    'a length beside chunked': `${ok}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'an unrequested switch of protocols': `HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n`,
    'an endless header section': `${ok}${'X-Filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n'.repeat(4_000)}`,
    'one enormous field': `${ok}X: ${'y'.repeat(64 * 1_024)}\r\n\r\n`,
  };
  for (const [what, bytes] of Object.entries(broken)) {
    test(`fails with bad_gateway: ${what}`, async (t) => {
      const { origin } = await rawSource(t, bytes);
      const failure = await failureOf(testDialler(t).send(outbound(origin)));
      assert.equal(failure.code, 'bad_gateway');
      assert.doesNotMatch(failure.message, /127|UND_ERR|HTTP\/1/);
    });
  }

  test('fails with bad_gateway: connection refused', async (t) => {
    const { origin, server } = await httpSource(t, plain);
    server.close();
    await once(server, 'close');
    await fails(testDialler(t).send(outbound(origin)), 'bad_gateway');
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  const cut: Readonly<Record<string, string>> = {
    'too few bytes': `${ok}Content-Length: 100\r\n\r\nhalf`,
    'no last chunk': `${ok}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n`,
    'half a chunk': `${ok}Transfer-Encoding: chunked\r\n\r\n40\r\nhalf`,
    'a chunk size that is none': `${ok}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n`,
  };
  for (const [what, head] of Object.entries(cut)) {
    for (const ending of ['end', 'reset'] as const) {
      test(`fails for its reader if it is incomplete: ${what}, then ${ending}`, async (t) => {
        const { origin } = await rawSource(t, (socket) => {
          socket.write(head, () => {
            if (ending === 'end') socket.end();
            else setImmediate(() => socket.resetAndDestroy());
          });
        });
        await fails(testDialler(t).send(outbound(origin)).then(contentOf), 'bad_gateway');
      });
    }
  }
});

test('a response in a transfer coding that was not requested fails, and says why', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello';
  const { origin } = await rawSource(t, head);
  const dialler = testDialler(t);
  await assert.rejects(dialler.send(outbound(origin)), {
    code: 'bad_gateway',
    message: 'The source answered with a transfer coding that was not requested.',
  });
  const { status, problem } = await dialler.exchange(briefRequest(origin));
  assert.deepEqual([status, problem?.code], [undefined, 'coding']);
});

suite('a response that ends with its connection', () => {
  const heads: Readonly<Record<string, string>> = {
    'HTTP/1.1': 'HTTP/1.1 200 OK\r\n\r\n',
    'HTTP/1.1, said to be the last': 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n',
    'HTTP/1.0': 'HTTP/1.0 200 OK\r\n\r\n',
  };
  const lookup = () => Promise.resolve([withFamily('127.0.0.1')]);
  for (const [what, head] of Object.entries(heads)) {
    test(`is incomplete after a reset: ${what}`, async (t) => {
      const { origin } = await rawSource(t, (socket) => {
        socket.write(`${head}half`, () => setImmediate(() => socket.resetAndDestroy()));
      });
      const dialler = testDialler(t);
      // The second request goes through undici from its start.
      for (let count = 0; count < 2; count += 1) {
        await fails(dialler.send(outbound(origin)).then(contentOf), 'bad_gateway');
      }
      const body = Buffer.from('{}');
      const target = '/';
      const sent = { origin, target, method: 'POST', fields: [], body };
      const { status, problem } = await dialler.exchange(sent);
      assert.deepEqual([status, problem?.code], [200, 'broken']);
    });

    test(`is incomplete if TCP ends without close_notify: ${what}`, async (t) => {
      const { origin, ca } = await tlsSource(t, `${head}half`, 'TCP alone');
      const dialler = testDialler(t, { lookup, ca });
      for (let count = 0; count < 2; count += 1) {
        await fails(dialler.send(outbound(origin)).then(contentOf), 'bad_gateway');
      }
    });

    test(`is complete after a close_notify: ${what}`, async (t) => {
      const { origin, ca } = await tlsSource(t, `${head}hello`, 'close_notify');
      const dialler = testDialler(t, { lookup, ca });
      for (let count = 0; count < 2; count += 1) {
        assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
      }
    });
  }

  test('is complete after its Content-Length, however the connection ends', async (t) => {
    const content = Buffer.alloc(3_000_000, 'x');
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${content.length}\r\n\r\n`;
    const bytes = Buffer.concat([Buffer.from(head), content]);
    for (const ending of ['close_notify', 'TCP alone'] as const) {
      const { origin, ca } = await tlsSource(t, bytes, ending);
      const dialler = testDialler(t, { lookup, ca });
      for (const fields of [[], ['host', 'localhost']]) {
        const stream = (await dialler.send(outbound(origin, { fields }))).content();
        assert.ok(stream instanceof Readable);
        // The reader starts after the source has sent all that the connection buffers.
        await delay(50);
        assert.equal((await buffer(stream)).length, content.length);
      }
    }
  });

  test('is complete after its header section if it answers a HEAD', async (t) => {
    const { origin, ca } = await tlsSource(t, 'HTTP/1.1 200 OK\r\n\r\n', 'TCP alone');
    const dialler = testDialler(t, { lookup, ca });
    const answer = await dialler.send(outbound(origin, { method: 'HEAD' }));
    assert.equal(await contentOf(answer), '');
  });
});

suite('a response of any form', () => {
  const forms: Readonly<Record<string, readonly [string, string]>> = {
    'with a length': ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', 'hello'],
    'until the connection ends': ['HTTP/1.1 200 OK\r\n\r\nhello', 'hello'],
    'of HTTP/1.0': ['HTTP/1.0 200 OK\r\n\r\nhello', 'hello'],
    'without a reason': ['HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello', 'hello'],
    'in chunks, with trailers': [
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n',
      'hello',
    ],
    'after early hints': [
      'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
      'hello',
    ],
    'after an unrequested 100 (Continue)': [
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
      'hello',
    ],
    'of which the content looks like going on': [
      'HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n',
      'HTTP/1.1 100 Continue\r\n\r\n',
    ],
    empty: ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', ''],
  };
  for (const [what, [bytes, content]] of Object.entries(forms)) {
    test(what, async (t) => {
      const { origin } = await rawSource(t, bytes);
      const answer = await testDialler(t).send(outbound(origin));
      assert.equal(answer.status, 200);
      assert.ok(!answer.fields.includes('Link'));
      assert.equal(await contentOf(answer), content);
    });
  }

  test('has its connection reused after a 100 (Continue), with complete content', async (t) => {
    const goOn = 'HTTP/1.1 100 Continue\r\n\r\n';
    const connections = new Set<Socket>();
    let last: Socket | undefined;
    const { origin } = await rawSource(t, (socket) => {
      connections.add(socket);
      last = socket;
      socket.write(goOn);
      setImmediate(() => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${goOn.length}\r\n\r\n`);
      });
    });
    const dialler = testDialler(t);
    for (let turn = 1; turn <= 9; turn += 1) {
      const answer = await dialler.send(outbound(origin, { method: 'POST' }));
      last?.write(goOn);
      assert.equal(await contentOf(answer), goOn);
    }
    // A second one if the first was not free again in time.
    assert.ok(connections.size <= 2, `${connections.size} connections`);
  });

  test('keeps its fields in order, byte for byte, without joining them', async (t) => {
    const head = 'HTTP/1.1 200 OK\r\nX-Odd: caf\xe9\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\n';
    const { origin } = await rawSource(
      t,
      Buffer.from(`${head}Content-Length: 0\r\n\r\n`, 'latin1'),
    );
    const { fields } = await testDialler(t).send(outbound(origin));
    assert.deepEqual(fields, [
      ...['X-Odd', 'caf\xe9', 'set-cookie', 'a=1', 'Set-Cookie', 'b=2', 'Content-Length', '0'],
    ]);
  });

  const zeros = '0'.repeat(40);
  for (const [sent, read] of [
    ['05', '5'],
    [`${zeros}5`, '5'],
    ['00', '0'],
  ] as const) {
    test(`has a plain decimal Content-Length, even if ${sent} was sent`, async (t) => {
      const content = 'hello'.slice(0, Number(sent));
      const { origin } = await rawSource(t, (socket, request) => {
        // The first response is to a GET, the second one to a HEAD.
        const head = `HTTP/1.1 200 OK\r\nCONTENT-Length: ${sent}\r\n\r\n`;
        socket.write(request === 1 ? head + content : head);
      });
      for (const method of ['GET', 'HEAD']) {
        const answer = await testDialler(t).send(outbound(origin, { method }));
        assert.deepEqual(answer.fields, ['CONTENT-Length', read]);
        assert.equal(await contentOf(answer), method === 'GET' ? content : '');
      }
    });
  }

  test('is not followed if it is a redirect', async (t) => {
    const asked: (string | undefined)[] = [];
    const { origin } = await httpSource(t, (request, response) => {
      asked.push(request.url);
      response.writeHead(302, { Location: 'http://169.254.169.254/latest/' }).end();
    });
    const { status } = await testDialler(t).send(outbound(origin));
    assert.equal(status, 302);
    assert.deepEqual(asked, ['/']);
  });

  test('is not decompressed', async (t) => {
    const { origin } = await httpSource(t, (_, response) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip' }).end('not gzip at all');
    });
    assert.equal(await contentOf(await testDialler(t).send(outbound(origin))), 'not gzip at all');
  });
});

suite('connections', () => {
  test('are reused', async (t) => {
    const { origin, server } = await httpSource(t, plain);
    let connections = 0;
    server.on('connection', () => (connections += 1));
    const dialler = testDialler(t);
    for (let count = 0; count < 20; count += 1) {
      assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    }
    // A second one if the first was not free again in time.
    assert.ok(connections <= 2, `${connections} connections`);
  });

  for (const method of ['GET', 'OPTIONS', 'DELETE']) {
    test(`that end between two requests fail no request: ${method}`, async (t) => {
      const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';
      const used = new WeakSet<Socket>();
      let ended = 0;
      const { origin } = await rawSource(t, (socket) => {
        if (used.has(socket)) {
          ended += 1;
          socket.destroy();
        } else socket.write(answer);
        used.add(socket);
      });
      const dialler = testDialler(t);
      for (let count = 0; count < 20; count += 1) {
        assert.equal(await contentOf(await dialler.send(outbound(origin, { method }))), 'hello');
      }
      assert.ok(ended > 0);
    });
  }

  for (const method of ['POST', 'PUT', 'OPTIONS']) {
    test(`that are reset before a byte is sent fail no request: ${method}`, async (t) => {
      const sockets: Socket[] = [];
      const { origin } = await rawSource(t, (socket) => {
        sockets.push(socket);
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello');
      });
      const dialler = testDialler(t);
      const ask = (): Promise<SourceResponse> => {
        const body = method === 'OPTIONS' ? undefined : Readable.from([Buffer.from('all')]);
        const fields = body === undefined ? [] : ['Content-Length', '3'];
        return dialler.send(outbound(origin, { method, body, fields }));
      };
      assert.equal(await contentOf(await ask()), 'hello');
      // In a turn of the event loop, events of the kernel come right after timers.
      await delay(10);
      sockets[0]?.resetAndDestroy();
      assert.equal(await contentOf(await ask()), 'hello');
      assert.equal(sockets.length, 2);
    });
  }

  test('that are reset before a byte is sent fail no one-shot request', async (t) => {
    const sockets: Socket[] = [];
    const { origin } = await rawSource(t, (socket) => {
      sockets.push(socket);
      socket.write('HTTP/1.1 204 No Content\r\n\r\n');
    });
    const dialler = testDialler(t);
    const request = { origin, target: '/', method: 'POST', fields: [], body: Buffer.from('all') };
    assert.equal((await dialler.exchange(request)).status, 204);
    await delay(10);
    sockets[0]?.resetAndDestroy();
    assert.equal((await dialler.exchange(request)).status, 204);
    assert.equal(sockets.length, 2);
  });

  test('that were never used and end fail no request', async (t) => {
    const { origin, server } = await httpSource(t, plain);
    const sockets: Socket[] = [];
    server.on('connection', (socket: Socket) => sockets.push(socket));
    const dialler = testDialler(t);
    const controller = new AbortController();
    const givenUp = dialler.send(outbound(origin, { controller }));
    controller.abort();
    await fails(givenUp, 'bad_gateway');
    while (sockets.length === 0) await delay(10);
    await delay(10);
    sockets[0]?.resetAndDestroy();
    assert.equal(await contentOf(await dialler.send(outbound(origin))), 'hello');
    assert.equal(sockets.length, 2);
  });

  test('that end before their first response are a failure of the source', async (t) => {
    let seen = 0;
    const { origin } = await rawSource(t, (socket, request) => {
      seen = request;
      socket.destroy();
    });
    await fails(testDialler(t).send(outbound(origin)), 'bad_gateway');
    assert.equal(seen, 1);
  });

  test('that end during a POST do not send it twice', async (t) => {
    let seen = 0;
    const { origin } = await rawSource(t, (socket, request) => {
      seen = request;
      socket.destroy();
    });
    await fails(testDialler(t).send(outbound(origin, { method: 'POST' })), 'bad_gateway');
    assert.equal(seen, 1);
  });

  test('do not mix up the responses of concurrent requests', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      response.end(request.url?.repeat(1_000));
    });
    const dialler = testDialler(t);
    const targets = Array.from({ length: 100 }, (_, at) => `/${at}`);
    const got = await Promise.all(
      targets.map(async (target) => contentOf(await dialler.send(outbound(origin, { target })))),
    );
    assert.deepEqual(
      got,
      targets.map((target) => target.repeat(1_000)),
    );
  });

  test('are closed after the requests in flight; later requests get new ones', async (t) => {
    const waiting = Promise.withResolvers<() => void>();
    const { origin } = await httpSource(t, (request, response) => {
      if (request.url === '/late') response.end('late');
      else waiting.resolve(() => response.end('slow'));
    });
    const dialler = testDialler(t);
    const slow = dialler.send(outbound(origin));
    const finish = await waiting.promise;
    const closed = dialler.close();
    const late = await dialler.send(outbound(origin, { target: '/late' }));
    assert.equal(await contentOf(late), 'late');
    finish();
    assert.equal(await contentOf(await slow), 'slow');
    await closed;
    await dialler.close();
  });
});

suite('cut', () => {
  test('destroys all connections, and sends nothing more', async (t) => {
    const { origin } = await rawSource(t, (socket) => {
      // Content that ends with its connection must not seem complete.
      socket.write('HTTP/1.1 200 OK\r\n\r\nbeginning');
    });
    const dialler = testDialler(t);
    const answer = await dialler.send(outbound(origin));
    const content = contentOf(answer);
    dialler.cut();
    await assert.rejects(content);
    await assert.rejects(dialler.send(outbound(origin)), { code: 'bad_gateway' });
    await dialler.close();
  });
});

suite('an aborted request', () => {
  async function waitingSource(t: TestContext, head: string) {
    const gone = Promise.withResolvers<boolean>();
    const arrived = Promise.withResolvers<Socket>();
    const { origin } = await rawSource(t, (socket) => {
      socket.on('close', () => {
        gone.resolve(true);
      });
      socket.write(head);
      arrived.resolve(socket);
    });
    return { origin, gone: gone.promise, arrived: arrived.promise };
  }

  test('closes its connection before the response', async (t) => {
    const { origin, gone, arrived } = await waitingSource(t, '');
    const controller = new AbortController();
    const answer = failureOf(testDialler(t).send(outbound(origin, { controller })));
    await arrived;
    controller.abort();
    assert.equal((await answer).code, 'bad_gateway');
    assert.equal(await gone, true);
  });

  test('sends nothing if it was aborted at once', async (t) => {
    let requests = 0;
    const { origin } = await httpSource(t, (_, response) => {
      requests += 1;
      response.end();
    });
    await fails(
      testDialler(t).send(outbound(origin, { signal: AbortSignal.abort() })),
      'bad_gateway',
    );
    assert.equal(requests, 0);
  });

  const partial = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf';
  const ways: Readonly<
    Record<string, (answer: SourceResponse, controller: AbortController) => void>
  > = {
    'by the signal': (answer, controller) => {
      (answer.content() as Readable).on('error', () => undefined);
      controller.abort();
    },
    'by destroying the content': (answer) => (answer.content() as Readable).destroy(),
    'by discarding the answer': (answer) => {
      answer.discard();
    },
  };
  for (const [way, giveUp] of Object.entries(ways)) {
    test(`closes its connection during the content: ${way}`, async (t) => {
      const { origin, gone } = await waitingSource(t, partial);
      const controller = new AbortController();
      giveUp(await testDialler(t).send(outbound(origin, { controller })), controller);
      assert.equal(await gone, true);
    });
  }

  test('after its end has its connection reused', async (t) => {
    const { origin, server } = await httpSource(t, plain);
    let connections = 0;
    server.on('connection', () => (connections += 1));
    const dialler = testDialler(t);
    for (let count = 0; count < 5; count += 1) {
      const controller = new AbortController();
      const answer = await dialler.send(outbound(origin, { controller }));
      assert.equal(await contentOf(answer), 'hello');
      controller.abort();
    }
    // A second one if the first was not free again in time.
    assert.ok(connections <= 2, `${connections} connections`);
  });

  test('leaves no listener on its signal', async (t) => {
    const { origin } = await httpSource(t, plain);
    const dialler = testDialler(t);
    const controller = new AbortController();
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on('warning', warn);
    t.after(() => process.off('warning', warn));
    for (let count = 0; count < 50; count += 1) {
      await contentOf(await dialler.send(outbound(origin, { controller })));
    }
    assert.deepEqual(warnings, []);
  });
});

suite('the content of a request', () => {
  test('is sent completely, with its length or in chunks', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      void describe(request).then((line) => response.end(line));
    });
    const dialler = testDialler(t);
    const send = async (fields: string[]) =>
      contentOf(
        await dialler.send(
          outbound(origin, { method: 'POST', fields, body: Readable.from(['some ', 'thing']) }),
        ),
      );
    assert.equal(await send(['content-length', '10']), 'length 10: some thing');
    assert.equal(await send([]), 'chunked: some thing');
  });

  test('of another length than Content-Length is refused', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      request.resume().on('end', () => response.end());
    });
    for (const length of ['3', '30']) {
      const body = Readable.from(['some ', 'thing']);
      const fields = ['content-length', length];
      await fails(
        testDialler(t).send(outbound(origin, { method: 'POST', fields, body })),
        'invalid',
      );
    }
  });

  test('that the source does not read completely gets its response', async (t) => {
    const body = new Readable({ read: () => undefined });
    const { origin } = await rawSource(t, (socket) => {
      socket.write(
        'HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\n',
      );
      socket.write('big');
      socket.resetAndDestroy();
      // Before a byte of the response was read.
      body.push('more');
    });
    body.push('some');
    const answer = await testDialler(t).send(outbound(origin, { method: 'POST', body }));
    assert.equal(answer.status, 413);
    assert.equal(await contentOf(answer), 'big');
  });

  test('that the source neither reads nor answers fails with bad_gateway', async (t) => {
    const body = new Readable({ read: () => undefined });
    const { origin } = await rawSource(t, (socket) => {
      socket.resetAndDestroy();
      body.push('more');
    });
    body.push('some');
    await fails(testDialler(t).send(outbound(origin, { method: 'POST', body })), 'bad_gateway');
  });

  test('fails the exchange with its own error', async (t) => {
    const { origin } = await httpSource(t, (request) => request.resume());
    const body = new Readable({ read: () => undefined });
    const sent = testDialler(t).send(outbound(origin, { method: 'POST', body }));
    body.push('x');
    body.destroy(new Failure('too_large', 'Too much.'));
    await fails(sent, 'too_large');
  });

  test('cannot inject a field', async (t) => {
    const { origin } = await httpSource(t, plain);
    for (const fields of [
      ['x', 'a\r\nb: c'],
      ['x\r\ny', 'z'],
      ['x', 'a\0b'],
      ['x', '€'],
      ['transfer-encoding', 'chunked'],
    ]) {
      await fails(testDialler(t).send(outbound(origin, { fields })), 'invalid');
    }
    await fails(testDialler(t).send(outbound(origin, { target: '/a b' })), 'invalid');
  });
});

async function describe(request: IncomingMessage): Promise<string> {
  const length = request.headers['content-length'];
  const framing = length === undefined ? request.headers['transfer-encoding'] : `length ${length}`;
  return `${framing}: ${await text(request)}`;
}

/** A server on a loopback address to which the dialler must not connect. */
async function trap(t: TestContext, port: number, reached: string[]): Promise<void> {
  const server = https.createServer().listen(port, '127.0.0.2');
  server.on('connection', () => reached.push('127.0.0.2'));
  await once(server, 'listening');
  t.after(() => server.close());
}

function withFamily(address: string): { readonly address: string; readonly family: number } {
  return { address, family: address.includes(':') ? 6 : 4 };
}
