import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { suite, test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import decodeQR from 'qr/decode.js';
import { cleaningAfterAll } from '../folder.ts';
import { startSite, type TestSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import {
  code,
  goTo,
  heading,
  holdNext,
  hostile,
  openConsole,
  realTroubles,
} from './console-tab.ts';

const openTab = oneBrowser();
const browserAgent = 'Mozilla/5.0 (X11; Linux x64; rv:140.0) Gecko/20100101 Firefox/140.0';

interface Shared {
  readonly site: TestSite;
  readonly summer: string;
  readonly hostile: string;
}

async function start(): Promise<Shared> {
  const site = await startSite(cleaningAfterAll(), {
    server: 'trust_proxy = 127.0.0.0/8',
    ini: '[geo]\ncountry_header = X-Country\n',
    rules: Array.from({ length: 300 }, (_, at) => ({
      ...{ path: `campaign-${at}`, kind: 'resolve', enginedata: { target: `/campaign/${at}` } },
    })),
  });
  const insert = async (path: string, enginedata: object): Promise<string> => {
    const rule = { path, kind: 'resolve', enginedata };
    return (await site.call('svc1.userinterface.insert', rule)).data.id as string;
  };
  const summer = await insert('summer', {
    when: [
      {
        if: { country: ['CH', 'LI'], lang: 'fr' },
        target: 'https://shop.example/ete',
        status: 307,
      },
      { if: { device: 'mobile' }, target: '/m' },
      { if: { percent: 30 }, target: '/b' },
    ],
    target: '/offers/',
  });
  const if_ = { city: hostile, [code]: code };
  const id = await insert(hostile, { when: [{ if: if_, html: hostile }], target: `/${code}` });
  const follow = (k: string, headers: Readonly<Record<string, string>>) =>
    fetch(`${site.url}/svc1/userinterface.link.htm?k=${encodeURIComponent(k)}`, {
      headers: { 'user-agent': browserAgent, ...headers },
      redirect: 'manual',
    });
  await follow('summer', { 'x-country': 'CH', referer: 'https://news.example/x' });
  await follow('summer', { 'x-country': 'DE' });
  await follow('campaign-7', {});
  await follow(hostile, { referer: `https://${encodeURIComponent(code)}.example/` });
  return { site, summer, hostile: id };
}

function branch(page: Page, name: string) {
  return page.getByRole('group', { name, exact: true });
}

suite('the breadcrumbs of the console', () => {
  const shared = start();

  async function signedIn(t: TestContext, options: object = {}) {
    const { site, ...ids } = await shared;
    return { ...(await openConsole(t, openTab, site, options)), ids };
  }

  for (const [at, { name, viewport }] of sizes.entries()) {
    const colorScheme = at === 0 ? 'light' : 'dark';
    test(`are open to all on ${name}, in ${colorScheme}, without errors`, async (t) => {
      const tab = await signedIn(t, { viewport, colorScheme });
      const { page, ids } = tab;
      for (const [hash, title, element] of [
        ['#/breadcrumbs', 'Breadcrumbs', '.row'],
        [`#/breadcrumbs/${ids.summer}`, 'summer', '.branch'],
        [`#/breadcrumbs/${ids.summer}?part=visitors`, 'summer', '.visitor-grid b'],
        [`#/breadcrumbs/${ids.summer}?part=visits`, 'summer', '.bars .bar'],
        [`#/breadcrumbs/${ids.summer}?part=code`, 'summer', '.qr'],
        ['#/breadcrumbs/new', 'New breadcrumb', '.branch'],
      ] as const) {
        await goTo(page, hash, title);
        await page.locator(element).first().waitFor();
        await page.waitForLoadState('networkidle');
        await assertReadable(tab, hash);
        await assertOpenToAll(page, hash);
      }
      assert.deepEqual(realTroubles(tab), []);
    });
  }

  test('are listed by visits, and filtered', async (t) => {
    const { page } = await signedIn(t);
    await goTo(page, '#/breadcrumbs', 'Breadcrumbs');
    await page.getByText('302 breadcrumbs').waitFor();
    await page.locator('.row').first().getByText('summer').waitFor();
    await page.locator('.virtual').evaluate('document.querySelector(".virtual").scrollTop = 1e6');
    await page.locator('li[aria-posinset="302"]').waitFor();
    assert.ok((await page.locator('.row').count()) < 60, 'only the rows in view exist');
    await page.keyboard.press('/');
    await page.keyboard.type('/campaign/29');
    await page.getByText('11 breadcrumbs').waitFor();
    await page.getByLabel('Sort by').selectOption('newest');
    await page.locator('.row').first().getByText('campaign-299').waitFor();
    await page.getByRole('searchbox').fill('nothing has this');
    await page.getByText('No breadcrumb has this text.').waitFor();
  });

  test('have their filter in the URL, and the way back leads to the one before', async (t) => {
    const { page } = await signedIn(t);
    await goTo(page, '#/breadcrumbs', 'Breadcrumbs');
    const search = page.getByRole('searchbox');
    await search.pressSequentially('summ');
    await page.waitForURL(/text=summ&/);
    await search.press('e');
    await page.waitForURL(/text=summe&/);
    await page.getByLabel('Sort by').selectOption('newest');
    await page.waitForURL(/text=summe&sort=newest/);
    await page.goBack();
    await page.waitForURL(/text=summe&sort=visits/);
    // What was typed at once is one step.
    await page.goBack();
    await page.waitForURL(/#\/breadcrumbs$/);
    assert.equal(await search.inputValue(), '');
  });

  test('are made, reordered and saved by keyboard, with what the server says', async (t) => {
    const { page, site } = await signedIn(t);
    await page.locator('h1').click();
    await page.keyboard.press('g');
    await page.keyboard.press('b');
    await heading(page, 'Breadcrumbs');
    await page.getByRole('link', { name: 'New breadcrumb' }).press('Enter');
    await heading(page, 'New breadcrumb');
    await page.getByLabel('Key', { exact: true }).fill('made');
    const others = branch(page, 'Otherwise');
    await others.getByLabel('Leads to').selectOption('target');
    await others.getByLabel('Address', { exact: true }).fill('/all');
    await page.getByRole('heading', { name: 'Everyone: go to /all.' }).waitFor();
    await page.getByRole('button', { name: 'Add a branch' }).press('Enter');
    const first = branch(page, 'Branch 1');
    assert.equal(
      await first.getByRole('textbox', { name: 'Device' }).evaluate('document.activeElement.value'),
      'mobile',
    );
    await first.getByLabel('Address', { exact: true }).fill('/m');
    await page.getByRole('button', { name: 'Add a branch' }).press('Enter');
    const second = branch(page, 'Branch 2');
    await second.getByRole('button', { name: 'Remove Device' }).press('Enter');
    await second.getByLabel('Add a condition …').selectOption('country');
    await second.getByRole('textbox', { name: 'Country' }).fill('Schweiz');
    await second.getByLabel('Address', { exact: true }).fill('/ch');
    await page.getByText('when[1].if.country is not valid').waitFor();
    await second.getByRole('textbox', { name: 'Country' }).fill('CH');
    await page.getByText('when[1].if.country is not valid').waitFor({ state: 'detached' });
    await page.getByRole('heading', { name: 'Visitors from Switzerland: go to /ch.' }).waitFor();
    await page.getByRole('button', { name: 'Move branch 2 up' }).press('Enter');
    await page.getByText('This is branch 1 now.').waitFor({ state: 'attached' });
    const label = await page.evaluate('document.activeElement.getAttribute("aria-label")');
    assert.equal(label, 'Move branch 1 down');
    await page.keyboard.press('Control+s');
    await heading(page, 'made');
    const { data } = await site.call('svc1.userinterface.list', { kind: 'resolve', text: 'made' });
    const [{ id, enginedata }] = data.rows as [{ id: string; enginedata: object }];
    assert.deepEqual(enginedata, {
      when: [
        { if: { country: 'CH' }, target: '/ch' },
        { if: { device: 'mobile' }, target: '/m' },
      ],
      target: '/all',
    });
    await page.getByRole('button', { name: 'Remove branch 2' }).press('Enter');
    await site.call('svc1.userinterface.edit', { id, enginecomments: 'by somebody else' });
    await page.keyboard.press('Control+s');
    await page.getByText('Somebody has changed this page').waitFor();
    await page.getByRole('button', { name: 'Load the newer version' }).click();
    await page.getByRole('button', { name: 'Remove branch 2' }).click();
    await page.keyboard.press('Control+s');
    await page.getByText('Saved', { exact: true }).waitFor();
    const { data: saved } = await site.call('svc1.userinterface.read', { id });
    assert.equal(saved.enginedata.when.length, 1);
  });

  test('say which branch a visitor gets, and why', async (t) => {
    const { page, ids } = await signedIn(t);
    await goTo(page, `#/breadcrumbs/${ids.summer}?part=visitors`, 'summer');
    const visitor = branch(page, 'Try');
    await visitor.getByLabel('Country').fill('LI');
    await visitor.getByLabel('Language').fill('fr-CH');
    const won = page.locator('.tried-branches .won');
    await won.getByText('Visitors from Switzerland or Liechtenstein').waitFor();
    await page.locator('.verdict', { hasText: 'https://shop.example/ete' }).waitFor();
    await visitor.getByLabel('Language').fill('de');
    await visitor.getByLabel('Position, 0 to 100').fill('29.9');
    await won.getByText('30 % of the visitors: go to /b.').waitFor();
    await page
      .getByText('The preferred language is de')
      .or(page.getByText('fr;'))
      .first()
      .waitFor();
    const cell = page.locator('.visitor-grid tbody tr').first().locator('td').first();
    await cell.getByText('/m').waitFor();
    await page.getByLabel('Rows').selectOption('lang');
    await page.locator('.visitor-grid tbody th', { hasText: 'fr' }).waitFor();
    await visitor.getByLabel('Country').fill('Switzerland');
    await page.getByRole('alert').getByText('country').waitFor();
  });

  test('show their visits by day, branch, country, device and referring host', async (t) => {
    const { page, ids } = await signedIn(t);
    await goTo(page, `#/breadcrumbs/${ids.summer}?part=visits`, 'summer');
    await page.locator('.tile', { hasText: 'Visits' }).getByText('2', { exact: true }).waitFor();
    for (const name of [
      'Switzerland',
      'Germany',
      'Computer',
      'news.example',
      'no referring page',
    ]) {
      await page.locator('.bars dt', { hasText: name }).waitFor();
    }
    const chart = page.getByRole('img', { name: /^Visits a day: Visits 2/ });
    await chart.locator('canvas').waitFor();
    await page.getByRole('link', { name: 'Week' }).click();
    await page.waitForURL(/days=7/);
    await page.locator('.bars dt', { hasText: 'news.example' }).waitFor();
  });

  test('have a QR code of their link, as SVG and PNG', async (t) => {
    const { page, ids, site } = await signedIn(t);
    await goTo(page, `#/breadcrumbs/${ids.summer}?part=code`, 'summer');
    const link = `${site.url}/svc1/userinterface.link.htm?k=summer`;
    await page.getByRole('link', { name: link }).waitFor();
    const saved = async (button: string) => {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: button }).click(),
      ]);
      return { name: file.suggestedFilename(), bytes: await readFile(await file.path()) };
    };
    const svg = await saved('Download SVG');
    assert.equal(svg.name, 'summer.svg');
    assert.match(svg.bytes.toString(), /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
    const png = await saved('Download PNG');
    assert.equal(png.name, 'summer.png');
    assert.equal(await textOfCode(page, 'image/svg+xml', svg.bytes), link);
    assert.equal(await textOfCode(page, 'image/png', png.bytes), link);
  });

  test('show hostile text as text, and run none of it', async (t) => {
    const { page, ids, troubles } = await signedIn(t);
    const place = `#/breadcrumbs/${ids.hostile}`;
    for (const hash of [
      place,
      `${place}?part=visitors`,
      `${place}?part=visits`,
      `${place}?part=code`,
    ]) {
      await goTo(page, hash, /onerror/);
      await page.waitForLoadState('networkidle');
      assert.equal(await page.evaluate('window.hit'), undefined, hash);
    }
    await goTo(page, '#/breadcrumbs?text=onerror', 'Breadcrumbs');
    await page.locator('.row', { hasText: 'onerror' }).waitFor();
    assert.equal(await page.evaluate('window.hit'), undefined);
    assert.deepEqual(realTroubles({ troubles }), []);
  });
});

