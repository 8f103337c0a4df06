import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { matchesPattern } from '../../../src/modules/headers/response-headers.ts';
import { startSite } from '../../harness.ts';
import { httpSource } from '../outbound/sources.ts';
import { ask } from '../../modules/files/disk-rig.ts';

suite('[headers.<name>]', () => {
  test('changes every answer of its paths: files, pages, sources, redirects, errors and 304', async (t) => {
    const { origin } = await httpSource(t, (_, response) => {
      const fields = { 'x-own': 'source', 'x-powered-by': 'app', 'set-cookie': 'a=b' };
      response.writeHead(200, { ...fields, 'cache-control': 'max-age=60' }).end('far');
    });
    const site = await startSite(t, {
      ini: `
[disk.site]
root = site
cache_control = no-cache
[proxy.app]
path = /app/
source = ${origin}
[proxy.app.headers]
X-App = "\${path}"
X-Powered-By =
[headers.all]
X-Own = all
Link[] = </a.css>
Link[] = </b.css>
Vary = X-Theme
[headers.some]
path = *.txt, /app/*
X-Own = some
Cache-Control = "public, max-age=9"
`,
      files: { 'site/a.txt': 'a'.repeat(2_000), 'site/dir/index.html': 'dir', 'site/b.css': 'b' },
      rules: [
        { path: '/page', kind: 'content', content: 'page' },
        { path: '/to', kind: 'resolve', enginedata: { target: '/page' } },
      ],
    });
    for (let turn = 0; turn < 3; turn += 1) {
      for (const [path, status, own, cacheControl] of [
        ['/a.txt', 200, 'some', 'public, max-age=9'],
        ['/b.css', 200, 'all', 'no-cache'],
        ['/dir', 301, 'all', undefined],
        ['/page', 200, 'all', undefined],
        ['/none', 404, 'all', 'no-store'],
        ['/app/x', 200, 'some', 'public, max-age=9'],
      ] as const) {
        const seen = await ask(site.url, path);
        assert.equal(seen.status, status, path);
        assert.equal(seen.fields['x-own'], own, path);
        assert.equal(seen.fields.link, '</a.css>, </b.css>', path);
        assert.match(seen.fields.vary ?? '', /X-Theme/, path);
        if (cacheControl !== undefined) assert.equal(seen.fields['cache-control'], cacheControl);
      }
    }
    const app = await ask(site.url, '/app/x');
    assert.deepEqual([app.fields['x-app'], app.fields['x-powered-by']], ['/app/x', undefined]);
    assert.deepEqual(app.fields['set-cookie'], ['a=b']);
    const { fields } = await ask(site.url, '/a.txt');
    assert.match(fields.vary ?? '', /Accept-Encoding/);
    const known = await ask(site.url, '/a.txt', { headers: { 'if-none-match': fields.etag } });
    assert.deepEqual([known.status, known.fields['x-own']], [304, 'some']);
    const own = await ask(site.url, '/svc1/health');
    assert.equal(own.fields['x-own'], undefined);
  });

  test('lets no cache store an error', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      response.writeHead(request.url === '/gone.png' ? 404 : 503).end('far');
    });
    const site = await startSite(t, {
      ini: `
[disk.site]
root = site
[proxy.app]
path = /app/
source = ${origin}/
[headers.all]
CDN-Cache-Control = no-store
[headers.pictures]
path = *.png
Cache-Control = "public, max-age=31536000"
Expires = Thu, 31 Dec 2037 23:55:55 GMT
Cloudflare-CDN-Cache-Control = max-age=600
Surrogate-Control = max-age=600
Edge-Control = max-age=600
X-Accel-Expires = 600
X-Own = picture
`,
      files: { 'site/a.png': 'a' },
    });
    for (const [path, status, control, expires] of [
      ['/a.png', 200, 'public, max-age=31536000', 'Thu, 31 Dec 2037 23:55:55 GMT'],
      ['/none.png', 404, 'no-store', undefined],
      ['/app/gone.png', 404, undefined, undefined],
      ['/app/late.png', 503, undefined, undefined],
    ] as const) {
      const seen = await ask(site.url, path);
      assert.deepEqual(
        [seen.status, seen.fields['cache-control'], seen.fields.expires, seen.fields['x-own']],
        [status, control, expires, 'picture'],
        path,
      );
      assert.equal(seen.fields['cdn-cache-control'], 'no-store', path);
      for (const name of ['cloudflare-cdn-cache-control', 'surrogate-control']) {
        assert.equal(seen.fields[name], status === 200 ? 'max-age=600' : undefined, path);
      }
      for (const name of ['edge-control', 'x-accel-expires']) {
        assert.equal(seen.fields[name] !== undefined, status === 200, path);
      }
    }
  });

  test('fills in variables for each request, also of an answer that is kept', async (t) => {
    const site = await startSite(t, {
      server: 'trust_proxy = 127.0.0.0/8',
      ini: '[auth]\nuser_header = X-User\n[headers.a]\nX-For = "${user} ${request.header.X-A} ${client.ip}"\n',
      rules: [{ path: '/page', kind: 'content', content: 'page' }],
    });
    for (const user of ['ada', 'bob', 'ada']) {
      const headers = { 'x-user': user, 'x-a': 'x', 'x-forwarded-for': '192.0.2.7' };
      const { fields } = await ask(site.url, '/page', { headers });
      assert.equal(fields['x-for'], `${user} x 192.0.2.7`);
    }
    assert.equal((await ask(site.url, '/page')).fields['x-for'], '127.0.0.1');
  });

  test('writes with security = strict what checkers of security ask for', async (t) => {
    const site = await startSite(t, {
      ini: '[headers.a]\nsecurity = strict\nX-Frame-Options = DENY\n',
      rules: [{ path: '/page', kind: 'content', content: 'page' }],
    });
    const { fields } = await ask(site.url, '/page');
    assert.equal(fields['x-frame-options'], 'DENY');
    assert.equal(fields['x-content-type-options'], 'nosniff');
    assert.equal(fields['referrer-policy'], 'strict-origin-when-cross-origin');
    assert.match(
      String(fields['content-security-policy']),
      /default-src 'self'.*object-src 'none'/,
    );
    assert.match(String(fields['permissions-policy']), /camera=\(\)/);
    assert.equal(fields['cross-origin-opener-policy'], 'same-origin');
  });

  test('refuses what it cannot do, with the line', async (t) => {
    for (const [lines, wanted] of [
      ['[headers.a]\n', /\[headers\.a\] has no effect: add a field/],
      ['[headers.a]\nexpires = 30d\n', /it is a date.*`Cache-Control = max-age=2592000`/],
      ['[headers.a]\nExpires = max\n', /`Expires` cannot be `max`: it is a date/],
      ['[headers.a]\nContent-Length = 5\n', /`Content-Length`: the server sets that field itself/],
      ['[headers.a]\nX-A = ${nobody}\n', /of a request there are .*\$\{client\.ip\}/],
      ['[headers.a]\npath = assets\nX-A = b\n', /write a path that begins with \/ or \*/],
      ['[headers.a]\nX-A = b\nX-A = c\n', /X-A/],
      ['[headers.a]\nBad Name = b\n', /not a valid name of a header field/],
      ['[proxy.x.headers]\nX-A = b\n', /there is no \[proxy\.x\]/],
    ] as const) {
      await assert.rejects(startSite(t, { ini: lines }), wanted, lines);
    }
  });
});

test('a pattern matches the whole path', () => {
  for (const [pattern, path, wanted] of [
    ['/a', '/a', true],
    ['/a', '/a/b', false],
    ['/*', '/', true],
    ['/a/*', '/a/', true],
    ['/a/*', '/b/', false],
    ['*.js', '/x/y.js', true],
    ['*.js', '/x/y.jsx', false],
    ['/a/*/c*.js', '/a/b/c/d.js', true],
    ['/a/*/c*.js', '/a/c.js', false],
    ['/ab*ba', '/aba', false],
    ['/ab*ba', '/abba', true],
    ['*', '/anything', true],
  ] as const) {
    assert.equal(matchesPattern(pattern, path), wanted, `${pattern} ${path}`);
  }
});
