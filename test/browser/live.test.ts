import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { WebSocketRoute } from 'playwright-core';
import { startSite } from '../harness.ts';
import { oneBrowser, visitGeneric, type Tab } from './browser.ts';

const openTab = oneBrowser();
const insert = 'svc1.userinterface.insert';
const edit = 'svc1.userinterface.edit';

function rule(path: string, html: string, more: object = {}): object {
  return { path, kind: 'content', engine: 'html', enginedata: { html, ...more } };
}

/** Resolves once the page's websocket is `on`, or `off`. */
function live({ page }: Tab, state: 'on' | 'off'): Promise<void> {
  return page.locator(`html[data-waymark-live=${state}]`).waitFor({ state: 'attached' });
}

/** Resolves once the page's heading has a text. */
function says({ page }: Tab, text: string): Promise<void> {
  return page.getByRole('heading', { level: 1, name: text, exact: true }).waitFor();
}

suite('a page opened with ?_live', () => {
  test('is rendered again when its rule changes, for a visitor without a key', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call(insert, rule('/page', '<h1>old</h1>'));
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${site.url}/page?_live`), 'rendered');
    await live(tab, 'on');
    await tab.page.evaluate('window.isSame = true');
    await site.call(edit, { id: data.id, enginedata: { html: '<h1>new</h1>' } });
    await says(tab, 'new');
    await site.call(edit, { id: data.id, enginecomments: 'nothing that is shown' });
    await site.call(edit, {
      id: data.id,
      engine: 'template',
      enginedata: { template: '<h1>{{ path }}</h1>' },
    });
    await says(tab, '/page');
    assert.equal(await tab.page.evaluate('isSame'), true);
    assert.equal(await tab.page.title(), '/page');
    assert.deepEqual(tab.troubles, []);
  });

  test('but a page without it stays as it is', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call(insert, rule('/page', '<h1>old</h1>'));
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${site.url}/page`), 'rendered');
    await site.call(edit, { id: data.id, enginedata: { html: '<h1>new</h1>' } });
    assert.equal(await tab.page.locator('html[data-waymark-live]').count(), 0);
    assert.equal(await tab.page.locator('h1').innerText(), 'old');
    await tab.page.evaluate('waymark.refresh()');
    assert.equal(await tab.page.locator('h1').innerText(), 'new');
  });

  test('shows a new rule, a more specific one, and a deleted one', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\nfallback = frame.html\n',
      files: {
        'site/frame.html':
          '<!doctype html><html lang="en"><title>Frame</title><main id="waymark"></main>' +
          '<script defer src="/svc1/engine.js"></script>',
      },
    });
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${site.url}/a/page?_live`), 'failed');
    await live(tab, 'on');
    await says(tab, 'There is no page here');
    await site.call(insert, rule('/a/*', '<h1>for all</h1>'));
    await says(tab, 'for all');
    const { data } = await site.call(insert, rule('/a/page', '<h1>for this</h1>'));
    await says(tab, 'for this');
    await site.call(edit, { id: data.id, path: '/a/other' });
    await says(tab, 'for all');
    const { data: all } = await site.call('svc1.userinterface.list', { path: '/a/*' });
    for (const { id } of all.rows) {
      const { data: dry } = await site.call('svc1.userinterface.invalidate', { id });
      await site.call('svc1.userinterface.invalidate', { id, confirm: dry.digest });
    }
    await says(tab, 'There is no page here');
  });

  test('runs the scripts of each version of the rule once', async (t) => {
    const site = await startSite(t);
    const scripts = ['const once = 1; window.runs = (window.runs ?? 0) + once;'];
    const { data } = await site.call(insert, rule('/page', '<h1>old</h1>', { scripts }));
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${site.url}/page?_live`), 'rendered');
    await live(tab, 'on');
    await site.call(edit, { id: data.id, enginedata: { html: '<h1>new</h1>', scripts } });
    await says(tab, 'new');
    await live(tab, 'on');
    assert.equal(await tab.page.evaluate('runs'), 1);
    assert.deepEqual(tab.troubles, []);
  });

  test('catches up after its connection was lost', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call(insert, rule('/page', '<h1>old</h1>'));
    const tab = await openTab(t);
    const { page } = tab;
    const sockets: WebSocketRoute[] = [];
    const asked: unknown[] = [];
    await page.routeWebSocket(/\/svc1\/ws$/, (socket) => {
      sockets.push(socket);
      const server = socket.connectToServer();
      socket.onMessage((message) => {
        asked.push(JSON.parse(message.toString()).v.from_seq);
        server.send(message);
      });
    });
    assert.equal(await visitGeneric(tab, `${site.url}/page?_live`), 'rendered');
    await live(tab, 'on');
    const { seq } = data;
    await sockets[0]?.close();
    await live(tab, 'off');
    await site.call(edit, { id: data.id, enginedata: { html: '<h1>new</h1>' } });
    await says(tab, 'new');
    await live(tab, 'on');
    assert.deepEqual(asked, [undefined, seq]);
    await site.call(edit, { id: data.id, enginedata: { html: '<h1>newer</h1>' } });
    await says(tab, 'newer');
  });

  test('follows the rows that it shows, and the titles of those that they refer to', async (t) => {
    const site = await startSite(t);
    const table = (name: string, properties: object, more: object) =>
      site.call('svc1.table.insert', {
        ...{ name, key: 'sku', schema: { type: 'object', properties } },
        ...more,
      });
    const text = { type: 'string' };
    await table('makers', { sku: text, name: text }, { title: 'name', read: 'anonymous' });
    const properties = { sku: text, maker: { ...text, 'x-table': 'makers' } };
    await table('lamps', properties, { read: 'anonymous' });
    const row = (operation: string, v: object) => site.call(`svc1.record.${operation}`, v);
    await row('insert', { table: 'makers', sku: 'm', name: 'Tern' });
    await row('insert', { table: 'lamps', sku: 'a', maker: 'm' });
    const template =
      '<h1>{% for one in rows.all %}{{ one.sku }} {{ one._titles_.maker }} {% endfor %}</h1>';
    for (const [path, more] of [
      ['/page', {}],
      ['/scripts', { render: 'server', scripts: ['window.runs = (window.runs ?? 0) + 1'] }],
    ] as const) {
      const enginedata = { template, rows: { all: { table: 'lamps' } }, ...more };
      await site.call(insert, { path, kind: 'content', engine: 'template', enginedata });
    }
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${site.url}/page?_live`), 'rendered');
    await live(tab, 'on');
    await says(tab, 'a Tern');
    await row('insert', { table: 'lamps', sku: 'b' });
    await says(tab, 'a Tern b');
    await row('edit', { table: 'makers', sku: 'm', name: 'Gull' });
    await says(tab, 'a Gull b');

    // With scripts, only a change of the rows loads the page again.
    assert.equal(await visitGeneric(tab, `${site.url}/scripts?_live`), 'rendered');
    let loads = 0;
    tab.page.on('load', () => (loads += 1));
    for (const name of ['Swift', 'Swan']) {
      await live(tab, 'on');
      await row('edit', { table: 'makers', sku: 'm', name });
      await says(tab, `a ${name} b`);
    }
    await live(tab, 'on');
    assert.equal(loads, 2);
    assert.deepEqual(tab.troubles, []);
  });

  test('follows only the rows that its visitor may read', async (t) => {
    const site = await startSite(t);
    await site.call('svc1.table.insert', {
      ...{ name: 'notes', key: 'sku', schema: { type: 'object', properties: { sku: {} } } },
    });
    const enginedata = { template: '<h1>{{ path }}</h1>', rows: { all: { table: 'notes' } } };
    await site.call(insert, { path: '/page', kind: 'content', engine: 'template', enginedata });
    const tab = await openTab(t);
    const received: string[] = [];
    tab.page.on('websocket', (socket) => {
      socket.on('framereceived', ({ payload }) => received.push(payload.toString()));
    });
    assert.equal(await visitGeneric(tab, `${site.url}/page?_live`), 'rendered');
    await live(tab, 'on');
    await site.call('svc1.record.insert', { table: 'notes', sku: 'secret' });
    const { data } = await site.call('svc1.userinterface.list', { path: '/page' });
    const { id } = data.rows[0];
    await site.call(edit, { id, enginedata: { ...enginedata, template: '<h1>new</h1>' } });
    await says(tab, 'new');
    assert.match(received.join(''), /unauthenticated/);
    assert.doesNotMatch(received.join(''), /secret|record\.change/);
  });

  test('from another origin follows the rule as well', async (t) => {
    const pages = await startSite(t);
    const rules = await startSite(t);
    const { data } = await rules.call(insert, {
      ...rule('/page', '<h1>old</h1>'),
      origin: pages.url,
    });
    await pages.call(insert, {
      path: '/page',
      kind: 'content',
      content:
        '<!doctype html><html lang="en"><title>Frame</title><main id="waymark"></main>' +
        `<script defer src="${rules.url}/svc1/engine.js"></script>`,
    });
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${pages.url}/page?_live`), 'rendered');
    await live(tab, 'on');
    await rules.call(edit, { id: data.id, enginedata: { html: '<h1>new</h1>' } });
    await says(tab, 'new');
    assert.deepEqual(tab.troubles, []);
  });
});
