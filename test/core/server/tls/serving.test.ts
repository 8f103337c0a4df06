import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { WebSocket } from 'ws';
import { connectHttp2 } from '../h2/client.ts';
import { openSocket, readToClose } from '../../pipeline/raw-client.ts';
import { startTlsSite } from './tls-rig.ts';

suite('over TLS', () => {
  test('a page is that of its https origin, never the one of its http origin', async (t) => {
    const site = await startTlsSite(t, {
      tls: 'http_redirect = no',
      rules: [
        { origin: 'https://shop.example', path: '/', kind: 'content', content: 'sealed' },
        { origin: 'http://shop.example', path: '/', kind: 'content', content: 'open' },
        { path: '/', kind: 'content', content: 'any' },
      ],
      certificates: { tls: ['shop.example', 'other.example'] },
    });
    // Two requests each: the second gets a prepared answer.
    for (const time of ['first', 'second']) {
      const headers = { host: 'shop.example' };
      assert.equal((await site.ask('https://shop.example/', { headers })).body, 'sealed');
      assert.match(
        await site.raw('GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n'),
        /open$/,
      );
      assert.equal((await site.ask('https://other.example/')).body, 'any', time);
    }
  });

  test('operations and the websocket work as over HTTP', async (t) => {
    const site = await startTlsSite(t);
    const url = `https://localhost:${site.tlsPort}/svc1/server/status`;
    const { body } = await site.ask(url, { headers: { apikey: site.adminKey } });
    const [certificate] = JSON.parse(body).data.certificates;
    assert.deepEqual(certificate.names, ['localhost', '127.0.0.1']);
    assert.equal(certificate.problem, null);
    const [from, until] = [certificate.valid_from, certificate.valid_until].map(Date.parse);
    assert.ok(Number(from) < Date.now() && Number(until) > Date.now(), `${from} ${until}`);
    const metrics = await site.ask(`https://localhost:${site.tlsPort}/svc1/metrics`);
    const start = /^waymark_certificate_start_seconds\{section="\[tls\]"\} (\d+)$/m;
    assert.equal(Number(start.exec(metrics.body)?.[1]) * 1000, from);
    const websocket = new WebSocket(`wss://localhost:${site.tlsPort}/svc1/ws`, {
      ca: site.authority.cert,
      headers: { apikey: site.adminKey },
    });
    t.after(() => {
      websocket.terminate();
    });
    await once(websocket, 'open');
    websocket.send('{"a":"svc1.server.status","v":{}}');
    const [answer] = (await once(websocket, 'message')) as [Buffer];
    assert.equal(JSON.parse(answer.toString()).data.version, JSON.parse(body).data.version);
  });

  test('all requests are answered, also if the client has closed its side', async (t) => {
    const site = await startTlsSite(t, { rules: [{ path: '/page', content: 'page' }] });
    const get = 'GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n';
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      // The types lack this option of sockets.
      const halfOpen = { allowHalfOpen: true, maxVersion };
      for (const count of [1, 20]) {
        const socket = await site.shake(halfOpen);
        for (let at = 0; at < count; at += 1) socket.write(get);
        socket.end();
        const answers = await text(socket);
        assert.equal(answers.match(/\r\n\r\npage/g)?.length, count, maxVersion);
      }
      const silent = await site.shake(halfOpen);
      silent.end();
      assert.equal(await text(silent), '');
    }
  });

  test('HTTP/1.1 is parsed as strictly as without TLS, at each request of a connection', async (t) => {
    const site = await startTlsSite(t, { rules: [{ path: '/page', content: 'page' }] });
    const http2 = await connectHttp2(t, site);
    for (let at = 0; at < 3; at += 1) assert.equal((await http2.ask('/page')).status, 200);
    const socket = await site.shake({ ALPNProtocols: ['http/1.1'] });
    const head = `GET /page HTTP/1.1\r\nHost: ${http2.authority}\r\n\r\n`;
    let answers = '';
    socket.setEncoding('latin1').on('data', (answer: string) => (answers += answer));
    // An empty line gets no answer; the spaces in the last line are one too many.
    for (const piece of [head, head, head, `\r\n`, head, head.replace(' ', '  ')]) {
      socket.write(piece);
      if (piece === head) await once(socket, 'data');
    }
    await once(socket, 'end');
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ['200', '200', '200', '200', '400']);
    assert.match(site.logged(), / 400 GET \S+/);
  });

  test('plain HTTP to its port gets an error that says so, and no page', async (t) => {
    const site = await startTlsSite(t, { rules: [{ path: '/page', content: 'page' }] });
    const content = 'x'.repeat(100_000);
    for (const asked of [
      'GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'HEAD /page HTTP/1.0\r\n\r\n',
      `POST /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n${content}`,
    ]) {
      const socket = await openSocket(t, site.tlsPort);
      socket.write(asked);
      const answer = await readToClose(socket);
      assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/);
      assert.match(answer, /\r\n\r\n[^]*This port speaks HTTPS/);
    }
    assert.equal(site.logged().match(/ 400 - /g)?.length, 3);
    assert.equal((await site.ask(`https://localhost:${site.tlsPort}/page`)).body, 'page');
  });

  suite('the certificate is that of the requested name', () => {
    const table: readonly (readonly [asked: string | undefined, got: string])[] = [
      ['www.example.com', 'www.example.com'],
      ['WWW.example.com', 'www.example.com'],
      ['shop.example.com', '*.example.com'],
      ['a.shop.example.com', 'fallback.example'],
      ['example.com', 'fallback.example'],
      ['other.test', 'fallback.example'],
      [undefined, 'fallback.example'],
    ];
    for (const [asked, got] of table) {
      test(`${asked ?? 'no name'} gets ${got}`, async (t) => {
        const site = await startTlsSite(t, {
          certificates: {
            tls: ['fallback.example'],
            'tls.www.example.com': ['www.example.com'],
            'tls.*.example.com': ['*.example.com'],
          },
        });
        const socket = await site.shake({
          ...(asked !== undefined && { servername: asked }),
          checkServerIdentity: () => undefined,
        });
        assert.equal(socket.getPeerCertificate().subject.CN, got);
      });
    }

    test('without a default certificate, an unknown name is refused', async (t) => {
      const site = await startTlsSite(t, {
        certificates: { 'tls.www.example.com': ['www.example.com'] },
      });
      await site.shake({ servername: 'www.example.com' });
      await assert.rejects(site.shake({ servername: 'other.example' }));
      await assert.rejects(site.shake());
    });
  });

  for (const section of ['tls', 'tls.localhost']) {
    test(`only TLS 1.2 and 1.3 are spoken, with forward secrecy, by [${section}]`, async (t) => {
      const site = await startTlsSite(t, { certificates: { [section]: ['localhost'] } });
      const name = { servername: 'localhost' };
      for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
        const socket = await site.shake({ ...name, minVersion: version, maxVersion: version });
        assert.equal(socket.getProtocol(), version);
        assert.match(socket.getCipher().name, /GCM|CHACHA20/);
      }
      const weak = 'DEFAULT@SECLEVEL=0';
      await assert.rejects(
        site.shake({ ...name, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: weak }),
      );
      const cbc = 'ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES128-SHA256:AES128-GCM-SHA256';
      await assert.rejects(site.shake({ ...name, maxVersion: 'TLSv1.2', ciphers: cbc }));
    });
  }

  test('a malformed handshake gets no answer; other clients are not affected', async (t) => {
    const site = await startTlsSite(t);
    const socket = await openSocket(t, site.tlsPort);
    socket.write('SSH-2.0-OpenSSH_10.0\r\n');
    assert.doesNotMatch(await readToClose(socket), /HTTP/);
    assert.equal((await site.ask('https://localhost/')).status, 404);
  });

  test('a client that never ends its handshake does not delay a stop', async (t) => {
    const site = await startTlsSite(t);
    const socket = connect(site.tlsPort, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    // A later connection has been served, so the server has accepted this one.
    await site.ask('https://localhost/');
    assert.deepEqual(await site.waymark.stop(100), { cut: 0 });
    if (!socket.closed) await once(socket, 'close');
  });
});

suite('Strict-Transport-Security', () => {
  const files = { 'site/a.txt': 'a', 'own/b.txt': 'b' };
  const mounts =
    '[disk.site]\nroot = site\n[disk.own]\npath = /own/\nroot = own\n' +
    '[disk.own.headers]\nStrict-Transport-Security = max-age=1\n';
  const field = 'strict-transport-security';

  test('is not sent unless configured', async (t) => {
    const site = await startTlsSite(t, { files, ini: mounts });
    assert.equal((await site.ask('https://localhost/a.txt')).headers[field], undefined);
  });

  test('is sent with every response over TLS, and with none over HTTP', async (t) => {
    const tls = 'hsts = 365d, subdomains\nhttp_redirect = no';
    const site = await startTlsSite(t, { files, ini: mounts, tls });
    const value = 'max-age=31536000; includeSubDomains';
    for (const path of ['/a.txt', '/a.txt', '/none', '/svc1/health', '/svc1/server/status']) {
      assert.equal((await site.ask(`https://localhost${path}`)).headers[field], value, path);
    }
    assert.equal((await site.ask('https://localhost/own/b.txt')).headers[field], 'max-age=1');
    assert.equal((await fetch(`${site.url}/a.txt`)).headers.get(field), null);
  });
});
