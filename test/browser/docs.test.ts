import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { builtDocs } from '../docs/built-docs.ts';
import { startSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { oneBrowser, sizes, visit } from './browser.ts';
import { testLooks } from './docs-looks.ts';

const openTab = oneBrowser();
const { folder: docsFolder } = await builtDocs();
const site = await startSite({ after }, { server: 'base = /way', docsFolder });
const docs = `${site.url}/way/svc1/docs`;

suite('the documentation, as the server serves it', () => {
  test('has a strict policy, and caches only what never changes', async () => {
    const page = await fetch(`${docs}/`);
    assert.equal(page.status, 200);
    const policy = page.headers.get('content-security-policy') ?? '';
    assert.match(policy, /^default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe/);
    assert.equal(page.headers.get('cache-control'), 'public, no-cache');
    const text = await page.text();
    const script = /src="(assets\/theme\.[^"]+)"/.exec(text)?.[1] ?? '';
    const asset = await fetch(`${docs}/${script}`);
    assert.equal(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    const markdown = await fetch(`${docs}/glossary.md`);
    assert.equal(markdown.headers.get('content-type'), 'text/markdown; charset=utf-8');
    const schema = await fetch(`${docs}/schemas/ini.json`);
    assert.equal(schema.headers.get('content-type'), 'application/schema+json');
    assert.equal(schema.headers.get('access-control-allow-origin'), '*');
  });

  test('redirects to its folder, and answers a wrong address with a page', async () => {
    const bare = await fetch(docs, { redirect: 'manual' });
    assert.deepEqual([bare.status, bare.headers.get('location')], [308, '/way/svc1/docs/']);
    const missing = await fetch(`${docs}/none`, { headers: { accept: 'text/html' } });
    assert.equal(missing.status, 404);
    assert.match(missing.headers.get('content-type') ?? '', /^text\/html/);
  });

  testLooks(openTab, docs, ['index.html', 'start/first-site.html']);

  test('finds a key of the ini file by the search, without a network', async (t) => {
    const tab = await openTab(t, { viewport: sizes[0].viewport });
    await visit(tab, `${docs}/`);
    await tab.page.keyboard.press('/');
    await tab.page.getByLabel('Search the documentation').fill('connect_timeout');
    const first = tab.page.locator('#results a').first();
    await first.waitFor();
    await assertOpenToAll(tab.page, 'the search');
    await tab.page.keyboard.press('Enter');
    await tab.page.waitForURL(/reference\/(?:ini-file|sample-ini)\.html#/);
    assert.deepEqual(tab.troubles, []);
  });

  test('keeps the theme that a reader has chosen', async (t) => {
    const tab = await openTab(t, { colorScheme: 'light' });
    await visit(tab, `${docs}/`);
    await tab.page.getByRole('button', { name: 'Dark' }).click();
    await visit(tab, `${docs}/glossary.html`);
    const theme = await tab.page.evaluate<string>('document.documentElement.dataset.theme');
    assert.equal(theme, 'dark');
  });
});

suite('the page for receivers of webhooks', () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    test(`has contents, tabs, colours and copy buttons, in ${colorScheme}`, async (t) => {
      const options = { viewport: sizes[0].viewport, colorScheme };
      const tab = await openTab(t, { ...options, permissions: ['clipboard-write'] });
      await visit(tab, `${site.url}/way/svc1/webhooks`);
      const { page } = tab;
      assert.equal(await page.locator('.contents a').count(), await page.locator('h2').count());
      await page.getByRole('tab', { name: 'Python' }).click();
      const shownPanels = page.getByRole('tabpanel');
      assert.equal(await shownPanels.count(), 1);
      assert.match(await shownPanels.innerText(), /import base64/);
      await page.keyboard.press('ArrowRight');
      assert.match(await shownPanels.innerText(), /package main/);
      assert.ok((await page.locator('.tok-keyword').count()) > 10);
      await shownPanels.getByRole('button', { name: 'Copy' }).click();
      await shownPanels.getByRole('button', { name: 'Copied' }).waitFor();
      await assertOpenToAll(page, 'webhooks');
      const overflow = await page.evaluate<number>(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      assert.equal(overflow, 0);
      assert.deepEqual(tab.troubles, []);
    });
  }
});