/** The text of a QR code in an image file, which the browser draws. */
async function textOfCode(page: Page, type: string, bytes: Buffer): Promise<string> {
  const url = `data:${type};base64,${bytes.toString('base64')}`;
  // A digit for each pixel: 1 if it is light.
  const pixels = await page.evaluate<string>(`(async () => {
    const image = new Image();
    image.src = ${JSON.stringify(url)};
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: 200, height: 200 });
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0, 200, 200);
    const { data } = context.getImageData(0, 0, 200, 200);
    return Array.from({ length: 40000 }, (_, at) => (data[4 * at] > 127 ? 1 : 0)).join('');
  })()`);
  const data = Uint8Array.from(
    pixels.split('').flatMap((one) => {
      const light = Number(one) * 255;
      return [light, light, light, 255];
    }),
  );
  return decodeQR({ width: 200, height: 200, data });
}

test('a new breadcrumb takes no text while it is inserted, because that would be lost', async (t) => {
  const site = await startSite(t);
  const tab = await openConsole(t, openTab, site);
  const { page } = tab;
  await goTo(page, '#/breadcrumbs/new', 'New breadcrumb');
  const key = page.getByLabel('Key', { exact: true });
  await key.fill('winter');
  const insert = await holdNext(page, '**/svc1/userinterface/insert');
  await page.getByRole('button', { name: 'Save' }).click();
  await insert.requested;
  await page.getByRole('button', { name: 'Saving …' }).waitFor();
  assert.ok(await key.isDisabled());
  insert.release();
  await heading(page, 'winter');
  assert.ok(await key.isEnabled());
  assert.deepEqual(realTroubles(tab), []);
});
