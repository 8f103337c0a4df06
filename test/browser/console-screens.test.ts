import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Page } from 'playwright-core';
import { cleaningAfterAll } from '../folder.ts';
import { startSite, type TestSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser } from './browser.ts';
import { goTo, heading, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();
const long = `${'long-'.repeat(38)}שלום-😀`;

interface Screen {
  readonly hash: string;
  readonly title: string | RegExp;
}

/** Every screen of the console, with long texts, texts from right to left, and emoji. */
async function start(): Promise<{ readonly site: TestSite; readonly screens: readonly Screen[] }> {
  const site = await startSite(cleaningAfterAll(), {
    ini: '[disk.site]\nroot = site\n',
    files: { 'site/index.html': '<h1>Front</h1>' },
  });
  const insert = async (name: string, v: object): Promise<string> => {
    const { data, error } = await site.call(`svc1.${name}.insert`, v);
    assert.equal(error, undefined, `${name}: ${error?.message}`);
    return data.id as string;
  };
  const path = `/${encodeURIComponent(long)}`;
  const page = await insert('userinterface', { path, kind: 'content', content: '<p>x</p>' });
  const when = [{ if: { country: ['CH'], percent: 30 }, target: path }];
  const crumb = { path: 'summer', kind: 'resolve', enginedata: { when, target: '/' } };
  const key = await insert('userinterface', crumb);
  const hook = await insert('webhook', {
    name: long.slice(-120),
    url: 'http://x.example/',
    event: ['a.b'],
  });
  const schema = { required: ['name'], properties: { name: { type: 'string' }, n: {} } };
  await insert('table', { name: 'lamps', schema, index: ['name'] });
  const row = await insert('record', { table: 'lamps', name: long, n: 1 });
  await insert('key', { name: long.slice(0, 120), scopes: ['read', 'record.read:lamps'] });
  const screens: readonly (readonly [string, string | RegExp])[] = [
    ['#/', 'Overview'],
    ['#/pages', 'Pages'],
    ['#/pages?sort=path', 'Pages'],
    ['#/pages?text=x', 'Pages'],
    ['#/pages?text=nothing', 'Pages'],
    ['#/pages/new', 'New page'],
    [`#/pages/${page}`, /long/],
    ['#/explain', 'Explain'],
    [`#/explain?url=${encodeURIComponent(path)}`, 'Explain'],
    ['#/explain?url=/none', 'Explain'],
    ['#/breadcrumbs', 'Breadcrumbs'],
    ['#/breadcrumbs/new', 'New breadcrumb'],
    [`#/breadcrumbs/${key}`, 'summer'],
    [`#/breadcrumbs/${key}?part=visitors`, 'summer'],
    [`#/breadcrumbs/${key}?part=visits`, 'summer'],
    [`#/breadcrumbs/${key}?part=code`, 'summer'],
    ['#/history', 'History'],
    ['#/history?by=nobody', 'History'],
    [`#/history?id=${page}`, 'History of a page'],
    ['#/history/past', 'The site in the past'],
    ['#/webhooks', 'Webhooks'],
    ['#/webhooks/new', 'New webhook'],
    ['#/webhooks/send', 'Send an event'],
    [`#/webhooks/${hook}`, /long/],
    [`#/webhooks/${hook}/edit`, 'Edit'],
    ['#/tables', 'Tables'],
    ['#/tables/new', 'New table'],
    ['#/tables/lamps', 'lamps'],
    ['#/tables/lamps/definition', 'Definition of lamps'],
    ['#/tables/lamps/transfer', 'Import and export of lamps'],
    ['#/tables/lamps/row/new', 'New row'],
    [`#/tables/lamps/row/${row}`, /long|lamps/],
    ['#/operations', 'Keys'],
    ['#/operations/log', 'Access log'],
    ['#/operations/sources', 'Sources'],
    ['#/operations/cache', 'Cache'],
    ['#/operations/nodes', 'Nodes'],
    ['#/operations/certificates', 'Certificates'],
    ['#/operations/configuration', 'Configuration'],
  ];
  return { site, screens: screens.map(([hash, title]) => ({ hash, title })) };
}

/** Opens a screen, and waits until it has loaded. */
async function show(page: Page, { hash, title }: Screen): Promise<void> {
  await goTo(page, hash, title);
  await page.locator('.busy').first().waitFor({ state: 'detached' });
}

/** The element that the Tab key reaches has an outline, and nothing moves with reduced motion. */
async function assertFocusShown(page: Page, hash: string): Promise<void> {
  await page.locator('main').focus();
  await page.keyboard.press('Tab');
  const focused = '(e => e.shadowRoot?.activeElement ?? e)(document.activeElement)';
  const [outline, motion] = await page.evaluate<string[]>(
    `(s => [s.outlineStyle + s.outlineWidth, s.transitionDuration])(getComputedStyle(${focused}))`,
  );
  assert.match(outline ?? '', /^(solid|auto)[1-9]/, hash);
  assert.equal(motion, '0s', hash);
}

const desktop = { width: 1440, height: 900 };
const phone = { width: 390, height: 844 };
/** A desktop at a zoom of 200 %. */
const zoomed = { width: 720, height: 450 };

suite('every screen of the console', () => {
  const started = start();

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`is open to all on a desktop and a phone, in ${colorScheme}, without errors`, async (t) => {
      const { site, screens } = await started;
      const tab = await openConsole(t, openTab, site, { viewport: desktop, colorScheme });
      const { page } = tab;
      for (const screen of screens) {
        const { hash } = screen;
        await page.setViewportSize(desktop);
        await show(page, screen);
        await assertReadable(tab, hash);
        await assertOpenToAll(page, hash, colorScheme === 'light' ? undefined : ['color-contrast']);
        if (colorScheme === 'light') {
          await page.setViewportSize(zoomed);
          await assertReadable(tab, `${hash} at 200 %`);
        } else {
          await assertFocusShown(page, hash);
        }
        await page.setViewportSize(phone);
        await assertReadable(tab, `${hash} on a phone`);
        const rules = ['color-contrast', 'target-size', 'scrollable-region-focusable'];
        await assertOpenToAll(page, `${hash} on a phone`, rules);
      }
      // Explain and the preview of the page for which nothing answers.
      const expected = /status 404: \/svc1\/|status of 404/;
      assert.deepEqual(
        realTroubles(tab).filter((one) => !expected.test(one)),
        [],
      );
    });
  }

  test('keeps its heading and says so when the server is gone', async (t) => {
    const { site, screens } = await started;
    const { page } = await openConsole(t, openTab, site, { viewport: phone });
    // The code of the screens is there; only the operations fail.
    for (const screen of screens) await show(page, screen);
    await page.route('**/svc1/*/*', (route) =>
      route.request().method() === 'POST' ? route.abort('connectionrefused') : route.continue(),
    );
    const needNothing = /new$|send$|\/explain$|log$|transfer$|part=code$/;
    for (const { hash } of screens.filter((one) => !needNothing.test(one.hash))) {
      // A screen without a request first, so that the failure is not that of the former one.
      await goTo(page, '#/explain', 'Explain');
      await page.locator('main [role=alert]').first().waitFor({ state: 'detached' });
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.locator('main [role=alert]').first().waitFor();
      await page.locator('main h1').first().waitFor();
    }
  });

  test('is there for a key without scopes, and says which scope it needs', async (t) => {
    const { site, screens } = await started;
    const { data } = await site.call('svc1.key.insert', { name: 'guest', scopes: ['render'] });
    const tab = await openTab(t, { viewport: desktop });
    const { page } = tab;
    await page.goto(`${site.url}/svc1/console/`);
    await page.getByLabel('API key').fill(data.key as string);
    await page.keyboard.press('Enter');
    await heading(page, /./);
    for (const { hash } of screens) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.locator('main h1').first().waitFor();
      await page.getByText(/scope/).first().waitFor();
    }
    assert.ok(!tab.troubles.some((one) => one.startsWith('uncaught')));
  });
});
