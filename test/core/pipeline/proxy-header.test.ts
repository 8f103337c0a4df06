import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { proxyHeader, proxyVersions } from '../../../src/core/http/reading/proxy-protocol.ts';
import { rawExchange, startSite } from '../../harness.ts';
import { httpSource } from '../outbound/sources.ts';
import { startTlsSite } from '../server/tls/tls-rig.ts';

const request = 'GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const forwarded =
  'GET /a HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 6.6.6.6\r\nConnection: close\r\n\r\n';

/** An application that answers with the address of its client. */
async function application(t: TestContext): Promise<string> {
  const { origin } = await httpSource(t, ({ headers }, response) => {
    response.end(`from ${String(headers['x-forwarded-for'])}`);
  });
  return `[proxy.app]\nsource = ${origin}\ncache = no\n`;
}

const trusting = 'proxy_protocol = 127.0.0.0/8, ::1\n';
const v1 = 'PROXY TCP4 192.0.2.7 192.0.2.2 1234 80\r\n';

suite('a connection from a network of `proxy_protocol`', () => {
  test('has the client that its header names', async (t) => {
    const site = await startSite(t, { server: trusting, ini: await application(t) });
    for (const [header, address] of [
      [v1, '192.0.2.7'],
      [proxyHeader('v2', '2001:db8::7').toString('latin1'), '2001:db8::7'],
      ['PROXY UNKNOWN\r\n', '127.0.0.1'],
    ] as const) {
      for (const asked of [request, forwarded]) {
        const answer = await rawExchange(site.port, header + asked);
        assert.ok(answer.endsWith(`from ${address}`), answer);
      }
    }
    assert.match(site.logged(), /192\.0\.2\.7/);
  });

  test('may send it in pieces, and several requests behind it', async (t) => {
    const site = await startSite(t, { server: trusting, ini: await application(t) });
    const socket: Socket = connect(site.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.setNoDelay(true);
    for (const piece of [v1.slice(0, 3), v1.slice(3, 20), v1.slice(20) + request.slice(0, 9)]) {
      await new Promise<void>((resolve) => {
        socket.write(piece, () => setImmediate(resolve));
      });
    }
    socket.write(request.slice(9).replace('close', 'keep-alive') + request);
    const answer = await text(socket);
    assert.equal(answer.split('from 192.0.2.7').length, 3, answer);
  });

  test('closes without an answer if it has no valid header', async (t) => {
    const site = await startSite(t, { server: trusting, ini: await application(t) });
    for (const sent of [request, `PROXY TCP4 x y 1 2\r\n${request}`, `\r\n\r\nx${request}`]) {
      assert.equal(await rawExchange(site.port, sent).catch(() => ''), '', sent);
    }
    const half = connect(site.port, '127.0.0.1');
    half.end('PROXY TCP4 ');
    assert.equal(await text(half), '');
  });

  test('names the client of TLS and HTTP/2 too', async (t) => {
    const tls = 'http_redirect = no';
    const site = await startTlsSite(t, { tls, server: trusting, ini: await application(t) });
    const open = async (ALPNProtocols: string[]) => {
      const tcp = connect(site.tlsPort, '127.0.0.1');
      tcp.write(proxyHeader('v2', '192.0.2.7'));
      const ca = site.authority.cert;
      const socket = connectTls({ socket: tcp, servername: 'localhost', ca, ALPNProtocols });
      await once(socket, 'secureConnect');
      return socket;
    };
    const plain = await open(['http/1.1']);
    plain.write(request);
    assert.ok((await text(plain)).endsWith('from 192.0.2.7'));
    const socket = await open(['h2']);
    const session = connectHttp2('https://localhost', { createConnection: () => socket });
    t.after(() => {
      session.destroy();
    });
    assert.equal(await text(session.request({ ':path': '/a' })), 'from 192.0.2.7');
    const tcp = connect(site.port, '127.0.0.1');
    tcp.write(v1);
    const clear = connectHttp2('http://localhost', { createConnection: () => tcp });
    t.after(() => {
      clear.destroy();
    });
    assert.equal(await text(clear.request({ ':path': '/a' })), 'from 192.0.2.7');
  });
});

test('a stranger names no client: its header is a malformed request', async (t) => {
  const server = 'proxy_protocol = 10.0.0.0/8\n';
  const site = await startSite(t, { server, ini: await application(t) });
  for (const header of [v1, proxyHeader('v2', '192.0.2.7').toString('latin1')]) {
    assert.match(await rawExchange(site.port, header + request), /^HTTP\/1\.1 (?:400|501) /);
  }
  assert.ok((await rawExchange(site.port, request)).endsWith('from 127.0.0.1'));
});

suite('a source with `proxy_protocol`', () => {
  for (const version of proxyVersions) {
    test(`gets the client of each request: ${version}`, async (t) => {
      const behind = await startSite(t, { server: trusting, ini: await application(t) });
      const site = await startSite(t, {
        server: 'trust_proxy = 127.0.0.0/8\n',
        ini: `[proxy.b]\nsource = ${behind.url}\nproxy_protocol = ${version}\nhealth = /a\n`,
      });
      for (const client of ['192.0.2.1', '192.0.2.2', '2001:db8::7']) {
        for (const method of ['GET', 'POST']) {
          const headers = { 'x-forwarded-for': client };
          const body = method === 'POST' ? 'text' : null;
          const reply = await fetch(`${site.url}/a`, { method, headers, body });
          assert.equal(await reply.text(), `from ${client}`);
        }
      }
    });
  }
});
