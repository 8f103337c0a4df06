import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { WebSocket } from 'ws';
import { readTestConfig } from '../../harness.ts';
import { startTlsSite, type TlsSite } from '../server/tls/tls-rig.ts';

const page = { path: '/a', kind: 'content', content: 'page' };

/** Sends a request without TLS; returns status and Location, with PORT for the TLS port. */
async function ask(
  site: TlsSite,
  request: string,
  host: string,
  fields = '',
): Promise<readonly [status: string | undefined, location: string | undefined]> {
  const head = `${request} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${fields}\r\n`;
  const answer = await site.raw(head);
  const location = /^location: (.*)\r$/im.exec(answer)?.[1];
  return [
    /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1],
    location?.replace(`:${site.tlsPort}`, ':PORT'),
  ] as const;
}

suite('a request over HTTP is redirected to https', () => {
  const certificates = {
    tls: ['*.main.example', 'main.example', '127.0.0.1', '::1'],
    'tls.shop.example': ['shop.example'],
    'tls.*.shop.example': ['*.shop.example'],
  };
  const table: readonly (readonly [
    request: string,
    host: string,
    status: string,
    location: string | undefined,
  ])[] = [
    ['GET /a?b=c&d', 'main.example', '301', 'https://main.example:PORT/a?b=c&d'],
    ['HEAD /a', 'main.example', '301', 'https://main.example:PORT/a'],
    ['GET /none', 'www.main.example', '301', 'https://www.main.example:PORT/none'],
    [
      'GET /A%20b/%C3%A9?%20',
      'Shop.Example:8080',
      '301',
      'https://shop.example:PORT/A%20b/%C3%A9?%20',
    ],
    ['GET //evil.example/x', 'shop.example', '301', 'https://shop.example:PORT//evil.example/x'],
    ['GET /a', 'b.shop.example.', '301', 'https://b.shop.example:PORT/a'],
    ['GET /a', '127.0.0.1', '301', 'https://127.0.0.1:PORT/a'],
    ['GET /a', '[::1]:80', '301', 'https://[::1]:PORT/a'],
    ['POST /a', 'main.example', '308', 'https://main.example:PORT/a'],
    ['OPTIONS *', 'main.example', '308', 'https://main.example:PORT/'],
    ['GET http://shop.example/x?y=//z', 'shop.example', '301', 'https://shop.example:PORT/x?y=//z'],
    ['GET http://shop.example?y', 'shop.example', '301', 'https://shop.example:PORT/?y'],
    // A foreign host is replaced by the main host.
    ['GET /a', 'evil.example', '301', 'https://main.example:PORT/a'],
    ['GET /a', 'a.b.shop.example', '301', 'https://main.example:PORT/a'],
    ['GET /a', '203.0.113.9', '301', 'https://main.example:PORT/a'],
    [
      'GET /svc1/server/status',
      'main.example',
      '301',
      'https://main.example:PORT/svc1/server/status',
    ],
    // An invalid request is refused, not redirected.
    ['GET /%2e%2e/a', 'main.example', '400', undefined],
    ['GET /a', 'main.example@evil.example', '400', undefined],
    // Health checks and ACME challenges.
    ['GET /svc1/health', 'main.example', '200', undefined],
    ['GET /.well-known/acme-challenge/x', 'main.example', '404', undefined],
  ];
  test('with path and query unchanged, to a known host', async (t) => {
    const site = await startTlsSite(t, { certificates, rules: [page] });
    for (const [request, host, status, location] of table) {
      assert.deepEqual(await ask(site, request, host), [status, location], `${request} ${host}`);
    }
  });

  test('to the public URL, if the ini file has one', async (t) => {
    const site = await startTlsSite(t, {
      certificates,
      server: 'public_url = https://www.main.example:9443',
    });
    const to = async (host: string) => (await ask(site, 'GET /a', host))[1];
    assert.equal(await to('www.main.example'), 'https://www.main.example:9443/a');
    assert.equal(await to('evil.example'), 'https://www.main.example:9443/a');
    assert.equal(await to('shop.example'), 'https://shop.example:PORT/a');
  });

  test('or refused, if no certificate names the host', async (t) => {
    const site = await startTlsSite(t, { certificates: { tls: ['*.main.example'] } });
    assert.deepEqual(await ask(site, 'GET /a', 'www.main.example'), [
      '301',
      'https://www.main.example:PORT/a',
    ]);
    assert.deepEqual(await ask(site, 'GET /a', 'evil.example'), ['403', undefined]);
  });

  test('not if a trusted proxy got it over https', async (t) => {
    const site = await startTlsSite(t, {
      rules: [page],
      server: 'trust_proxy = 127.0.0.1',
    });
    const secure = 'X-Forwarded-Proto: https\r\n';
    for (const time of ['first', 'second']) {
      assert.deepEqual(await ask(site, 'GET /a', 'localhost', secure), ['200', undefined]);
      assert.equal((await ask(site, 'GET /a', 'localhost'))[0], '301', time);
    }
  });

  test('not if it comes over a unix socket, from a proxy', async (t) => {
    const site = await startTlsSite(t, { rules: [page], server: 'listen[] = unix:w.sock' });
    const socket = connect(join(site.folder, 'w.sock'));
    socket.write('GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    assert.match(chunk.toString(), /^HTTP\/1\.1 200/);
  });

  test('also for a websocket', async (t) => {
    const site = await startTlsSite(t);
    const websocket = new WebSocket(`${site.url.replace('http', 'ws')}/svc1/ws`);
    const [, message] = (await once(websocket, 'unexpected-response')) as [
      unknown,
      { statusCode: number; headers: { location: string } },
    ];
    assert.equal(message.statusCode, 301);
    assert.equal(message.headers.location, `https://localhost:${site.tlsPort}/svc1/ws`);
  });

  test('as the ini file says, from the first request after a reload', async (t) => {
    const site = await startTlsSite(t, { rules: [page] });
    const status = async () => (await ask(site, 'GET /a', 'localhost'))[0];
    assert.equal(await status(), '301');
    const text = await readFile(site.iniFile, 'utf8');
    const reload = async (line: string) => {
      await writeFile(site.iniFile, text.replace('[tls]', `[tls]\nhttp_redirect = ${line}`));
      site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
    };
    await reload('no');
    assert.deepEqual([await status(), await status()], ['200', '200']);
    await reload('yes');
    assert.equal(await status(), '301');
  });
});
