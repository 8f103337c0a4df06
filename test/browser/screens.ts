import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { builtDocs } from '../docs/built-docs.ts';
import { cleaningAfterAll } from '../folder.ts';
import { startSite, type TestSite } from '../harness.ts';
import { httpSource } from '../core/outbound/sources.ts';
import { startReceiver } from '../modules/webhooks/receiver.ts';
import { goTo } from './console-tab.ts';

/** Texts without a place to break a line: from left to right with an emoji, and from right to left. */
const long = `${'long-'.repeat(38)}שלום-😀`;
const rightToLeft = 'שלום'.repeat(20);
const minuteMs = 60_000;

/** A screen of the console. */
export interface Screen {
  readonly hash: string;
  readonly title: string | RegExp;
  /** An element that appears once the screen has loaded. */
  readonly ready?: string;
  /** Opens what the URL does not say, such as a dialog. */
  readonly open?: (page: Page) => Promise<void>;
}

/** Every screen of the console of a site with long texts, texts from right to left, and emoji. */
export interface Screens {
  readonly site: TestSite;
  readonly screens: readonly Screen[];
}

/** Opens a screen, and waits until it has loaded. */
export async function show(page: Page, { hash, title, ready, open }: Screen): Promise<void> {
  await goTo(page, hash, title);
  await page.locator('.busy').first().waitFor({ state: 'detached' });
  if (ready !== undefined) await page.locator(ready).first().waitFor();
  await open?.(page);
}

/**
 * Replaces the series of a site's metrics: webhooks fail in the minute of a change, and requests in
 * it and in the one before. The server adds its own first counts a minute after its start.
 */
export async function writeSeries(site: TestSite, changedMs: number): Promise<void> {
  const nowMs = Math.floor(changedMs / minuteMs) * minuteMs;
  const points = [-3, -2, -1, 0].map((minute) => ({
    time: nowMs + minute * minuteMs,
    classes: [0, 100, 0, 0, minute < -1 ? 0 : 30],
    ...{ sources: [0, 100, 0, 0], durations: [100, 0, 0], cache: [0, 0], bytes: 1000 },
    hooks: [0, minute === 0 ? 2 : 0],
  }));
  const tiers = [minuteMs, 15 * minuteMs, 60 * minuteMs].map((stepMs) => ({ stepMs, points }));
  const series = { version: 1, bounds: [0.1, 1], tiers };
  await writeFile(join(site.folder, 'data/series.json'), JSON.stringify(series));
}

