import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { assertReadable, oneBrowser, sizes, visit } from './browser.ts';
import { weakestContrast } from './contrast.ts';

const openTab = oneBrowser();

/** The message of the browser itself about an error status. */
const ownWords = /^(?:status|error: Failed to load resource)/;

suite('the page of a folder', () => {
  const ini = '[disk.files]\npath = /files/\nroot = files\nlisting = yes\n';
  const names = [
    'read me.txt',
    'a'.repeat(200) + '.txt',
    '<img src="data:," onerror="window.hit = true">.txt',
    'javascript:window.hit = true.txt',
    '"quoted" & \'half\' quoted.txt',
    'שלום‮ cod.txt',
    '50%.txt',
    'what?.txt',
    'number #1.txt',
    '灯/青鷺.txt',
    'empty/below/deep.txt',
  ];
  const files = Object.fromEntries(names.map((name) => [`files/${name}`, `This is ${name}`]));
  for (const { name, viewport } of sizes) {
    for (const colorScheme of ['light', 'dark'] as const) {
      test(`is readable on ${name}, ${colorScheme}`, async (t) => {
        const site = await startSite(t, { ini, files });
        const tab = await openTab(t, { viewport, colorScheme });
        for (const path of ['/files/', '/files/empty/', '/files/empty/below/']) {
          const response = await visit(tab, site.url + path);
          assert.equal(response.status(), 200);
          await assertReadable(tab, path);
          assert.ok((await weakestContrast(tab.page)) >= 4.5, path);
        }
        assert.deepEqual(tab.troubles, []);
      });
    }
  }

  test('links to every file and folder in it, with any name', async (t) => {
    const site = await startSite(t, { ini, files });
    const tab = await openTab(t);
    const { page } = tab;
    await visit(tab, `${site.url}/files/`);
    assert.equal(await page.title(), 'Index of /files/');
    for (const name of names.filter((name) => !name.includes('/'))) {
      await page.getByRole('link', { name, exact: true }).click();
      await page.waitForURL((url) => url.pathname !== '/files/');
      assert.equal(await page.locator('body').innerText(), `This is ${name}`);
      await page.goBack();
    }
    await page.getByRole('link', { name: 'empty/' }).click();
    await page.getByRole('link', { name: 'below/' }).click();
    await page.waitForURL(`${site.url}/files/empty/below/`);
    const trail = page.getByRole('navigation', { name: 'Path' });
    await trail.getByRole('link', { name: 'files' }).click();
    await page.waitForURL(`${site.url}/files/`);
    assert.equal(await page.evaluate('window.hit'), undefined);
    assert.deepEqual(tab.troubles, []);
  });

  test('says that the folder is empty', async (t) => {
    const site = await startSite(t, { ini, files: { 'files/.hidden': 'x' } });
    const tab = await openTab(t);
    await visit(tab, `${site.url}/files/`);
    await assertReadable(tab, 'the folder');
    assert.match(await tab.page.locator('main').innerText(), /This folder is empty\./);
  });
});

suite('an error page', () => {
  const source = 'http://127.0.0.1:9/*';
  const rules = [{ path: '/down/*', kind: 'content.fetch', enginedata: { source } }];
  const ini = '[fetch]\nallow_private = 127.0.0.0/8\n';
  const cases = [
    { status: 400, path: '/a%zz', title: '400 Bad Request', says: 'write %25' },
    { status: 404, path: '/none', title: '404 Not Found', says: 'There is no page here.' },
    { status: 404, path: `/${'none'.repeat(100)}`, title: '404 Not Found', says: 'no page here' },
    { status: 502, path: '/down/page', title: '502 Bad Gateway', says: '' },
  ];
  for (const { status, path, title, says } of cases) {
    for (const { name, viewport } of sizes) {
      test(`for ${status} of ${path.slice(0, 12)} is readable on ${name}`, async (t) => {
        const site = await startSite(t, { ini, rules });
        for (const colorScheme of ['light', 'dark'] as const) {
          const tab = await openTab(t, { viewport, colorScheme });
          const { page } = tab;
          const response = await visit(tab, site.url + path);
          assert.equal(response.status(), status);
          await assertReadable(tab, path);
          assert.equal(await page.title(), title);
          assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), title);
          const sentence = await page.locator('main p').first().innerText();
          assert.ok(sentence.includes(says), sentence);
          assert.match(
            await page.locator('small').innerText(),
            /^If you report this, quote [0-9a-f-]{36}$/,
          );
          const home = page.getByRole('link', { name: 'Go to the front page' });
          assert.equal(await home.getAttribute('href'), '/');
          assert.ok((await weakestContrast(tab.page)) >= 4.5);
          assert.deepEqual(
            tab.troubles.filter((trouble) => !ownWords.test(trouble)),
            [],
          );
        }
      });
    }
  }
});

suite('the documentation', () => {
  const documents = { 'of an engine': 'engines/html', 'for receivers of webhooks': 'webhooks' };
  for (const [what, path] of Object.entries(documents)) {
    for (const { name, viewport } of sizes) {
      test(`${what} is readable on ${name}`, async (t) => {
        const site = await startSite(t);
        for (const colorScheme of ['light', 'dark'] as const) {
          const tab = await openTab(t, { viewport, colorScheme });
          const response = await visit(tab, `${site.url}/svc1/${path}`);
          assert.equal(response.status(), 200);
          await assertReadable(tab, 'the documentation');
          assert.ok((await weakestContrast(tab.page)) >= 4.5);
          assert.deepEqual(tab.troubles, []);
        }
      });
    }
  }
});
