import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { startSite } from '../../../harness.ts';

/**
 * An application that switches to any protocol, says what it was asked, and then repeats what it
 * gets, until the other side ends; it answers `/plain` in HTTP.
 */
async function application(t: TestContext): Promise<string> {
  const server = http.createServer(
    { shouldUpgradeCallback: ({ url }) => url !== '/plain' },
    (request, response) => {
      const { upgrade = 'none', 'http2-settings': settings = 'none' } = request.headers;
      response.end([request.method, upgrade, settings, 'in HTTP'].join(' '));
    },
  );
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    void text(request).then((content) => {
      const { upgrade, host, 'x-own': own, 'x-switch': other = upgrade } = request.headers;
      const said = [request.method, request.url, upgrade, own, host, content].join(' ');
      const fields = `Connection: Upgrade\r\nUpgrade: ${String(other)}\r\n`;
      socket.write(`HTTP/1.1 101 Go\r\n${fields}X-Stream: 1\r\nContent-Length: 3\r\n\r\n${said}|`);
      if (head.length > 0) socket.unshift(head);
      socket.on('error', () => undefined).pipe(socket);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A request with an Upgrade; its lines, and its content. */
function asking(line: string, fields: readonly string[] = [], content = ''): string {
  const all = ['Host: localhost', 'Connection: Upgrade', 'X-Own: o', ...fields];
  return [`${line} HTTP/1.1`, ...all, '', content].join('\r\n');
}

/** A connection to a site, with all that it has received. */
function client(t: TestContext, port: number) {
  const socket: Socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.after(() => socket.destroy());
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk;
  });
  return {
    socket,
    /** Resolves to all of it, once it contains a text. */
    until: async (part: string): Promise<string> => {
      while (!received.includes(part)) {
        assert.ok(!socket.readableEnded && !socket.destroyed, received);
        await Promise.race(['data', 'end', 'close'].map((event) => once(socket, event)));
      }
      return received;
    },
    /** Resolves to all of it at the end. */
    whole: async (): Promise<string> => {
      if (!socket.readableEnded) await once(socket, 'end');
      return received;
    },
  };
}

const proxyFor = (origin: string): string => `[proxy.app]\nsource = ${origin}\n`;

/** Why a test with content is left out: its application is a server of Node's own. */
const leftOut =
  Number(process.versions.node.split('.', 1)[0]) < 26 &&
  'the HTTP server of Node.js 24 does not read the content of a request with Upgrade';

suite('a request for another protocol', () => {
  const chunks = ['Transfer-Encoding: chunked'];
  const cases: Readonly<Record<string, readonly [request: string, said: string]>> = {
    'SPDY, as kubectl asks': [
      asking('POST /exec?command=sh', ['Upgrade: SPDY/3.1', 'Content-Length: 0']),
      'POST /exec?command=sh SPDY/3.1 o localhost |',
    ],
    'tcp with content, as docker exec asks': [
      asking('POST /exec/1/start', ['Upgrade: tcp', 'Content-Length: 12'], '{"Tty":true}'),
      'POST /exec/1/start tcp o localhost {"Tty":true}|',
    ],
    'one with content in chunks': [
      asking('PUT /a', ['Upgrade: x', ...chunks], '3\r\nabc\r\n0\r\n\r\n'),
      'PUT /a x o localhost abc|',
    ],
    'one of several': [asking('GET /a', ['Upgrade: h2c, a, b/2']), 'GET /a a, b/2 o localhost |'],
  };
  for (const [what, [request, said]] of Object.entries(cases)) {
    for (const pace of ['whole', 'in pieces']) {
      const name = `goes to the application, and bytes pass both ways: ${what}, ${pace}`;
      test(name, { skip: what.includes('content') && leftOut }, async (t) => {
        const site = await startSite(t, { ini: proxyFor(await application(t)) });
        const { socket, until, whole } = client(t, site.port);
        // The bytes of the protocol may follow at once.
        const bytes = Buffer.from(`${request}early\0`, 'latin1');
        if (pace === 'whole') socket.write(bytes);
        else for (const byte of bytes) socket.write(Buffer.of(byte));
        const head = await until('early\0');
        assert.match(head, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
        assert.match(head, /^X-Stream: 1\r$/m);
        // A 101 has no content, whatever the application says.
        assert.doesNotMatch(head, /^content-length/im);
        const asked = / ([a-z]\S*(?:, \S+)?) o localhost/i.exec(said)?.[1] ?? '';
        assert.ok(head.includes(`Upgrade: ${asked}\r\nConnection: Upgrade\r\n`), head);
        // The client ends its side first, and gets the rest.
        socket.end('late');
        const all = await whole();
        assert.equal(all.slice(all.indexOf('\r\n\r\n') + 4), `${said}early\0late`);
      });
    }
  }

  test('reaches a page rule that lists UPGRADE and the method', async (t) => {
    const source = `${await application(t)}/*`;
    const rule = (path: string, methods: readonly string[]) => ({
      ...{ path: `${path}*`, kind: 'content.fetch', enginedata: { source, methods } },
    });
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
      rules: [rule('/any/', ['GET', 'POST', 'UPGRADE']), rule('/get/', ['GET', 'UPGRADE'])],
    });
    for (const [line, status] of [
      ['POST /any/a', '101'],
      ['GET /get/a', '101'],
      // The source could ignore the Upgrade, and carry the method out.
      ['POST /get/a', '405'],
    ] as const) {
      const { socket, until } = client(t, site.port);
      socket.write(asking(line, ['Upgrade: tcp', 'Content-Length: 0']));
      assert.match(await until('\r\n\r\n'), new RegExp(`^HTTP/1\\.1 ${status} `), line);
      socket.destroy();
    }
  });

  const ignored: Readonly<Record<string, readonly [request: string, said: string]>> = {
    'HTTP/2 in the clear, which would lead past all rules': [
      asking('GET /plain', ['Upgrade: h2c', 'HTTP2-Settings: AAMA']),
      'GET none none in HTTP',
    ],
    TLS: [asking('OPTIONS /plain', ['Upgrade: TLS/1.2']), 'OPTIONS none none in HTTP'],
    'one that the application ignores': [
      asking('POST /plain', ['Upgrade: tcp', 'Content-Length: 0']),
      'POST tcp none in HTTP',
    ],
  };
  for (const [what, [request, said]] of Object.entries(ignored)) {
    test(`is answered in HTTP: ${what}`, async (t) => {
      const site = await startSite(t, { ini: proxyFor(await application(t)) });
      const { socket, until } = client(t, site.port);
      socket.write(request);
      const all = await until(said);
      assert.match(all, /^HTTP\/1\.1 200 /);
    });
  }

  test('is ignored by files, and the connection goes on', async (t) => {
    const files = { 'public/a.txt': 'file' };
    const site = await startSite(t, { files, ini: '[disk.site]\nroot = public\n' });
    const { socket, until } = client(t, site.port);
    socket.write(asking('GET /a.txt', ['Upgrade: tcp']));
    assert.match(await until('file'), /^HTTP\/1\.1 200 /);
    socket.write(asking('GET /none.txt', ['Upgrade: tcp']));
    await until('HTTP/1.1 404 ');
  });

  test('is not switched to a protocol that it does not name', async (t) => {
    const site = await startSite(t, { ini: proxyFor(await application(t)) });
    const { socket, until } = client(t, site.port);
    socket.write(asking('GET /a', ['Upgrade: tcp', 'X-Switch: other']));
    assert.match(await until('\r\n\r\n'), /^HTTP\/1\.1 502 /);
  });

  test('takes its turn behind an answer that is not sent yet', { skip: leftOut }, async (t) => {
    let answer: (() => void) | undefined;
    const slow = http.createServer((_, response) => {
      answer = () => response.end('first');
    });
    await once(slow.listen(0, '127.0.0.1'), 'listening');
    t.after(() => slow.close());
    const ini = `${proxyFor(await application(t))}
[proxy.slow]\npath = /slow/\nsource = http://127.0.0.1:${(slow.address() as AddressInfo).port}\n`;
    const site = await startSite(t, { ini });
    const { socket, until } = client(t, site.port);
    const content = ['Upgrade: tcp', 'Content-Length: 3'];
    socket.write('GET /slow/ HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(slow, 'request');
    socket.write(asking('POST /a', content, 'abc'));
    answer?.();
    const all = await until('abc|');
    assert.ok(all.indexOf('first') < all.indexOf('HTTP/1.1 101 '), all);
  });
});
