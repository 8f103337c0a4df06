import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { suite, test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { cleaningAfterAll } from '../folder.ts';
import { startSite } from '../harness.ts';
import { eventually } from '../modules/nodes/rig.ts';
import { httpSource } from '../core/outbound/sources.ts';
import { oneBrowser } from './browser.ts';
import { goTo, openConsole } from './console-tab.ts';

const openTab = oneBrowser();

/** It cancels each load of its frame. */
const stopping = `<h1>Evil</h1><script>
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { stop(); port2.postMessage(0); };
  port2.postMessage(0);
</script>`;

/** It becomes a document that gets what the frame gets next. */
const reopening = `<h1>Evil</h1><script>
  setTimeout(() => {
    document.open();
    addEventListener('message', ({ data }) => { new Image().src = '/far/' + encodeURIComponent(data.html); });
    document.write('<h1>Evil</h1>');
    document.close();
  }, 100);
</script>`;

const rows = { x: { table: 'salaries' } };
const rules = [
  {
    path: '/leak',
    engine: 'template',
    enginedata: { rows, template: '<img src="/far/rows-{{ rows.x | json | url_encode }}">' },
  },
  { path: '/stopping', content: stopping },
  { path: '/reopening', content: reopening },
  { path: '/leaving', content: '<h1>Evil</h1><script>location.replace("/other")</script>' },
  { path: '/other', content: '<h1>Other</h1>' },
  { path: '/about', content: '<h1>About</h1>' },
  {
    path: '/form',
    engine: 'html',
    enginedata: {
      html: '<h1>Order</h1><form><input name="attributes"><input name="getAttributeNames"></form>',
    },
  },
  { path: '/long', content: `<h1>Long</h1>${'<script/src='.repeat(15_000)}` },
];

async function start() {
  const cleaning = cleaningAfterAll();
  const seen: string[] = [];
  const arrived = new EventEmitter();
  const { origin } = await httpSource(cleaning, ({ url = '' }, response) => {
    seen.push(decodeURIComponent(decodeURIComponent(url)));
    arrived.emit('request');
    response.end();
  });
  const site = await startSite(cleaning, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    rules: [
      ...rules.map((rule) => ({ kind: 'content', contenttype: 'text/html', ...rule })),
      { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } },
    ],
  });
  const schema = { properties: { name: { type: 'string' } } };
  await site.call('svc1.table.insert', { name: 'salaries', schema });
  await site.call('svc1.record.insert', { table: 'salaries', name: 'Eve' });
  const { data } = await site.call('svc1.userinterface.list', {});
  const idOf = (path: string): string =>
    (data.rows as { id: string; path: string }[]).find((rule) => rule.path === path)?.id ?? '';
  return { site, seen, arrived, idOf };
}

function frame(page: Page) {
  return page.frameLocator('.preview');
}

suite('a hostile page in a frame of the console', () => {
  const shared = start();

  async function signedIn(t: TestContext) {
    const { site, ...more } = await shared;
    return { ...(await openConsole(t, openTab, site)), ...more };
  }

  async function explain(page: Page, path: string): Promise<void> {
    await goTo(page, `#/explain?url=${path}`, 'Explain');
    await page.getByRole('button', { name: 'Request the page' }).click();
  }

  test('shows its author no row that only the session may read', async (t) => {
    const { page, seen, arrived, idOf } = await signedIn(t);
    for (const show of [
      () => goTo(page, `#/pages/${idOf('/leak')}`, '/leak'),
      () => goTo(page, `#/history?id=${idOf('/leak')}`, 'History of a page'),
      () => explain(page, '/leak'),
    ]) {
      seen.length = 0;
      await show();
      while (!seen.some((url) => url.startsWith('/rows-'))) await once(arrived, 'request');
      assert.deepEqual(new Set(seen), new Set(['/rows-null']));
    }
    await page.getByText('as far as every visitor may read them').waitFor();
  });

  test('cannot keep its frame, nor get what comes next', async (t) => {
    const { page, seen } = await signedIn(t);
    seen.length = 0;
    for (const path of ['/stopping', '/reopening']) {
      await goTo(page, `#/history/past?page=${path}`, 'The site in the past');
      await frame(page).getByRole('heading', { name: 'Evil' }).first().waitFor();
      await goTo(page, '#/history/past?page=/about', 'The site in the past');
      await frame(page).getByRole('heading', { name: 'About' }).first().waitFor();
    }
    assert.deepEqual(seen, []);
  });

  test('cannot leave for a page without its policy', async (t) => {
    const { page, troubles } = await signedIn(t);
    await explain(page, '/leaving');
    await eventually(() => {
      assert.ok(troubles.some((one) => one.includes('frame-src')));
    });
    assert.equal(await frame(page).getByRole('heading', { name: 'Other' }).count(), 0);
  });

  test('is shown with fields that have the names of properties, and with endless tags', async (t) => {
    const { page } = await signedIn(t);
    await explain(page, '/form');
    await frame(page).getByRole('heading', { name: 'Order' }).waitFor();
    await explain(page, '/long');
    await frame(page).getByRole('heading', { name: 'Long' }).waitFor();
  });
});
