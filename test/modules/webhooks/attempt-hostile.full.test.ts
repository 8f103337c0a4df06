import assert from 'node:assert/strict';
import { once } from 'node:events';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { httpSource, oneAddress, rawSource, selfSigned } from '../../core/outbound/sources.ts';
import { withTimeout } from '../../timeouts.ts';
import { attempts, fullPort } from './attempt-rig.ts';

/** A timeout for cases whose result does not depend on the moment. */
const soon = { timeoutMs: 1_000 };
/** Increasing timeouts for cases in which something must happen before the timeout. */
const later = [200, 2_000, 10_000];

/** A receiver that repeats a text, a piece at a time, until its client closes the connection. */
async function drip(t: TestContext, beginning: string, text: string) {
  const gone = Promise.withResolvers<true>();
  const { origin } = await rawSource(t, (socket) => {
    socket.write(beginning);
    const timer = setInterval(() => socket.write(text), 5);
    socket.on('close', () => {
      clearInterval(timer);
      gone.resolve(true);
    });
  });
  return { origin, gone: gone.promise };
}

suite('an attempt times out if the receiver hangs', { concurrency: true }, () => {
  test('while its name is resolved', async (t) => {
    const lookup = () => Promise.withResolvers<never>().promise;
    const attempt = attempts(t, { lookup, connectTimeoutMs: 50 });
    const { status, problem } = await attempt('http://slow.example');
    assert.deepEqual([status, problem?.code], [undefined, 'connect_timeout']);
  });

  test('while the connection is made', async (t) => {
    const port = await fullPort(t);
    const { status, problem } = await attempts(t, { connectTimeoutMs: 50 })(
      `http://127.0.0.1:${port}`,
    );
    assert.deepEqual([status, problem?.code], [undefined, 'connect_timeout']);
  });

  test('while the connection is made, beyond the timeout of the whole attempt', async (t) => {
    const port = await fullPort(t);
    const attempt = attempts(t, { connectTimeoutMs: 500, timeoutMs: 50 });
    const { status, problem } = await attempt(`http://127.0.0.1:${port}`);
    assert.deepEqual([status, problem?.code], [undefined, 'connect_timeout']);
  });

  test('during the TLS handshake', async (t) => {
    const { port } = await rawSource(t, () => undefined);
    const attempt = attempts(t, { connectTimeoutMs: 50 });
    const { status, problem } = await attempt(`https://127.0.0.1:${port}`);
    assert.deepEqual([status, problem?.code], [undefined, 'connect_timeout']);
  });

  const heads = ['', 'HTTP/1.1 200 OK\r\nContent-', 'HTTP/1.1 102 Processing\r\n\r\n'];
  for (const head of heads) {
    test(`in the header section, after ${JSON.stringify(head)}`, async (t) => {
      const gone = Promise.withResolvers<true>();
      const { origin } = await rawSource(t, (socket) => {
        socket.on('close', () => {
          gone.resolve(true);
        });
        socket.write(head);
      });
      const { status, problem } = await attempts(t, soon)(origin);
      assert.deepEqual([status, problem?.code], [undefined, 'timeout']);
      assert.equal(await gone.promise, true);
    });
  }

  test('in the content, but the status counts', async (t) => {
    const { origin } = await rawSource(t, (socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'),
    );
    await withTimeout(later, async (timeoutMs) => {
      const { status, answer, problem } = await attempts(t, { timeoutMs })(origin);
      assert.deepEqual([status, answer, problem?.code], [200, 'half', 'timeout']);
    });
  });

  test('while it reads the message', async (t) => {
    const { origin } = await rawSource(t, (socket) => socket.pause());
    const body = Buffer.alloc(16 * 2 ** 20, ' ');
    const { status, problem } = await attempts(t, soon)(origin, { body });
    assert.deepEqual([status, problem?.code], [undefined, 'timeout']);
  });
});

suite('a receiver that sends byte by byte', { concurrency: true }, () => {
  const cases: readonly (readonly [string, string, string, number | undefined])[] = [
    ['its status line', '', 'H', undefined],
    ['fields', 'HTTP/1.1 200 OK\r\n', 'a: b\r\n', undefined],
    ['informational responses', '', 'HTTP/1.1 100 Continue\r\n\r\n', undefined],
    ['its content', 'HTTP/1.1 500 No\r\nContent-Length: 9999\r\n\r\n', 'x', 500],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n', 200],
    ['content without an end', 'HTTP/1.1 200 OK\r\n\r\n', 'x', 200],
  ];
  for (const [what, beginning, text, expected] of cases) {
    test(`${what}: gets no more time than any other`, async (t) => {
      await withTimeout(later, async (timeoutMs) => {
        const { origin, gone } = await drip(t, beginning, text);
        const { status, problem } = await attempts(t, { timeoutMs })(origin);
        assert.equal(status, expected);
        assert.notEqual(problem, undefined);
        assert.equal(await gone, true);
      });
    });
  }
});

suite('a receiver that sends too much', () => {
  test('is read up to 16 KiB, and its status counts', async (t) => {
    const piece = Buffer.alloc(2 ** 20, 'x');
    let bytesWritten = 0;
    const closed = Promise.withResolvers<true>();
    const { origin } = await httpSource(t, (request, response) => {
      const { socket } = request;
      response.writeHead(200, { 'Content-Length': String(2 ** 30) });
      const pour = (): void => {
        while (response.write(piece));
      };
      response.on('drain', pour).on('close', () => {
        ({ bytesWritten } = socket);
        closed.resolve(true);
      });
      pour();
    });
    const { status, answer, problem } = await attempts(t)(origin);
    assert.deepEqual([status, answer, problem], [200, 'x'.repeat(4_096), undefined]);
    assert.equal(await closed.promise, true);
    // Of 1 GiB, only the buffers of two sockets.
    assert.ok(bytesWritten < 64 * 2 ** 20, `${bytesWritten} bytes`);
  });

  test('has its connection reused if it sends exactly 16 KiB', async (t) => {
    const sizes = [16_384, 16_385, 16_384, 1];
    const connections = new Set<Socket>();
    const { origin } = await httpSource(t, (request, response) => {
      connections.add(request.socket);
      request.resume();
      response.end(Buffer.alloc(Number(request.url?.slice(1)), 'x'));
    });
    const attempt = attempts(t);
    for (const size of sizes) {
      assert.equal((await attempt(origin, { path: `/${size}` })).status, 200);
    }
    assert.ok(connections.size >= 2 && connections.size <= 3, `${connections.size} connections`);
  });

  test('has its compressed content reported without decoding', async (t) => {
    const bomb = await promisify(gzip)(Buffer.alloc(64 * 2 ** 20));
    const { origin } = await httpSource(t, (_, response) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(bomb);
    });
    const { status, answer } = await attempts(t)(origin);
    assert.equal(status, 200);
    assert.equal(answer.slice(0, 2), '\x1f\ufffd');
    assert.ok(answer.length <= 4_096);
  });

  const ok = 'HTTP/1.1 200 OK\r\n';
  const heads: Readonly<Record<string, string>> = {
    '10,000 fields': `${ok}${'a: b\r\n'.repeat(10_000)}\r\n`,
    '10,000 fields without a value': `${ok}${'a:\r\n'.repeat(10_000)}\r\n`,
    '101 fields': `${ok}${'a: b\r\n'.repeat(101)}Content-Length: 0\r\n\r\n`,
    'a field of 64 KiB': `${ok}A: ${'b'.repeat(65_536)}\r\n\r\n`,
    'fields without an end': `${ok}${'a: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n'.repeat(20_000)}`,
  };
  for (const [what, head] of Object.entries(heads)) {
    test(`in the header section fails: ${what}`, async (t) => {
      const { origin } = await rawSource(t, head);
      const { status, problem } = await attempts(t)(origin);
      assert.deepEqual([status, problem?.code], [undefined, 'header']);
    });
  }

  test('in informational responses fails', async (t) => {
    const { origin } = await rawSource(t, 'HTTP/1.1 103 Hints\r\n\r\n'.repeat(1_000));
    const { status, problem } = await attempts(t)(origin);
    assert.deepEqual([status, problem?.code], [undefined, 'malformed']);
  });
});

