import assert from 'node:assert/strict';
import { after, suite, test, type TestContext } from 'node:test';
import { startSite } from '../harness.ts';
import { httpSource } from '../outbound/sources.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import { code, goTo, openConsole, realTroubles, type ConsoleTab } from './console-tab.ts';

const openTab = oneBrowser();
const source = await httpSource({ after }, (request, response) => {
  if (request.url === '/cut') request.socket.destroy();
  else response.setHeader('cache-control', 'max-age=600').end('fetched');
});
const started = startSite(
  { after },
  {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n[geo]\ncountry_header = X-Country\n',
    rules: [
      { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${source.origin}/*` } },
      { path: '/here', kind: 'content', content: 'here' },
    ],
  },
);

async function signedIn(t: TestContext, options: object = {}): Promise<ConsoleTab> {
  const site = await started;
  await (await fetch(`${site.url}/far/kept`)).text();
  await (await fetch(`${site.url}/far/cut`)).text();
  return openConsole(t, openTab, site, options);
}

/** The screens, each with an element that appears once it has loaded. */
const screens = [
  ['#/operations', 'Operations', '.table-list li'],
  ['#/operations/log', 'Access log', '.pulse.open'],
  ['#/operations/sources', 'Sources', '.grid tbody tr'],
  ['#/operations/cache', 'Cache', '.tile'],
  ['#/operations/nodes', 'Nodes', '.panel'],
  ['#/operations/certificates', 'Certificates', '.empty'],
  ['#/operations/configuration', 'Configuration', '.ini-section'],
] as const;

suite('the operations of the console', () => {
  for (const [at, { name, viewport }] of sizes.entries()) {
    // Colours do not depend on the size.
    for (const colorScheme of [at % 2 === 0 ? 'dark' : 'light'] as const) {
      test(`are open to all on ${name}, in ${colorScheme}, without errors`, async (t) => {
        const tab = await signedIn(t, { viewport, colorScheme });
        for (const [hash, title, element] of screens) {
          await goTo(tab.page, hash, title);
          await tab.page.locator(element).first().waitFor();
          await assertReadable(tab, hash);
          await assertOpenToAll(tab.page, hash);
        }
        assert.deepEqual(realTroubles(tab), []);
      });
    }
  }

  test('the access log shows requests as they come, filtered, and what clients send as text', async (t) => {
    const { page, site } = await signedIn(t);
    await goTo(page, '#/operations/log', 'Access log');
    await page.locator('.pulse.open').waitFor();
    const headers = { 'user-agent': code, referer: `http://x.example/${code}` };
    await (await fetch(`${site.url}/here?apikey=wmk_secret`, { headers })).text();
    const line = page.locator('.log-line', { hasText: '/here?apikey=wmk_…' });
    await line.waitFor();
    assert.match((await line.textContent()) ?? '', /<img src=x onerror/);
    await page.getByLabel('Status').selectOption('4xx');
    await page.waitForURL(/status=4xx/);
    await page.locator('.pulse.open').waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await (await fetch(`${site.url}/here`)).text();
    await (await fetch(`${site.url}/gone`)).text();
    await page.locator('.log-line', { hasText: '/gone' }).waitFor();
    assert.equal(await page.locator('.log-line').count(), 1);
    await page.getByRole('button', { name: 'Pause' }).click();
    await (await fetch(`${site.url}/gone-meanwhile`)).text();
    await page.getByRole('button', { name: 'Continue' }).click();
    await (await fetch(`${site.url}/gone-later`)).text();
    await page.locator('.log-line', { hasText: '/gone-later' }).waitFor();
    assert.equal(await page.locator('.log-line').count(), 2);
    assert.equal(await page.evaluate('window.hit'), undefined);
  });

  test('sources show their failures first, with the last error', async (t) => {
    const { page } = await signedIn(t);
    await goTo(page, '#/operations/sources', 'Sources');
    const row = page.locator('.grid tbody tr', { hasText: source.origin });
    await row.locator('.problem').waitFor();
    assert.match((await row.textContent()) ?? '', /source/);
  });

  test('stored responses are found by the start of their path, and purged one by one', async (t) => {
    const { page, site } = await signedIn(t);
    await (await fetch(`${site.url}/far/other`)).text();
    await goTo(page, '#/operations/cache?prefix=/far/k', 'Cache');
    await page.locator('.grid tbody tr').waitFor();
    assert.equal(await page.locator('.grid tbody tr').count(), 1);
    await page
      .locator('.grid')
      .getByRole('button', { name: /^Purge/ })
      .click();
    await page.getByText('Purged 1.').waitFor();
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByLabel('Start of the URL or path').fill('/far/');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Purge all below /far/' }).click();
    await page.getByText('Purged 1.').waitFor();
    await page.getByText('The cache has no such responses.').waitFor();
  });

  test('the configuration names the line of each key, and can be searched', async (t) => {
    const { page } = await signedIn(t);
    await goTo(page, '#/operations/configuration', 'Configuration');
    await page.getByText('country_header has no effect').waitFor();
    await page.getByLabel('Search in keys and values').fill('allow_private');
    await page.waitForURL(/text=allow_private/);
    const row = page.getByRole('table', { name: 'fetch' }).getByRole('row');
    assert.match((await row.textContent()) ?? '', /allow_private127\.0\.0\.0\/8line \d+/);
  });
});
