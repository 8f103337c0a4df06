import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { httpSource } from '../core/outbound/sources.ts';
import { oneBrowser, visit, type Tab } from './browser.ts';
import { heading, signIn } from './console-tab.ts';
import { readConfig } from '../ini.ts';

const openTab = oneBrowser();

const worker = 'self.addEventListener("fetch", () => {})';
const script = (path: string) => ({
  ...{ path, kind: 'content', content: worker, contenttype: 'text/javascript' },
});

/** A site with every way to get a script of a service worker. */
async function start() {
  const source = await httpSource({ after }, (request, response) => {
    const isHtml = request.url?.endsWith('.html');
    response.writeHead(200, {
      'content-type': isHtml ? 'text/html' : 'text/javascript',
      'service-worker-allowed': '/',
      'cache-control': 'max-age=60',
      etag: '"1"',
    });
    response.end(isHtml ? '<h1>Source</h1>' : worker);
  });
  const fetched = (path: string, pass: readonly string[]) => ({
    ...{ path, kind: 'content.fetch' },
    enginedata: { source: `${source.origin}/*`, pass },
  });
  const crumb = { contenttype: 'text/javascript', enginedata: { html: worker } };
  return startSite(
    { after },
    {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n[disk.files]\npath = /files/\nroot = files\n[disk.root]\nroot = root\n',
      files: { 'files/worker.js': worker, 'root/disk.js': worker },
      rules: [
        { path: '/page', kind: 'content', content: '<h1>Page</h1>' },
        { path: '/crumb', kind: 'resolve', ...crumb },
        script('/rule.js'),
        script('/deep/er/rule.js'),
        fetched('/app/*', ['service-worker-allowed']),
        fetched('/*', []),
      ],
    },
  );
}

const started = start();

/** Registers a service worker in a page; the scope, or `refused`. */
function register({ page }: Tab, url: string, scope?: string): Promise<string> {
  const options = scope === undefined ? '' : `, { scope: ${JSON.stringify(scope)} }`;
  return page.evaluate(
    `navigator.serviceWorker.register(${JSON.stringify(url)}${options})
      .then((one) => one.scope, () => 'refused')`,
  );
}

/** Resolves once a service worker of a scope is active. */
async function activated({ page }: Tab): Promise<void> {
  await page.evaluate('navigator.serviceWorker.ready.then(() => undefined)');
}

suite('a service worker over the console', () => {
  test('cannot be registered by a rule, a breadcrumb, an operation or a source', async (t) => {
    const { url } = await started;
    const tab = await openTab(t);
    await tab.page.goto(`${url}/page`);
    const content = `/svc1/userinterface/get_content?_v.origin=${url}&_v.path=/rule.js`;
    // The browser's cache then has the answers of the source.
    for (const path of ['/app/sw.js', '/other/sw.js']) {
      await tab.page.evaluate(`fetch(${JSON.stringify(path)}).then((one) => one.text())`);
    }
    for (const [path, scope] of [
      ['/rule.js', undefined],
      ['/rule.js', '/svc1/console/'],
      ['/svc1/userinterface.link.htm?k=/crumb', undefined],
      ['/svc1/userinterface.link.htm?k=/crumb', '/svc1/console/'],
      ['/svc1/userinterface/link.htm?k=/crumb', undefined],
      [content, '/svc1/'],
      [content.replace('userinterface/', 'userinterface.'), undefined],
      ['/app/sw.js', '/'],
      ['/app/sw.js', '/svc1/'],
      ['/app/sw.js', '/svc1/console/'],
      ['/other/sw.js', '/'],
      ['/sw.js', undefined],
      ['/sw.js', '/svc1/console/'],
      ['/svc1/console/preview.js', undefined],
    ] as const) {
      assert.equal(
        await register(tab, path, scope),
        'refused',
        `${path} for ${scope ?? 'its folder'}`,
      );
    }
  });

  test('can be registered for other paths, and stays', async (t) => {
    const { url, adminKey } = await started;
    const tab = await openTab(t, { locale: 'en-GB' });
    await tab.page.goto(`${url}/page`);
    for (const path of ['/deep/er/rule.js', '/app/sw.js', '/files/worker.js']) {
      assert.equal(await register(tab, path), new URL('.', url + path).href);
    }
    await signIn(tab, url, adminKey);
    const left = await tab.page.evaluate(
      'navigator.serviceWorker.getRegistrations().then((all) => all.length)',
    );
    assert.equal(left, 3);
  });

  test('that is there already is named and removed before a key is typed', async (t) => {
    const { url, adminKey } = await started;
    const tab = await openTab(t, { locale: 'en-GB' });
    await tab.page.goto(`${url}/page`);
    // Files on disk may be one: it stands for one from before.
    assert.equal(await register(tab, '/disk.js'), `${url}/`);
    await activated(tab);
    await visit(tab, `${url}/svc1/console/`);
    await heading(tab.page, 'A service worker was removed');
    assert.equal(await tab.page.locator('main code').innerText(), '/disk.js');
    assert.equal(await tab.page.getByLabel('API key').count(), 0);
    await tab.page.getByRole('button', { name: 'Go on' }).click();
    await heading(tab.page, 'Sign in');
    assert.equal(await tab.page.evaluate('navigator.serviceWorker.controller'), null);
    await signIn(tab, url, adminKey);
    const left = await tab.page.evaluate(
      'navigator.serviceWorker.getRegistrations().then((all) => all.length)',
    );
    assert.equal(left, 0);
  });

  test('is removed at the start of a console that gets the origin for itself', async (t) => {
    const site = await startSite(t, {
      rules: [{ path: '/page', kind: 'content', content: '<h1>Page</h1>' }],
      ini: '[disk.root]\nroot = root\n',
      files: { 'root/disk.js': worker },
    });
    const tab = await openTab(t, { locale: 'en-GB' });
    await tab.page.goto(`${site.url}/page`);
    assert.equal(await register(tab, '/disk.js'), `${site.url}/`);
    await activated(tab);
    const ini = await readFile(site.iniFile, 'utf8');
    await writeFile(site.iniFile, ini.replace('[server]', `[server]\nconsole = ${site.url}`));
    site.waymark.reload(await readConfig({ file: site.iniFile, env: {}, cores: 2, hostName: '' }));
    await visit(tab, `${site.url}/svc1/console/`);
    await heading(tab.page, 'A service worker was removed');
    await tab.page.getByRole('button', { name: 'Go on' }).click();
    await heading(tab.page, 'Sign in');
  });
});