suite('a malformed response', () => {
  const cases: Readonly<Record<string, readonly [string, string]>> = {
    nothing: ['', 'broken'],
    'another protocol': ['SSH-2.0-OpenSSH_9.6\r\n\r\n', 'malformed'],
    'half a status line': ['HTTP/1.1 20', 'broken'],
    'two lengths': [
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      'malformed',
    ],
    'a switch of protocols': ['HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n', 'malformed'],
  };
  for (const [what, [bytes, code]] of Object.entries(cases)) {
    test(what, async (t) => {
      const { origin } = await rawSource(t, bytes);
      const { status, problem } = await attempts(t)(origin);
      assert.deepEqual([status, problem?.code], [undefined, code]);
      assert.doesNotMatch(problem?.message ?? '', /127\.0/);
    });
  }

  test('whose content is incomplete has a status that counts', async (t) => {
    for (const framing of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
      const { origin } = await rawSource(t, `HTTP/1.1 202 OK\r\n${framing}\r\n\r\n2\r\nab\r\n`);
      const { status, problem } = await attempts(t)(origin);
      assert.deepEqual([status, problem?.code], [202, 'broken']);
    }
  });
});

suite('an attempt refuses a private address', () => {
  const literals = [
    ...['http://10.0.0.1', 'http://192.168.0.1', 'http://172.16.0.1', 'http://127.0.0.2'],
    ...['http://169.254.169.254', 'http://100.100.100.200', 'http://168.63.129.16'],
    ...['http://100.64.0.1', 'http://0.0.0.0', 'http://224.0.0.1', 'http://255.255.255.255'],
    ...['http://2130706433', 'http://0x7f.1', 'http://017700000001', 'http://127.1'],
    ...['http://[::1]', 'http://[::]', 'http://[fe80::1]', 'http://[fd00::1]', 'http://[ff02::1]'],
    ...['http://[::ffff:10.0.0.1]', 'http://[::ffff:a9fe:a9fe]', 'http://[::10.0.0.1]'],
    ...['http://[64:ff9b::a9fe:a9fe]', 'http://[64:ff9b:1::a00:1]', 'http://[2002:a00:1::]'],
    ...['http://[2001:0:5ef5:79fd::1]', 'http://[fd00:ec2::254]', 'https://[::ffff:0:10.0.0.1]'],
  ];
  for (const origin of literals) {
    test(`in the URL: ${origin}`, async (t) => {
      const attempt = attempts(t, { allowPrivate: oneAddress });
      // 127.0.0.1 is allowed, and these are other forms of it.
      const isAllowed = [
        'http://2130706433',
        'http://0x7f.1',
        'http://017700000001',
        'http://127.1',
      ];
      const { status, problem } = await attempt(
        origin,
        isAllowed.includes(origin) ? { path: ':9/' } : {},
      );
      assert.equal(status, undefined);
      assert.equal(problem?.code, isAllowed.includes(origin) ? 'connect' : 'address');
    });
  }

  const found: readonly (readonly string[])[] = [
    ['10.0.0.1'],
    ['169.254.169.254', '::1'],
    ['::ffff:10.0.0.1'],
    ['64:ff9b::a9fe:a9fe'],
    ['2002:a00:1::'],
    ['2001:0:5ef5:79fd::1'],
    ['fe80::1'],
    [],
  ];
  for (const addresses of found) {
    test(`of a name: ${addresses.join(', ') || 'none'}`, async (t) => {
      const lookup = () => Promise.resolve(addresses.map(withFamily));
      const { status, problem } = await attempts(t, { lookup })('http://internal.example');
      assert.deepEqual([status, problem?.code], [undefined, 'address']);
      const message = problem?.message ?? '';
      assert.match(message, /^The address is not allowed\./);
      for (const address of addresses) assert.ok(!message.includes(address));
    });
  }

  test('of a name that had another address before', async (t) => {
    const reached: string[] = [];
    const { port } = await httpSource(t, (request, response) => {
      request.resume();
      response.setHeader('Connection', 'close').end();
    });
    const { server: forbidden } = await httpSource(t, () => undefined, '127.0.0.2');
    forbidden.on('connection', () => reached.push('127.0.0.2'));
    const other = (forbidden.address() as AddressInfo).port;
    const answers = ['127.0.0.1', '127.0.0.2', '127.0.0.1'];
    const attempt = attempts(t, {
      allowPrivate: oneAddress,
      lookup: () => Promise.resolve([withFamily(answers.shift() ?? '127.0.0.2')]),
    });
    assert.equal((await attempt(`http://rebound.example:${port}`)).status, 200);
    const second = await attempt(`http://rebound.example:${other}`);
    assert.equal(second.problem?.code, 'address');
    assert.equal((await attempt(`http://rebound.example:${port}`)).status, 200);
    assert.deepEqual(reached, []);
  });

  test('and connects to an allowed one of the same name', async (t) => {
    const { port } = await httpSource(t, (request, response) => {
      request.resume();
      response.end();
    });
    const lookup = () => Promise.resolve(['::1', '10.0.0.1', '127.0.0.1'].map(withFamily));
    const attempt = attempts(t, { allowPrivate: oneAddress, lookup });
    assert.equal((await attempt(`http://mixed.example:${port}`)).status, 200);
  });

  test('with another message than for an unknown name', async (t) => {
    const unknown = Object.assign(new Error('not found'), { code: 'ENOTFOUND' });
    const lookup = () => Promise.reject(unknown);
    const { problem } = await attempts(t, { lookup })('http://nobody.example');
    assert.equal(problem?.code, 'name');
  });
});

