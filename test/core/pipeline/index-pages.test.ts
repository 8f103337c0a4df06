import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../harness.ts';

interface Link {
  readonly href?: string;
  readonly title: string;
  readonly name?: string;
}

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

suite('the index of engines, commands and documents', () => {
  test('is JSON for programs, and its links work', async (t) => {
    for (const base of ['', '/app']) {
      const site = await startSite(t, { server: `base = ${base}` });
      for (const path of ['/svc1', '/svc1/']) {
        const reply = await fetch(site.url + base + path);
        assert.equal(reply.headers.get('content-type'), 'application/json');
        assert.match(reply.headers.get('vary') ?? '', /\bAccept\b/);
        const { links } = (await reply.json()) as { links: readonly Link[] };
        const hrefs = links.map(({ href }) => href ?? '');
        for (const name of ['webhooks', 'engines', 'openapi.json', 'asyncapi.json', 'health']) {
          assert.ok(hrefs.includes(`${base}/svc1/${name}`), name);
        }
        for (const href of hrefs) assert.equal((await fetch(site.url + href)).status, 200, href);
        assert.ok(hrefs.includes(`${base}/svc1/console/`), 'the console');
      }
    }
  });

  test('is HTML for browsers, with the same links', async (t) => {
    const site = await startSite(t);
    for (const path of ['/svc1/', '/svc1/engines']) {
      const listed = (await (await fetch(site.url + path)).json()) as Record<string, Link[]>;
      const reply = await fetch(site.url + path, { headers: { accept: browser } });
      assert.equal(reply.headers.get('content-type'), 'text/html; charset=utf-8');
      const page = await reply.text();
      const hrefs = [...page.matchAll(/href="([^"]*)"/g)].map(([, href]) => href);
      const [links = []] = Object.values(listed);
      assert.deepEqual(
        hrefs,
        links.map(({ href }) => href),
      );
    }
  });

  test('of engines includes those of the ini file, and escapes their names', async (t) => {
    const ini = '[engine.globe]\nreference = /docs/globe?a&"b"\n[engine.plain]\nscript = /x.js\n';
    const site = await startSite(t, { ini });
    const reply = await fetch(`${site.url}/svc1/engines`);
    const { engines } = (await reply.json()) as { engines: readonly Link[] };
    const references = engines.map(({ name, href }) => [name, href]);
    assert.deepEqual(references, [
      ['html', '/svc1/engines/html'],
      ['template', '/svc1/engines/template'],
      ['form', '/svc1/engines/form'],
      ['globe', '/docs/globe?a&"b"'],
      ['plain', undefined],
    ]);
    const page = await fetch(`${site.url}/svc1/engines/`, { headers: { accept: browser } });
    assert.match(await page.text(), /<a href="\/docs\/globe\?a&amp;&quot;b&quot;">globe<\/a>/);
  });

  test('answers GET only', async (t) => {
    const site = await startSite(t);
    assert.equal((await fetch(`${site.url}/svc1/`, { method: 'POST' })).status, 405);
    const head = await fetch(`${site.url}/svc1/engines`, { method: 'HEAD' });
    assert.equal(head.status, 200);
  });
});
