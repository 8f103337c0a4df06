import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Route } from 'playwright-core';
import { startSite } from '../harness.ts';
import { assertReadable, oneBrowser, renderState, visitGeneric, type Tab } from './browser.ts';

const openTab = oneBrowser();
const renderCalls = '**/get_render?*';

/** Checks the message that a visitor sees. */
async function messageOf(tab: Tab): Promise<string> {
  await assertReadable(tab, 'the message');
  const message = tab.page.getByRole('alert');
  const heading = await message.getByRole('heading', { level: 1 }).innerText();
  assert.equal(await tab.page.title(), heading);
  assert.ok(await message.getByRole('button', { name: 'Try again' }).isVisible());
  return message.innerText();
}

function failWith(status: number, code: string) {
  const error = { code, message: 'This is why.', id: 'id-to-quote' };
  const json = { r: 'svc1.userinterface.get_render', error };
  return (route: Route) => route.fulfill({ status, json });
}

suite('a generic page that cannot be shown reports why', () => {
  const answers: readonly {
    what: string;
    answer: (route: Route) => Promise<void>;
    says: RegExp;
  }[] = [
    { what: 'no rule', answer: failWith(404, 'not_found'), says: /^There is no page here\n/ },
    {
      what: 'a visitor without a key',
      answer: failWith(401, 'unauthenticated'),
      says: /^You may not see this page\n[^]*This is why\./,
    },
    { what: 'a visitor who may not', answer: failWith(403, 'forbidden'), says: /^You may not see/ },
    {
      what: 'too many requests',
      answer: failWith(429, 'rate_limited'),
      says: /^Too many requests/,
    },
    {
      what: 'a problem of the server',
      answer: failWith(500, 'internal'),
      says: /^This page cannot be shown[^]*quote id-to-quote/,
    },
    {
      what: 'a proxy with a page of its own',
      answer: (route) => route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>No' }),
      says: /^This page cannot be shown/,
    },
    {
      what: 'an answer that is no answer',
      answer: (route) => route.fulfill({ status: 200, json: { r: 'other' } }),
      says: /^This page cannot be shown/,
    },
    {
      what: 'a server that cannot be reached',
      answer: (route) => route.abort('connectionrefused'),
      says: /^The server cannot be reached\n/,
    },
  ];
  for (const { what, answer, says } of answers) {
    test(`${what}; later the button shows the page`, async (t) => {
      const rules = [
        { path: '/page', kind: 'content', engine: 'html', enginedata: { html: '<h1>Here</h1>' } },
      ];
      const site = await startSite(t, { rules });
      const tab = await openTab(t, { viewport: { width: 390, height: 844 } });
      const { page } = tab;
      await page.route(renderCalls, answer);
      assert.equal(await visitGeneric(tab, `${site.url}/page`), 'failed');
      assert.match(await messageOf(tab), says);
      await page.unroute(renderCalls);
      const loaded = page.waitForEvent('load');
      await page.getByRole('button', { name: 'Try again' }).click();
      await loaded;
      assert.equal(await renderState(tab), 'rendered');
      assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'Here');
    });
  }
});

suite('a page whose engine fails', () => {
  const ini = [
    '[disk.site]\nroot = site\nfallback = frame.html\n',
    '[engine.ghost]\n',
    '[engine.constructor]\n',
    '[engine.lost]\nscript = /lost.js\n',
    '[engine.hollow]\nscript = /hollow.js\n',
    '[engine.broken]\nscript = /broken.js\n',
  ].join('');
  const files = {
    'site/hollow.js': 'export const nothing = 1;',
    'site/broken.js': 'export function render() { throw new Error("out of order"); }',
    'site/frame.html':
      '<!doctype html><html lang="en"><title data-placeholder="Wait">Wait</title>' +
      '<script defer src="/svc1/engine.js"></script><body><div data-waymark></div></body></html>',
  };
  const cannot = /^This page cannot be shown\n/;
  const cases = [
    { what: 'is unknown to the page', rule: { engine: 'ghost' }, says: /engine “ghost”/ },
    { what: 'has the name of an object’s own', rule: { engine: 'constructor' }, says: cannot },
    { what: 'has a script that is not there', rule: { engine: 'lost' }, says: cannot },
    { what: 'has a script that renders nothing', rule: { engine: 'hollow' }, says: cannot },
    { what: 'fails', rule: { engine: 'broken' }, says: /engine “broken”/ },
    { what: 'is html without anything to show', rule: { engine: 'html' }, says: /engine “html”/ },
    {
      what: 'is unknown to the server',
      rule: { engine: 'nosuch' },
      says: /could not load an engine/,
    },
    { what: 'is the one of records', rule: { kind: 'edit-record' }, says: /engine “form”/ },
  ];
  for (const { what, rule, says } of cases) {
    test(`reports it: the engine ${what}`, async (t) => {
      const rules = [{ path: '/page', kind: 'content', ...rule }];
      const site = await startSite(t, { ini, files, rules });
      const tab = await openTab(t);
      assert.equal(await visitGeneric(tab, `${site.url}/page`), 'failed');
      assert.match(await messageOf(tab), cannot);
      assert.match(await messageOf(tab), says);
    });
  }

  test('shows the HTML of its rule; the console has the reason', async (t) => {
    const enginedata = { html: '<h1>Better than nothing</h1>', css: 'h1 { margin: 1px }' };
    const rules = ['ghost', 'broken', 'lost', 'nosuch'].map((engine) => ({
      path: `/${engine}`,
      kind: 'content',
      engine,
      enginedata,
    }));
    const site = await startSite(t, { ini, files, rules });
    const tab = await openTab(t);
    const { page } = tab;
    for (const engine of ['ghost', 'broken', 'lost', 'nosuch']) {
      const before = tab.troubles.length;
      assert.equal(await visitGeneric(tab, `${site.url}/${engine}`), 'failed');
      assert.equal(await page.locator('#waymark').innerText(), 'Better than nothing');
      assert.equal(await page.title(), 'Better than nothing');
      assert.equal(await page.getByRole('alert').count(), 0);
      assert.ok(tab.troubles.slice(before).some((trouble) => trouble.startsWith('error: ')));
    }
  });

  test('shows its address as text, not as HTML', async (t) => {
    const site = await startSite(t, { ini, files });
    const tab = await openTab(t);
    const address = `${site.url}/<img src="data:," onerror="window.hit = true">`;
    assert.equal(await visitGeneric(tab, address), 'failed');
    assert.match(await messageOf(tab), /No page rule answers .*<img src="data:,"/);
    assert.equal(await tab.page.locator('img').count(), 0);
  });
});

suite('without JavaScript', () => {
  test('the built-in page says that it needs JavaScript', async (t) => {
    const rules = [{ path: '/page', kind: 'content', engine: 'html', enginedata: { html: 'x' } }];
    const site = await startSite(t, { rules });
    const { page } = await openTab(t, { javaScriptEnabled: false });
    await page.goto(`${site.url}/page`);
    assert.match(await page.locator('main').innerText(), /needs JavaScript/);
    assert.equal(await page.title(), 'Untitled page');
  });
});
