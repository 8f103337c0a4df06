import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { suite, test } from 'node:test';
import { httpSource } from '../outbound/sources.ts';
import { startSite } from '../../harness.ts';

// Does nothing if the build is that of `npm ci`.
spawnSync(process.execPath, [fileURLToPath(new URL('../../../console/build.js', import.meta.url))]);

const own = 'http://127.0.0.1';

suite('the files of the console', () => {
  test('have a strict policy; files with a hash in their name may be kept for good', async (t) => {
    const { url } = await startSite(t);
    const page = await fetch(`${url}/svc1/console/`);
    assert.equal(page.status, 200);
    const policy = page.headers.get('content-security-policy') ?? '';
    for (const directive of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ]) {
      assert.ok(policy.split('; ').includes(directive), directive);
    }
    assert.equal(page.headers.get('cross-origin-opener-policy'), 'same-origin');
    assert.equal(page.headers.get('x-frame-options'), 'DENY');
    const html = await page.text();
    assert.doesNotMatch(html, /<script>|<style| on\w+=|https?:/);
    const script = /assets\/[\w-]+\.js/.exec(html)?.[0] ?? '';
    const asset = await fetch(`${url}/svc1/console/${script}`);
    assert.match(asset.headers.get('cache-control') ?? '', /immutable/);
    const preview = await fetch(`${url}/svc1/console/preview.html`);
    assert.match(preview.headers.get('content-security-policy') ?? '', /^sandbox allow-scripts;/);
    const missing = await fetch(`${url}/svc1/console/../console/none.js`);
    assert.equal(missing.status, 404);
    const bare = await fetch(`${url}/svc1/console`, { redirect: 'manual' });
    assert.deepEqual([bare.status, bare.headers.get('location')], [308, '/svc1/console/']);
    assert.match(await (await fetch(`${url}/svc1/`)).text(), /svc1\/console\//);
  });

  test('are not there with console = no', async (t) => {
    const { url } = await startSite(t, { server: 'console = no' });
    const page = await fetch(`${url}/svc1/console/`);
    assert.equal(page.status, 404);
    assert.match(await page.text(), /console is no/);
    assert.doesNotMatch(await (await fetch(`${url}/svc1/`)).text(), /console/);
  });

  test('are at an origin of their own alone, with nothing of the site', async (t) => {
    // The site is under localhost, the console under the address.
    const site = await startSite(t, {
      server: `console = ${own}:1`,
      rules: [
        { path: '/', kind: 'content', content: '<h1>Front</h1>' },
        { path: 'crumb', kind: 'resolve', enginedata: { html: '<script>1</script>' } },
      ],
    });
    const get = async (host: string, path: string) => {
      const reply = await site.raw(
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n`,
      );
      return { status: Number(reply.split(' ')[1]), reply };
    };
    assert.equal((await get('127.0.0.1:1', '/svc1/console/')).status, 200);
    const root = await get('127.0.0.1:1', '/');
    assert.equal(root.status, 308);
    assert.match(root.reply, /location: \/svc1\/console\//i);
    assert.equal((await get('127.0.0.1:1', '/other')).status, 404);
    const crumb = await get('127.0.0.1:1', '/svc1/userinterface.link.htm?k=crumb');
    assert.match(crumb.reply, /content-security-policy: sandbox/i);
    assert.equal((await get(`localhost:${site.port}`, '/')).status, 200);
    const elsewhere = await get(`localhost:${site.port}`, '/svc1/console/');
    assert.equal(elsewhere.status, 404);
    assert.match(elsewhere.reply, /The console is at http:\/\/127\.0\.0\.1:1\/svc1\/console\//);
  });
});

suite('a service worker', () => {
  const worker = { 'service-worker': 'script' };
  const script = { kind: 'content', content: '1', contenttype: 'text/javascript' };

  test('from a page rule may not control the console, one from disk may', async (t) => {
    const { url } = await startSite(t, {
      ini: '[disk.site]\nroot = site\n',
      files: { 'site/disk.js': '1' },
      rules: [
        { path: '/rule.js', ...script },
        { path: '/app/rule.js', ...script },
      ],
    });
    const status = async (path: string, headers: Record<string, string> = worker) =>
      (await fetch(url + path, { headers })).status;
    assert.equal(await status('/rule.js', {}), 200);
    for (const headers of [worker, { 'sec-fetch-dest': 'serviceworker' }]) {
      // The answer to the request before is prepared by now.
      assert.equal(await status('/rule.js', headers), 403);
      assert.equal(await status('/app/rule.js', headers), 200);
      assert.equal(await status('/disk.js', headers), 200);
    }
  });

  for (const base of ['', '/way']) {
    test(`does not come from below ${base}/svc1/, in any spelling`, async (t) => {
      const enginedata = { html: 'self.x = 1' };
      const { url } = await startSite(t, {
        server: base === '' ? '' : `base = ${base}`,
        rules: [
          { path: '/k', kind: 'resolve', contenttype: 'text/javascript', enginedata },
          { path: '/page.js', ...script },
        ],
      });
      const place = `_v.origin=${encodeURIComponent(url)}&_v.path=/page.js`;
      for (const path of [
        ...['/svc1/userinterface.link.htm?k=/k', '/svc1/userinterface/link.htm?k=/k'],
        ...['/%73vc1/userinterface.link.htm?k=/k', '/svc1/./userinterface.link.htm?k=/k'],
        ...[`/svc1/userinterface/get_content?${place}`, `/svc1/userinterface.get_content?${place}`],
        ...['/svc1/console/preview.js', '/svc1/docs/theme.js', '/svc1/health'],
      ]) {
        for (const headers of [worker, { 'sec-fetch-dest': 'serviceworker' }]) {
          assert.equal((await fetch(url + base + path, { headers })).status, 403, path);
        }
      }
      const crumb = await fetch(`${url}${base}/svc1/userinterface.link.htm?k=/k`);
      assert.deepEqual([crumb.status, await crumb.text()], [200, 'self.x = 1']);
    });
  }

  test('gets no scope of a source over operations or the console', async (t) => {
    const scopes = [
      '/',
      '/s',
      '/svc1',
      '/svc1/',
      '/svc1/console/',
      '../',
      '/app/',
      '/app/x',
      '/%73vc1/',
    ];
    const source = await httpSource(t, (request, response) => {
      const scope = new URL(request.url ?? '', 'http://x').searchParams.get('scope') ?? '';
      response.writeHead(200, {
        'content-type': 'text/javascript',
        ...(scope !== '' && { 'service-worker-allowed': scope }),
      });
      response.end('1');
    });
    const fetched = (path: string, pass: readonly string[]) => ({
      ...{ path, kind: 'content.fetch' },
      enginedata: { source: `${source.origin}/*`, pass },
    });
    const rules = [fetched('/app/*', ['service-worker-allowed']), fetched('/*', [])];
    const ini = '[fetch]\nallow_private = 127.0.0.0/8\n';
    const shared = await startSite(t, { ini, rules });
    const alone = await startSite(t, { ini, rules, server: 'console = no' });
    for (const path of ['/app/sw.js', '/other/sw.js']) {
      for (const scope of scopes) {
        const allowed = async (url: string, headers = {}) => {
          const target = `${url}${path}?scope=${encodeURIComponent(scope)}`;
          return (await fetch(target, { headers })).headers.get('service-worker-allowed');
        };
        const isHarmless = ['/app/', '/app/x'].includes(scope);
        for (const headers of [{}, worker]) {
          const seen = await allowed(shared.url, headers);
          assert.equal(seen, isHarmless ? scope : null, `${path} ${scope}`);
        }
        assert.equal(await allowed(alone.url, worker), scope);
      }
    }
    // By its folder alone, a script of the source is a worker of that folder only.
    assert.equal((await fetch(`${shared.url}/app/sw.js`, { headers: worker })).status, 200);
    assert.equal((await fetch(`${shared.url}/sw.js`, { headers: worker })).status, 403);
  });

  test('may be at the root of a site whose console is elsewhere', async (t) => {
    const rules = [{ path: '/rule.js', ...script }];
    const { url } = await startSite(t, { server: 'console = no', rules });
    assert.equal((await fetch(`${url}/rule.js`, { headers: worker })).status, 200);
  });
});
