import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { startSite } from '../harness.ts';
import { httpSource } from '../outbound/sources.ts';

/** What a site needs to fetch from this machine. */
const ini = '[fetch]\nallow_private = 127.0.0.0/8\ncache = 0\n';

suite('several sources of a page', () => {
  test('serve it while one of them is down, as explain and the metrics tell', async (t) => {
    const { origin } = await httpSource(t, (_, response) => response.end('there'));
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const gone = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.close();
    const enginedata = { source: [`${gone}/*`, `${origin}/*`] };
    const rules = [{ path: '/far/*', kind: 'content.fetch', enginedata }];
    const site = await startSite(t, { ini, rules });
    for (let turn = 0; turn < 4; turn += 1) {
      const answer = await fetch(`${site.url}/far/a`);
      assert.equal(await answer.text(), 'there');
    }
    const { data } = await site.call('userinterface.explain', { path: '/far/a' });
    const [, note] = (data as { readonly notes: readonly string[] }).notes;
    assert.match(note ?? '', new RegExp(`^${gone} has failed and is set aside`));
    const metrics = await (await fetch(`${site.url}/svc1/metrics`)).text();
    assert.match(metrics, new RegExp(`waymark_fetch_source_set_aside.source="${gone}". 1\n`));
    assert.match(metrics, new RegExp(`waymark_fetch_source_answers_total.source="${origin}". 4\n`));
    assert.match(site.logged(), /a source has failed and is set aside/);
  });
});

suite('a page that cannot be shown', () => {
  const files = {
    'site/index.html': 'home',
    'site/errors/404.html': '<h1>Nothing here</h1>',
    'site/errors/5xx.html': '<h1>Back soon</h1>',
    'shop/errors/404.html': '<h1>No such lamp</h1>',
  };
  const mounts = `
[disk.site]
root = site
errors = errors
cache_control = max-age=60
[disk.site.headers]
X-Site = s
[disk.shop]
path = /lamps/
root = shop
errors = /errors
`;
  const html = { Accept: 'text/html' };

  /** A site whose `/far/*` is fetched from where nobody listens. */
  async function startBroken(t: TestContext) {
    const enginedata = { source: 'http://127.0.0.1:1/*' };
    const rules = [{ path: '/far/*', kind: 'content.fetch', enginedata }];
    return startSite(t, { ini: `${ini}${mounts}`, files, rules });
  }

  test('is one of the site, where it has one for the status, with that status', async (t) => {
    const { url } = await startBroken(t);
    const cases: readonly (readonly [string, string, number, RegExp])[] = [
      ['GET', '/missing', 404, /^<h1>Nothing here<\/h1>$/],
      ['GET', '/lamps/missing', 404, /^<h1>No such lamp<\/h1>$/],
      ['GET', '/far/a', 502, /^<h1>Back soon<\/h1>$/],
      ['POST', '/', 405, /405 Method Not Allowed/],
    ];
    for (const [method, path, status, text] of cases) {
      const answer = await fetch(url + path, { method, headers: html });
      assert.equal(answer.status, status, path);
      assert.match(await answer.text(), text);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      assert.equal(answer.headers.get('etag'), null);
      assert.match(answer.headers.get('content-type') ?? '', /^text\/html/);
    }
  });

  test('is the whole page, whatever part or version was asked for', async (t) => {
    const { url } = await startBroken(t);
    for (const headers of [{ Range: 'bytes=0-1' }, { 'If-None-Match': '*' }, {}]) {
      const answer = await fetch(`${url}/missing`, { headers: { ...html, ...headers } });
      assert.deepEqual([answer.status, await answer.text()], [404, '<h1>Nothing here</h1>']);
      assert.equal(answer.headers.get('x-site'), 's');
    }
    const head = await fetch(`${url}/missing`, { method: 'HEAD', headers: html });
    assert.deepEqual([head.status, head.headers.get('content-length')], [404, '21']);
  });

  test('is a line of text for what is no browser', async (t) => {
    const { url } = await startBroken(t);
    const answer = await fetch(`${url}/far/a`, { headers: { Accept: '*/*' } });
    assert.match(await answer.text(), /^502 Bad Gateway\n/);
  });
});
