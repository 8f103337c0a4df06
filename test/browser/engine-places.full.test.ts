import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser, visit, visitGeneric } from './browser.ts';

const openTab = oneBrowser();
const onDisk = '[disk.site]\nroot = site\n';

/** A generic page that loads the engine from a URL. */
function frame(loader: string): string {
  return (
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>Frame</title>${loader}` +
    '<body><main id="waymark"></main></body></html>'
  );
}

suite('under a base', () => {
  test('a page of the site and the built-in one load the engine', async (t) => {
    const rule = (path: string, page?: string) => ({
      path,
      kind: 'content',
      engine: 'html',
      enginedata: { html: `<h1>${path}</h1>`, page },
    });
    const site = await startSite(t, {
      server: 'base = /shop',
      ini: onDisk,
      files: { 'site/frame.html': frame('<script defer src="/shop/svc1/engine.js"></script>') },
      rules: [rule('/built-in'), rule('/own', '/frame.html'), rule('/shop/below', '/frame.html')],
    });
    const tab = await openTab(t);
    const { page } = tab;
    for (const path of ['/built-in', '/own', '/shop/below']) {
      assert.equal(await visitGeneric(tab, site.url + path), 'rendered');
      assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), path);
      assert.equal(page.url(), site.url + path);
    }
    assert.equal(await page.evaluate('waymark.base'), `${site.url}/shop`);
    assert.deepEqual(tab.troubles, []);
  });

  test('the documentation of an engine is at the URL in the response', async (t) => {
    const enginedata = { scripts: ['1'] };
    const site = await startSite(t, {
      server: 'base = /shop',
      rules: [{ path: '/page', kind: 'content', engine: 'html', enginedata }],
    });
    const tab = await openTab(t);
    const { page } = tab;
    await page.addInitScript(
      `document.addEventListener('waymark:rendered', ({ detail }) => { window.answer = detail })`,
    );
    await visitGeneric(tab, `${site.url}/page`);
    await visit(tab, await page.evaluate<string>('answer.enginereference'));
    assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'html');
    const loader = page.getByRole('link', { name: 'engine.js' });
    const { href } = new URL((await loader.getAttribute('href')) ?? '', page.url());
    assert.equal((await page.request.get(href)).status(), 200);
    assert.deepEqual(tab.troubles, []);
  });
});

suite('from another origin', () => {
  const cases = [
    { allowed: '*', state: 'rendered', heading: 'From the rule' },
    { allowed: 'PAGES', state: 'rendered', heading: 'From the rule' },
    { allowed: 'https://else.example', state: 'failed', heading: 'The server cannot be reached' },
  ];
  for (const { allowed, state, heading } of cases) {
    test(`a page is ${state} where cors_origins is ${allowed}`, async (t) => {
      const pages = await startSite(t);
      const rules = await startSite(t, {
        ini: `[auth]\ncors_origins = ${allowed.replace('PAGES', pages.url)}\n`,
        rules: [
          {
            origin: pages.url,
            path: '/page',
            kind: 'content',
            engine: 'html',
            enginedata: { html: '<h1>From the rule</h1>' },
          },
        ],
      });
      await pages.call('svc1.userinterface.insert', {
        path: '/page',
        kind: 'content',
        content: frame(`<script defer src="${rules.url}/svc1/engine.js"></script>`),
      });
      const tab = await openTab(t);
      assert.equal(await visitGeneric(tab, `${pages.url}/page`), state);
      assert.equal(await tab.page.getByRole('heading', { level: 1 }).innerText(), heading);
      if (state === 'rendered') assert.deepEqual(tab.troubles, []);
    });
  }

  test('a page may render, but neither read nor write rules', async (t) => {
    const pages = await startSite(t, {
      rules: [{ path: '/page', kind: 'content', content: '<!doctype html><title>x</title>' }],
    });
    const site = await startSite(t, {
      rules: [{ path: '/page', kind: 'content', content: 'x' }],
    });
    const tab = await openTab(t);
    await visit(tab, `${pages.url}/page`);
    const ask = (operation: string, init: object) =>
      tab.page.evaluate<string>(
        `fetch('${site.url}/svc1/userinterface/${operation}', ${JSON.stringify(init)})
          .then(({ status }) => String(status), (error) => error.name)`,
      );
    const { adminKey: apikey } = site;
    const place = `_v.origin=${site.url}&_v.path=/page`;
    assert.equal(await ask(`get_render?${place}`, {}), '200');
    assert.equal(await ask(`get_render?${place}`, { headers: { apikey } }), '200');
    const body = JSON.stringify({ v: { path: '/new', kind: 'content', content: 'x' } });
    const headers = { apikey, 'content-type': 'application/json' };
    assert.equal(await ask('insert', { method: 'POST', headers, body }), 'TypeError');
    assert.equal(await ask('read?_v.id=1', { headers: { apikey } }), 'TypeError');
    assert.equal((await fetch(`${site.url}/new`)).status, 404);
  });
});

suite('under a Content-Security-Policy', () => {
  test('without inline code, a page of files is complete', async (t) => {
    const site = await startSite(t, {
      ini: `${onDisk}[disk.site.headers]\nContent-Security-Policy = "default-src 'self'"\n`,
      files: {
        'site/frame.html': frame('<script defer src="/svc1/engine.js"></script>'),
        'site/one.js': 'window.said = ["one"]',
        'site/two.js': 'said.push("two")',
      },
      rules: [
        {
          path: '/page',
          kind: 'content',
          engine: 'html',
          enginedata: { page: '/frame.html', html: '<h1>x</h1>', scripts: ['/one.js', '/two.js'] },
        },
      ],
    });
    const tab = await openTab(t);
    const response = await visit(tab, `${site.url}/page`);
    assert.equal(response.headers()['content-security-policy'], `default-src 'self'`);
    await tab.page.locator('[data-waymark-state=rendered]').waitFor();
    assert.deepEqual(await tab.page.evaluate('said'), ['one', 'two']);
    assert.deepEqual(tab.troubles, []);
  });

  test('hostile HTML runs no code', async (t) => {
    const site = await startSite(t, {
      ini: `${onDisk}[disk.site.headers]\nContent-Security-Policy = "default-src 'self'"\n`,
      files: { 'site/frame.html': frame('<script defer src="/svc1/engine.js"></script>') },
      rules: [
        {
          path: '/page',
          kind: 'content',
          engine: 'html',
          enginedata: {
            page: '/frame.html',
            html: '<h1>x</h1><button onclick="window.hit = true">Press</button>',
            scripts: ['window.hit = true'],
          },
        },
      ],
    });
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${site.url}/page`), 'rendered');
    await tab.page.getByRole('button', { name: 'Press' }).click();
    assert.equal(await tab.page.evaluate('window.hit'), undefined);
    assert.ok(tab.troubles.length >= 2);
  });

  test('with a nonce, the loader gives it to the style and the scripts of a rule', async (t) => {
    const policy = `default-src 'self' 'nonce-n0nce'`;
    const site = await startSite(t, {
      ini: `${onDisk}[disk.site.headers]\nContent-Security-Policy = "${policy}"\n`,
      files: {
        'site/frame.html': frame('<script defer src="/svc1/engine.js" nonce="n0nce"></script>'),
      },
      rules: [
        {
          path: '/page',
          kind: 'content',
          engine: 'html',
          enginedata: {
            page: '/frame.html',
            html: '<h1>x</h1>',
            css: 'h1 { color: rgb(1, 2, 3) }',
            scripts: ['window.said = getComputedStyle(document.querySelector("h1")).color'],
          },
        },
      ],
    });
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${site.url}/page`), 'rendered');
    assert.equal(await tab.page.evaluate('said'), 'rgb(1, 2, 3)');
    assert.deepEqual(tab.troubles, []);
  });

  test('the built-in page needs no inline script', async (t) => {
    const site = await startSite(t, {
      ini: onDisk,
      files: { 'site/one.js': 'window.said = "one"' },
      rules: [
        {
          path: '/page',
          kind: 'content',
          engine: 'html',
          enginedata: { html: '<h1>x</h1>', scripts: ['/one.js'] },
        },
      ],
    });
    const tab = await openTab(t);
    // A proxy in front may add this policy.
    await tab.page.route('**/page', async (route) => {
      const response = await route.fetch();
      const policy = `default-src 'self'; style-src 'self' 'unsafe-inline'`;
      const headers = { ...response.headers(), 'content-security-policy': policy };
      await route.fulfill({ response, headers });
    });
    assert.equal(await visitGeneric(tab, `${site.url}/page`), 'rendered');
    assert.equal(await tab.page.evaluate('said'), 'one');
    assert.deepEqual(tab.troubles, []);
  });
});