suite('an attempt over TLS', () => {
  const certificate = selfSigned('localhost');

  async function secureReceiver(t: TestContext): Promise<string> {
    const server = https
      .createServer(certificate, (request, response) => {
        request.resume();
        response.end();
      })
      .listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    });
    return `:${(server.address() as AddressInfo).port}`;
  }

  test('fails with a certificate of an unknown authority, and says so', async (t) => {
    const port = await secureReceiver(t);
    const { status, problem } = await attempts(t)(`https://localhost${port}`);
    assert.deepEqual([status, problem?.code], [undefined, 'tls']);
    assert.match(problem?.message ?? '', /SELF_SIGNED|UNABLE_TO_VERIFY/);
  });

  test('fails with the certificate of another name only', async (t) => {
    const port = await secureReceiver(t);
    const before = tls.getCACertificates('default');
    tls.setDefaultCACertificates([...before, certificate.cert]);
    t.after(() => {
      tls.setDefaultCACertificates(before);
    });
    const lookup = () => Promise.resolve([withFamily('127.0.0.1')]);
    const attempt = attempts(t, { lookup });
    assert.equal((await attempt(`https://localhost${port}`)).status, 200);
    const { problem } = await attempt(`https://other.example${port}`);
    assert.equal(problem?.code, 'tls');
    assert.match(problem.message, /ALTNAME/);
  });

  test('fails with a receiver that does not speak TLS', async (t) => {
    const { port } = await httpSource(t, () => undefined);
    const { problem } = await attempts(t)(`https://127.0.0.1:${port}`);
    assert.equal(problem?.code, 'tls');
  });
});

function withFamily(address: string): { readonly address: string; readonly family: number } {
  return { address, family: address.includes(':') ? 6 : 4 };
}