/** Starts the site before the tests of a file; `docs` are for the help. */
export async function startScreens({ folder }: { readonly folder: string }): Promise<Screens> {
  const cleaning = cleaningAfterAll();
  const source = await httpSource(cleaning, (request, response) => {
    if (request.url?.startsWith('/cut') === true) request.socket.destroy();
    else response.setHeader('cache-control', 'max-age=600').end('fetched');
  });
  const site = await startSite(cleaning, {
    docsFolder: folder,
    server: 'trust_proxy = 127.0.0.0/8',
    ini:
      '[disk.site]\nroot = site\n[geo]\ncountry_header = X-Country\n' +
      '[webhook]\nallow_private = 127.0.0.0/8\nretry = 1h\n' +
      '[fetch]\nallow_private = 127.0.0.0/8\n',
    files: { 'site/index.html': '<h1>Front</h1>' },
    rules: [
      { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${source.origin}/*` } },
      { path: '/two', kind: 'content', lang: 'en', content: '<h1>English</h1>' },
    ],
  });
  const ids = await fill(site, cleaning);
  return { site, screens: screensOf(ids) };
}

/** Builds the documentation, and starts the site; call it outside of suites. */
export function documentedScreens(): Promise<Screens> {
  return builtDocs().then(startScreens);
}

/** Uploads a picture. */
async function upload({ url, adminKey }: TestSite, name: string): Promise<void> {
  const body = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 3 2"><circle r="1"/></svg>';
  const headers = { apikey: adminKey };
  const reply = await fetch(`${url}/svc1/asset/${encodeURIComponent(name)}`, {
    ...{ method: 'PUT', body, headers },
  });
  assert.equal(reply.status, 200, await reply.text());
}

type Ids = Awaited<ReturnType<typeof fill>>;

/** Stores what the screens show; returns the ids that their URLs have. */
async function fill(site: TestSite, cleaning: ReturnType<typeof cleaningAfterAll>) {
  const call = async (name: string, v: object) => {
    const { data, error } = await site.call(`svc1.${name}`, v);
    assert.equal(error, undefined, `${name}: ${error?.message}`);
    return data;
  };
  const insert = async (name: string, v: object): Promise<string> =>
    (await call(`${name}.insert`, v)).id as string;
  const path = `/${encodeURIComponent(long)}`;
  const made = await call('userinterface.insert', { path, kind: 'content', content: '<p>x</p>' });
  const page = made.id as string;
  await call('userinterface.edit', { id: page, content: `<p>${long}</p>` });
  const other = `/${encodeURIComponent(rightToLeft)}`;
  await insert('userinterface', { path: other, kind: 'content', content: rightToLeft });
  await upload(site, `${long.slice(-200)}.svg`);
  await insert('userinterface', { path: `/picture${path}`, asset: `${long.slice(-200)}.svg` });
  const from = '2999-12-01T08:00[America/Argentina/ComodRivadavia]';
  await insert('userinterface', { path: `/limited${path}`, kind: 'content', from });
  const german = { path: '/two', kind: 'content', lang: 'de', content: '<h1>Deutsch</h1>' };
  const hidden = await insert('userinterface', german);
  const when = [{ if: { country: ['CH'], percent: 30 }, target: path }];
  const crumb = { path: 'summer', kind: 'resolve', enginedata: { when, target: '/' } };
  const key = await insert('userinterface', crumb);
  await insert('userinterface', { ...crumb, path: rightToLeft });
  const receiver = await startReceiver(cleaning);
  receiver.answer = () => (response) => response.writeHead(500).end(long);
  const event = ['a.b', 'sale.completed'];
  const hook = await insert('webhook', { name: long.slice(-120), url: receiver.url, event });
  await call('event.insert', { type: 'a.b', data: { [long]: rightToLeft } });
  await receiver.until(1);
  const schema = {
    required: ['name'],
    properties: {
      name: { type: 'string' },
      ['wide_'.repeat(9)]: { type: 'string', description: long },
      n: {},
    },
  };
  await insert('table', { name: 'lamps', schema, index: ['name'] });
  await insert('record', { table: 'lamps', name: rightToLeft, n: 2 });
  const row = await insert('record', { table: 'lamps', name: long, n: 1 });
  const { seq } = await call('record.edit', { table: 'lamps', id: row, n: 3 });
  await insert('key', { name: long.slice(0, 120), scopes: ['read', 'record.read:lamps'] });
  await insert('key', { name: rightToLeft, scopes: ['read'] });
  const draft = await insert('draft', { name: long.slice(0, 120), comment: rightToLeft });
  await insert('draft', { name: rightToLeft });
  const inDraft = { draft };
  await site.call('svc1.userinterface.edit', { id: page, content: rightToLeft }, inDraft);
  await site.call('svc1.userinterface.insert', { path: `/n${path}`, kind: 'content' }, inDraft);
  await call('userinterface.edit', { id: page, content: `<p>${long}${long}</p>` });
  await call('draft.comment', { draft, text: long });
  await call('draft.preview', { draft });
  await visitPages(site);
  const node = { name: 'zurich', scopes: ['follow'], node: 'zurich' };
  const { key: apikey } = await call('key.insert', node);
  const state = { role: 'counter', place: long, version: '1', seq: 1, now: 0 };
  const report = { node: 'zurich', ...state, waiting: 4, refused: 1 };
  assert.equal((await site.call('svc1.node.report', report, { apikey })).error, undefined);
  for (let health = ''; health !== 'failing';)
    health = (await site.call('svc1.webhook.health', {})).data.rows[0].state;
  const { rows } = await call('change.list', { family: 'userinterface' });
  await writeSeries(site, Date.parse(rows[0].dtu_stored));
  const seqs = { seq: made.seq as number, rowSeq: seq as number };
  return { ...{ path, page, hidden, key, hook, row, draft }, ...seqs };
}

/** Follows the breadcrumb, and requests fetched pages, of which one fails. */
async function visitPages({ url }: TestSite): Promise<void> {
  const headers = {
    'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    referer: `https://${'news-'.repeat(10)}paper.example/x`,
    'x-country': 'CH',
  };
  await fetch(`${url}/svc1/userinterface.link.htm?k=summer`, { headers, redirect: 'manual' });
  for (const path of [long, 'cut']) {
    await (await fetch(`${url}/far/${encodeURIComponent(path)}`)).text();
  }
  const asked = { headers: { ...headers, accept: 'text/html' } };
  await (await fetch(`${url}/far/${encodeURIComponent(long)}`, asked)).text();
}

function screensOf({
  path,
  page,
  seq,
  hidden,
  key,
  hook,
  row,
  rowSeq,
  draft,
}: Ids): readonly Screen[] {
  const openDelivery = async (tab: Page): Promise<void> => {
    await tab.locator('.attempt').first().click();
    await tab.locator('.answers li').first().waitFor();
    for (const summary of await tab.locator('.delivery summary').all()) await summary.click();
  };
  const help = (tab: Page) => tab.getByRole('complementary', { name: 'Help' });
  const openHelp = async (tab: Page): Promise<void> => {
    await tab.getByRole('button', { name: 'Help', exact: true }).click();
    await help(tab).getByRole('heading').first().waitFor();
  };
  // The help is still open.
  const openTour = async (tab: Page): Promise<void> => {
    await help(tab).getByRole('button', { name: 'Take the tour' }).click();
    await tab.getByRole('dialog', { name: 'Tour of the console' }).waitFor();
  };
  const openDeletion = async (tab: Page): Promise<void> => {
    await tab
      .getByRole('button', { name: /^Delete …/ })
      .first()
      .click();
    await tab.getByRole('button', { name: 'Delete it' }).waitFor();
  };
  const openFound = async (tab: Page): Promise<void> => {
    await tab.getByRole('button', { name: 'Find', exact: true }).click();
    await tab.locator('.found-pages li').first().waitFor();
  };
  const screens: readonly (readonly [string, string | RegExp, string?, Screen['open']?])[] = [
    ['#/', 'Overview', '.chart canvas'],
    ['#/?last=24h', 'Overview', '.anomalies .causes a'],
    ['#/pages', 'Pages', '.row'],
    ['#/pages?sort=path', 'Pages', '.row'],
    ['#/pages?text=long', 'Pages', '.row'],
    ['#/pages?text=nothing', 'Pages', '.empty'],
    ['#/pages/new', 'New page', '.code .cm-editor'],
    [`#/pages/${page}`, /long/, '.code .cm-editor'],
    [`#/pages/${hidden}?lang=en&device=tablet`, '/two', '.code .cm-editor'],
    ['#/explain', 'Explain'],
    [`#/explain?url=${encodeURIComponent(path)}`, 'Explain', '.precedence'],
    ['#/explain?url=/none', 'Explain', '.verdict.none'],
    ['#/breadcrumbs', 'Breadcrumbs', '.row'],
    ['#/visits', 'Visits', '.bars .bar'],
    [`#/visits?path=${encodeURIComponent('/far/')}${'w'.repeat(200)}`, /far/, '.chart canvas'],
    ['#/breadcrumbs/new', 'New breadcrumb', '.branch'],
    [`#/breadcrumbs/${key}`, 'summer', '.branch'],
    [`#/breadcrumbs/${key}?part=visitors`, 'summer', '.visitor-grid b'],
    [`#/breadcrumbs/${key}?part=visits`, 'summer', '.chart canvas'],
    [`#/breadcrumbs/${key}?part=code`, 'summer', '.qr'],
    ['#/drafts', 'Drafts', '.draft-cards h2'],
    ['#/drafts?state=published', 'Drafts', '.empty'],
    ['#/drafts/new', 'New draft'],
    ['#/pages/new?path=/_templates/x', 'New page', '.page-start'],
    ['#/pages/replace?find=long', 'Find and replace', '.replace-form', openFound],
    ['#/calendar', 'Calendar', '.calendar-day time'],
    ['#/assets', 'Pictures and files', '.asset-cards .thumbnail img'],
    ['#/assets?unused=yes', 'Pictures and files', '.empty'],
    ['#/assets', 'Pictures and files', '.asset-cards li', openDeletion],
    [`#/drafts/${draft}`, /long/, '.conflicts .side'],
    ['#/history', 'History', '.changes li'],
    ['#/history?by=nobody', 'History'],
    [`#/history?id=${page}`, 'History of a page', '.rendered iframe'],
    [`#/history?id=${page}&seq=${seq + 1}`, 'History of a page', '.side'],
    ['#/history/past', 'The site in the past', '.past-slider'],
    [`#/history/past?at=${seq}&page=${path}`, 'The site in the past', '.rendered iframe'],
    ['#/webhooks', 'Webhooks', '.hook-card'],
    ['#/webhooks/new', 'New webhook', '.pair'],
    ['#/webhooks/send', 'Send an event', '.field'],
    [`#/webhooks/${hook}`, /long|שלום/, '.attempt', openDelivery],
    [`#/webhooks/${hook}/edit`, 'Edit', '.pair'],
    ['#/tables', 'Tables', '.cards li'],
    ['#/tables/new', 'New table'],
    ['#/tables/lamps', 'lamps', '.row'],
    ['#/tables/lamps/definition', 'Definition of lamps', '.table-fields'],
    ['#/tables/lamps/transfer', 'Import and export of lamps', '.file-input'],
    ['#/tables/lamps/row/new', 'New row', '.fields input'],
    [`#/tables/lamps/row/${row}?seq=${rowSeq}`, /long|lamps/, '.version-list a'],
    ['#/operations', 'Keys', '.table-list li'],
    ['#/operations/log', 'Access log', '.pulse.open'],
    ['#/operations/sources', 'Sources', '.grid tbody tr'],
    ['#/operations/cache?prefix=/far/', 'Cache', '.grid tbody tr'],
    ['#/operations/nodes', 'Nodes', '.cards li'],
    ['#/operations/certificates', 'Certificates'],
    ['#/operations/configuration', 'Configuration', '.ini-section'],
    ['#/webhooks', 'Webhooks', '.hook-card', openHelp],
    ['#/', 'Overview', '.tiles', openTour],
  ];
  return screens.map(([hash, title, ready, open]) => ({
    ...{ hash, title },
    ...(ready !== undefined && { ready }),
    ...(open !== undefined && { open }),
  }));
}
