import assert from 'node:assert/strict';
import { after, suite, test, type TestContext } from 'node:test';
import { httpSource } from '../core/outbound/sources.ts';
import { startTlsSite } from '../core/server/tls/tls-rig.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import type { TestSite } from '../harness.ts';
import { code, goTo, openConsole, realTroubles, type ConsoleTab } from './console-tab.ts';

const openTab = oneBrowser();
const source = await httpSource({ after }, (request, response) => {
  if (request.url === '/cut') request.socket.destroy();
  else response.setHeader('cache-control', 'max-age=600').end('fetched');
});
const started = startTlsSite(
  { after },
  {
    tls: 'http_redirect = no',
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
  await reportNode(site);
  return openConsole(t, openTab, site, options);
}

let nodeKey: Promise<string> | undefined;

/** Reports the state of a counter that has a refused entry. */
async function reportNode(site: TestSite): Promise<void> {
  const node = 'zurich';
  nodeKey ??= site
    .call('svc1.key.insert', { name: node, scopes: ['follow'], node })
    .then(({ data }) => data.key as string);
  const outbox = { waiting: 4, refused: 1 };
  const report = { node, role: 'counter', place: code, version: '1', seq: 1, now: 0, ...outbox };
  await site.call('svc1.node.report', report, { apikey: await nodeKey });
}

/** The screens, each with an element that appears once it has loaded. */
const screens = [
  ['#/operations', 'Keys', '.table-list li'],
  ['#/operations/log', 'Access log', '.pulse.open'],
  ['#/operations/sources', 'Sources', '.grid tbody tr'],
  ['#/operations/cache', 'Cache', '.tile'],
  ['#/operations/nodes', 'Nodes', '.cards li'],
  ['#/operations/certificates', 'Certificates', '.cards li'],
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

  test('a key gets an end, which is shown, and moved', async (t) => {
    const { page, site } = await signedIn(t);
    await goTo(page, '#/operations', 'Keys');
    await page.getByLabel('Name', { exact: true }).fill('guest');
    await page.getByLabel('Ends at (empty: never)').fill('2999-12-01T08:00');
    await page.getByLabel('Time zone of the end').fill('Europe/Berlin');
    await page.getByRole('button', { name: 'Make a key' }).click();
    const row = page.locator('.table-list > li', { hasText: 'guest' });
    await row.getByText('ends', { exact: false }).first().waitFor();
    const ends = async () => {
      const { data } = await site.call('svc1.key.list', {});
      return data.rows.find(({ name }: { name: string }) => name === 'guest')?.until;
    };
    assert.equal(await ends(), '2999-12-01T07:00:00.000Z');
    await row.getByRole('button', { name: 'Change its end guest' }).click();
    await row.getByLabel('Ends at (empty: never)').fill('');
    await row.getByRole('button', { name: 'Save its end' }).click();
    await row.getByRole('button', { name: 'Save its end' }).waitFor({ state: 'detached' });
    assert.equal(await ends(), undefined);
  });

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

  test('nodes show how far they are behind, and certificates until when they are valid', async (t) => {
    const { page } = await signedIn(t);
    await goTo(page, '#/operations/nodes', 'Nodes');
    const node = page.locator('.cards li', { hasText: 'zurich' });
    await node.waitFor();
    const shown = (await node.textContent()) ?? '';
    for (const part of [code, 'counter', '4 waiting', '1 refused', 'The console of that node']) {
      assert.ok(shown.includes(part), `${part}: ${shown}`);
    }
    assert.match(shown, /Behind by\d+ change/);
    await goTo(page, '#/operations/certificates', 'Certificates');
    const certificate = page.locator('.cards li', { hasText: 'localhost' });
    await certificate.getByText('valid', { exact: true }).waitFor();
    assert.match((await certificate.textContent()) ?? '', /Authority of a test.*by hand/s);
    assert.equal(await page.evaluate('window.hit'), undefined);
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
