import assert from 'node:assert/strict';
import { after, suite, test, type TestContext } from 'node:test';
import type { Page, WebSocketRoute } from 'playwright-core';
import { startSite } from '../harness.ts';
import { httpSource } from '../core/outbound/sources.ts';
import { oneBrowser } from './browser.ts';
import { goTo, openConsole, realTroubles, signIn, type ConsoleTab } from './console-tab.ts';

const openTab = oneBrowser();
const source = await httpSource({ after }, (_request, response) => {
  response.setHeader('cache-control', 'max-age=600').end('fetched');
});
const started = startSite(
  { after },
  {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n[webhook]\nallow_private = 127.0.0.0/8\n',
    rules: [
      { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${source.origin}/*` } },
      { path: '/first', kind: 'content', content: 'first' },
    ],
  },
);

async function signedIn(t: TestContext): Promise<ConsoleTab> {
  return openConsole(t, openTab, await started);
}

/** The websockets of a page, which a test can close, and the messages that the page sends. */
async function interceptSockets(page: Page) {
  const open: WebSocketRoute[] = [];
  const sent: string[] = [];
  const state = { isReachable: true };
  await page.routeWebSocket(/\/svc1\/ws$/, (route) => {
    if (!state.isReachable) {
      void route.close();
      return;
    }
    open.push(route);
    const server = route.connectToServer();
    route.onMessage((message) => {
      sent.push(String(message));
      server.send(message);
    });
  });
  return { open, sent, state };
}

suite('live updates of the console', () => {
  test('a tab has one websocket, and screens follow what happens without polling', async (t) => {
    const site = await started;
    const tab = await openTab(t, { locale: 'en-GB' });
    const { page } = tab;
    let sockets = 0;
    const requests: string[] = [];
    page.on('websocket', () => {
      sockets += 1;
    });
    page.on('request', (request) => requests.push(new URL(request.url()).pathname));
    await signIn(tab, site.url, site.adminKey);
    await goTo(page, '#/operations', 'Keys');
    await page.locator('.table-list li').first().waitFor();
    await site.call('svc1.key.insert', { name: 'made elsewhere', scopes: ['read'] });
    const added = page.locator('.table-list li', { hasText: 'made elsewhere' });
    await added.filter({ hasText: 'never used' }).waitFor();

    await goTo(page, '#/operations/cache', 'Cache');
    await page.locator('.tile').first().waitFor();
    await (await fetch(`${site.url}/far/cached`)).text();
    await page.locator('.grid tbody tr', { hasText: '/far/cached' }).waitFor();

    await goTo(page, '#/operations/sources', 'Sources');
    await page.locator('.grid tbody tr').first().waitFor();
    // One without the subscription, if its answer takes long, one after it, and one for /far/cached.
    const before = requests.filter((one) => one.endsWith('/source/list')).length;
    assert.ok(before <= 3, `${before} requests of a screen on which nothing has happened`);
    await Promise.all(
      Array.from({ length: 6 }, async (_, at) => (await fetch(`${site.url}/far/${at}`)).text()),
    );
    await page.locator('.grid tbody tr td.number', { hasText: /^7$/ }).first().waitFor();

    await goTo(page, '#/pages', 'Pages');
    await page.locator('.row', { hasText: 'first' }).waitFor();
    await site.call('svc1.userinterface.insert', { path: '/second', kind: 'content', content: '' });
    await page.locator('.row', { hasText: 'second' }).waitFor();

    const hook = { url: `${source.origin}/hook`, event: ['a.b'] };
    const { data } = await site.call('svc1.webhook.insert', hook);
    await goTo(page, `#/webhooks/${data.id}`, /hook/);
    await page.getByText('No attempts yet.').first().waitFor();
    await site.call('svc1.event.insert', { type: 'a.b', data: {} });
    await page.locator('.attempts li').first().waitFor();
    assert.equal(sockets, 1);
    assert.deepEqual(realTroubles(tab), []);
  });

  test('a lost connection is marked, and what changed meanwhile is there after it', async (t) => {
    const { page, site } = await signedIn(t);
    await site.call('svc1.table.insert', { name: 'lamps', schema: { type: 'object' } });
    const { open, sent, state } = await interceptSockets(page);
    // The screens follow over the websocket that the test can close.
    await page.evaluate(`dispatchEvent(new Event('online'))`);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').fill(site.adminKey);
    await page.keyboard.press('Enter');
    await goTo(page, '#/tables/lamps', 'lamps');
    await page.getByText('0 rows', { exact: true }).waitFor();
    await site.call('svc1.record.insert', { table: 'lamps', n: 1 });
    await page.getByRole('button', { name: /^1 row has changed/ }).waitFor();
    state.isReachable = false;
    for (const socket of open) await socket.close();
    await page.getByText(/^Disconnected since \d\d:\d\d:\d\d/).waitFor();
    await site.call('svc1.record.insert', { table: 'lamps', n: 2 });
    state.isReachable = true;
    await page.evaluate(`dispatchEvent(new Event('online'))`);
    await page.getByRole('button', { name: /^2 rows have changed/ }).waitFor();
    assert.equal(await page.getByText(/^Disconnected since/).count(), 0);
    assert.ok(sent.some((message) => /record\.subscribe.*"from_seq":\d+/.test(message)));
  });
});
