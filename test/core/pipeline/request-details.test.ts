import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectHttp2 } from '../server/h2/client.ts';
import { startTlsSite } from '../server/tls/tls-rig.ts';

test('the access log has the version of TLS and of HTTP, also of a prepared answer', async (t) => {
  const site = await startTlsSite(t, {
    tls: 'http_redirect = no',
    ini: '[log]\nline = "of {path}: {tls} {protocol} {status} {user} {bytes_in} in"\n',
    rules: [{ path: '/page', content: 'x' }],
  });
  const http2 = await connectHttp2(t, site);
  for (const path of ['/page', '/page', '/h2']) await http2.ask(path);
  const url = `https://localhost:${site.tlsPort}`;
  await site.ask(`${url}/page`);
  await site.ask(`${url}/svc1/server/status`, { method: 'POST', body: '{"v":{}}' });
  await (await fetch(`${site.url}/clear`)).text();
  await site.untilLogged(/of \/clear/);
  const lines = site.logged().split('\n');
  assert.deepEqual(
    lines.filter((line) => line.startsWith('of ')).map((line) => line.replace('of ', '')),
    [
      '/page: TLSv1.3 HTTP/2.0 200 - 0 in',
      '/page: TLSv1.3 HTTP/2.0 200 - 0 in',
      '/h2: TLSv1.3 HTTP/2.0 404 - 0 in',
      '/page: TLSv1.3 HTTP/1.1 200 - 0 in',
      '/svc1/server/status: TLSv1.3 HTTP/1.1 401 - 8 in',
      '/clear: - HTTP/1.1 404 - 0 in',
    ],
  );
});
