import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  assertReadable,
  oneBrowser,
  renderState,
  sizes,
  visit,
  visitGeneric,
  type Tab,
} from './browser.ts';
import { postOperation } from '../harness.ts';
import { startReceiver, type Delivered } from '../modules/webhooks/receiver.ts';
import { startDemo } from './demo-site.ts';

const openTab = oneBrowser();
const { url, adminKey } = await startDemo();

/** Resolves once a page has loaded everything that its scripts insert. */
function settled({ page }: Tab): Promise<void> {
  return page.locator('[aria-busy]').waitFor({ state: 'detached' });
}

/** The source that the footer of a page names. */
function footOf({ page }: Tab): Promise<string> {
  return page.locator('.reached').innerText();
}

suite('the home page', () => {
  for (const { name, viewport } of sizes) {
    test(`shows its styles and lamps, on ${name}`, async (t) => {
      const tab = await openTab(t, { viewport });
      const response = await visit(tab, `${url}/`);
      assert.equal(response.status(), 200);
      await assertReadable(tab, 'the home page');
      assert.equal(await tab.page.title(), 'Saltmarsh Lamp Works');
      const family = await tab.page.evaluate<string>(
        `getComputedStyle(document.querySelector('h1')).fontFamily`,
      );
      assert.match(family, /Iowan Old Style/);
      const lamps = await tab.page.evaluate<number[]>(
        `[...document.querySelectorAll('.lamps use')].map((use) => use.getBBox().height)`,
      );
      assert.equal(lamps.length, 3);
      assert.ok(lamps.every((height) => height > 100));
      assert.match(await footOf(tab), /The server itself says: disk:site/);
      assert.deepEqual(tab.troubles, []);
    });
  }

  test('has a navigation that fits a phone', async (t) => {
    const tab = await openTab(t, { viewport: sizes[0].viewport });
    await visit(tab, `${url}/`);
    const boxes = await tab.page.evaluate<{ left: number; right: number }[]>(
      `[...document.querySelectorAll('.top nav a')].map((link) => link.getBoundingClientRect().toJSON())`,
    );
    assert.equal(boxes.length, 6);
    const { width } = sizes[0].viewport;
    for (const { left, right } of boxes) assert.ok(left >= 0 && right <= width, `${left} ${right}`);
    const scrolls = await tab.page.evaluate<boolean>(
      `(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)(document.querySelector('.top nav'))`,
    );
    assert.equal(scrolls, false);
  });

  test('turns its lights on, and they stay on for the next page', async (t) => {
    const tab = await openTab(t, { colorScheme: 'light' });
    const { page } = tab;
    const paper = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    await visit(tab, `${url}/`);
    const byDay = await paper();
    await page.getByRole('button', { name: 'Lights' }).click();
    const lit = await paper();
    assert.notEqual(lit, byDay);
    await visit(tab, `${url}/about/`);
    assert.equal(await paper(), lit);
    assert.equal(
      await page.getByRole('button', { name: 'Lights' }).getAttribute('aria-pressed'),
      'true',
    );
  });
});

suite('the links of the demo', () => {
  /** URLs that the tour links to because they do not exist, and what such a page requests. */
  const otherStatus: Readonly<Record<string, number>> = {
    '/lamps/puffin': 410,
    '/lamps/albatross': 404,
  };
  const expectedTroubles: Readonly<Record<string, RegExp>> = {
    '/lamps/puffin': /status 410|status of 410/,
    '/lamps/albatross': /status 404|status of 404/,
    '/frame.html': /status 404: .*get_render|status of 404/,
  };

  test('lead to pages that exist, are complete, and fit a phone', async (t) => {
    const tab = await openTab(t, { viewport: sizes[0].viewport });
    const { page } = tab;
    const found = new Set([`${url}/`]);
    for (const address of found) {
      const { pathname } = new URL(address);
      const response = await page.request.get(address, { headers: { accept: 'text/html,*/*' } });
      assert.equal(response.status(), otherStatus[pathname] ?? 200, address);
      if (!(response.headers()['content-type'] ?? '').startsWith('text/html')) continue;
      const before = tab.troubles.length;
      await visit(tab, address);
      await settled(tab);
      await assertReadable(tab, address);
      const expected = expectedTroubles[pathname] ?? /^never$/;
      assert.deepEqual(
        tab.troubles.slice(before).filter((trouble) => !expected.test(trouble)),
        [],
        address,
      );
      // Waymark's documentation links to other sites.
      if (pathname.startsWith('/svc1/')) continue;
      const links = await page.evaluate<string[]>(
        `[...document.links].map(({ href }) => href.replace(/#.*/, ''))`,
      );
      for (const link of links) found.add(link);
    }
    const paths = [...found].map((address) => address.replace(url, ''));
    for (const path of ['/tour/', '/lamps/heron', '/supplier/today.json', '/downloads/']) {
      assert.ok(paths.includes(path), path);
    }
    assert.deepEqual(
      paths.filter((path) => !path.startsWith('/')),
      [],
      'links to other sites',
    );
  });

  test('to a fragment find it on the page', async (t) => {
    const tab = await openTab(t);
    await visit(tab, `${url}/tour/`);
    await tab.page.getByRole('navigation').getByRole('link', { name: 'Lamps' }).click();
    await tab.page.waitForURL(`${url}/#lamps`);
    const top = await tab.page.evaluate<number>(
      `document.querySelector('#lamps').getBoundingClientRect().top`,
    );
    assert.ok(Math.abs(top) < 2, `#lamps is ${top} below the top`);
  });
});

suite('one generic page', () => {
  const lamps = [
    { path: '/lamps/tern', name: 'Tern', price: '€ 148', finishes: 3 },
    { path: '/lamps/dunlin', name: 'Dunlin', price: '€ 86', finishes: 2 },
    { path: '/lamps/heron', name: 'Heron', price: '€ 264', finishes: 3 },
  ];
  for (const { path, name, price, finishes } of lamps) {
    test(`shows the ${name} at ${path}`, async (t) => {
      const tab = await openTab(t);
      const { page } = tab;
      const frame = await (await page.request.get(`${url}/frame.html`)).text();
      const response = await visit(tab, url + path);
      assert.equal(await response.text(), frame);
      await settled(tab);
      assert.equal(page.url(), url + path);
      assert.equal(await page.title(), `${name} · Saltmarsh Lamp Works`);
      assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), name);
      assert.equal(await page.locator('.price output').innerText(), price);
      assert.equal(await page.getByRole('radio').count(), finishes);
      assert.match(await footOf(tab), /Put in by the engine html, from the rule [0-9a-f-]{36}/);
      assert.deepEqual(tab.troubles, []);
    });
  }

  test('shows the price of the chosen finish', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${url}/lamps/heron`);
    await page.getByRole('radio', { name: 'Brass' }).check();
    assert.equal(await page.locator('.price output').innerText(), '€ 279');
    await page.getByRole('link', { name: 'All in this finish' }).click();
    await page.waitForURL(`${url}/finishes/slate`);
    assert.equal(await renderState(tab), 'rendered');
    assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'In slate');
    assert.deepEqual(await page.locator('.lamps b').allInnerTexts(), ['€ 148', '€ 264']);
    assert.equal(await page.locator('.lamps use').count(), 2);
    assert.deepEqual(tab.troubles, []);
  });

  test('inserts, edits and deletes a letter about the chosen finish', async (t) => {
    const tab = await openTab(t, { viewport: sizes[0].viewport });
    const { page } = tab;
    const heading = (name: string) => page.getByRole('heading', { level: 1, name });
    await visitGeneric(tab, `${url}/lamps/tern`);
    await page.getByRole('radio', { name: 'Buoy red' }).check();
    await page.getByRole('link', { name: 'Order by letter' }).click();
    await page.waitForURL(`${url}/write/?lamp=Tern&finish=Buoy+red`);
    await page.getByRole('button', { name: 'Put it in the letter box' }).click();
    const errors = page.getByRole('alert').getByRole('link');
    await errors.filter({ hasText: /^Your name: / }).waitFor();
    await errors.filter({ hasText: /^What would you like to say\? [A-Z]/ }).waitFor();
    await page.getByLabel('Your name').fill('Ada');
    await page.getByLabel('Where we can answer').fill('ada@example.org');
    await page.getByLabel('What would you like to say?').fill('One, please.');
    await page.getByRole('button', { name: 'Put it in the letter box' }).click();
    await page.getByRole('link', { name: 'Change it while you can' }).click();
    await heading('Change a letter').waitFor();
    assert.equal(await page.getByLabel('Which lamp').locator(':checked').innerText(), 'Tern');
    assert.equal(await page.getByLabel('Finish').locator(':checked').innerText(), 'Buoy red');
    await page.getByLabel('What would you like to say?').fill('Two, please.');
    await page.getByRole('button', { name: 'Put it back' }).click();
    await page.getByRole('link', { name: 'What lies in the letter box' }).click();
    await page.getByRole('heading', { name: 'From Ada, about a Tern in Buoy red' }).waitFor();
    assert.match(await page.locator('.post').innerText(), /Two, please\./);
    await page.getByRole('link', { name: 'Burn it: the letter from Ada' }).click();
    await page.getByRole('button', { name: 'Burn it' }).click();
    await page.getByText('Gone up the chimney.').waitFor();
    await page.getByRole('link', { name: 'What lies in the letter box' }).click();
    await page.getByText('Nothing. It is early yet.').waitFor();
    assert.deepEqual(tab.troubles, []);
  });

  test('shows the rows of a table without JavaScript, and what a form has changed', async (t) => {
    const plain = await openTab(t, { javaScriptEnabled: false });
    await visit(plain, `${url}/shelf/`);
    const row = (tab: Tab) => tab.page.getByRole('row', { name: 'Heron Brass' });
    assert.match(await row(plain).innerText(), /^Heron\tBrass\t1\tBy the door$/);
    await visit(plain, `${url}/finishes/brass`);
    assert.deepEqual(await plain.page.locator('.lamps b').allInnerTexts(), [
      '€ 148',
      '€ 86',
      '€ 279',
    ]);
    const tab = await openTab(t);
    const { page } = tab;
    assert.equal(await visitGeneric(tab, `${url}/shelf/`), 'rendered');
    await page.getByRole('link', { name: 'count again: Heron, brass' }).click();
    await page.getByLabel('How many').fill('0');
    await page.getByRole('button', { name: 'That is how many' }).click();
    await page.getByRole('link', { name: 'The whole shelf' }).click();
    await page.waitForURL(`${url}/shelf/`);
    assert.match(await row(tab).innerText(), /^Heron\tBrass\tNone\t/);
    await visit(plain, `${url}/shelf/`);
    assert.match(await row(plain).innerText(), /^Heron\tBrass\tNone\t/);
    assert.deepEqual(tab.troubles, []);
  });

  test('is rendered by an engine of the site', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    await visitGeneric(tab, `${url}/tides/`);
    assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'When the path is dry');
    assert.match(await page.locator('dl').innerText(), /^5:36\s+4\.4 m: high, the path is under/);
    assert.deepEqual(tab.troubles, []);
  });

  test('built in, runs the three scripts of its rule in order', async (t) => {
    const tab = await openTab(t);
    await tab.page.clock.install();
    assert.equal(await visitGeneric(tab, `${url}/lighting-up/`), 'rendered');
    await tab.page.clock.runFor(5_000);
    const done = tab.page.getByRole('status');
    assert.equal(await done.innerText(), 'Dunlin, then Tern, then Heron. Good evening.');
    assert.equal(await tab.page.locator('.lamp.lit').count(), 3);
    assert.deepEqual(tab.troubles, []);
  });
});

suite('the redirects of the shop', () => {
  const breadcrumbs = [
    { link: 'See this spring’s offers', path: '/offers/', heading: 'Spring offers' },
    { link: 'Take me to it', path: '/lamps/dunlin', heading: 'Dunlin' },
  ];
  for (const { link, path, heading } of breadcrumbs) {
    test(`the breadcrumb “${link}” leads to ${path}`, async (t) => {
      const tab = await openTab(t);
      const { page } = tab;
      await visit(tab, `${url}/`);
      await page.getByRole('link', { name: link }).click();
      await page.waitForURL(url + path);
      await settled(tab);
      assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), heading);
      assert.deepEqual(tab.troubles, []);
    });
  }

  test('content of another server is shown within a page, and as a page', async (t) => {
    const tab = await openTab(t);
    const { page } = tab;
    for (const path of ['/stock/', '/supplier/today.html']) {
      await visit(tab, url + path);
      await settled(tab);
      const row = page.getByRole('row', { name: 'Heron' });
      assert.equal(await row.innerText(), 'Heron\tHRN-2\t3\tBy the door, it is tall');
      assert.equal(page.url(), url + path);
    }
    assert.deepEqual(tab.troubles, []);
  });

  const stored = [
    { path: '/offers/', locale: 'en-GB', status: 200, lang: 'en', heading: 'Spring offers' },
    { path: '/visit/', locale: 'en-GB', status: 200, lang: 'en', heading: 'Visit' },
    { path: '/visit/', locale: 'de-AT', status: 200, lang: 'de', heading: 'Besuch' },
    { path: '/visit/', locale: 'fr', status: 200, lang: 'en', heading: 'Visit' },
    {
      path: '/lamps/puffin',
      locale: 'en',
      status: 410,
      lang: 'en',
      heading: 'The Puffin has flown',
    },
  ];
  for (const { path, locale, status, lang, heading } of stored) {
    test(`the stored page ${path} is “${heading}” for a browser in ${locale}`, async (t) => {
      const tab = await openTab(t, { locale });
      const response = await visit(tab, url + path);
      assert.equal(response.status(), status);
      assert.equal(await tab.page.locator('html').getAttribute('lang'), lang);
      assert.equal(await tab.page.getByRole('heading', { level: 1 }).innerText(), heading);
      assert.match(await footOf(tab), /The server itself says: rule:/);
    });
  }
});

test('a form changes a row, the row raises an event, and the receiver of the hook reads the row', async (t) => {
  const call = (name: string, v: object, apikey = adminKey) =>
    postOperation(url, `svc1.${name}`, v, { apikey });
  const receiver = await startReceiver(t);
  const hooks = await call('webhook.list', {});
  const [hook] = (hooks.data as { rows: { id: string; name: string }[] }).rows;
  assert.equal(hook?.name, 'boathouse');
  assert.equal((await call('webhook.edit', { id: hook.id, url: receiver.url })).error, undefined);
  assert.equal((await call('webhook.resume', { id: hook.id })).error, undefined);

  const tab = await openTab(t);
  const { page } = tab;
  await visitGeneric(tab, `${url}/shelf/count/tern-buoy-red`);
  await page.getByLabel('How many').fill('0');
  await page.getByRole('button', { name: 'That is how many' }).click();
  await page.getByText('Thank you. It is on the list.').waitFor();
  // The hook was paused, so it also has the events of other tests.
  const isOfRow = ({ body }: Delivered) =>
    body.type === 'stock.level_changed' && body.data.product === 'tern-buoy-red';
  let delivered: Delivered | undefined;
  for (let count = 1; delivered === undefined; count += 1) {
    delivered = (await receiver.until(count)).find(isOfRow);
  }
  assert.equal(delivered.body.data.level, 0);
  const made = await call('key.insert', { name: 'receiver', scopes: ['verify'] });
  const { key } = made.data as { key: string };
  const code = delivered.body.data.product as string;
  const read = await call('record.read', { table: 'stock', code }, key);
  assert.equal(read.data.count, 0);
});

test('the breadcrumb of the leaflets leads phones to the short offers', async () => {
  const headers = {
    'user-agent':
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Mobile',
    accept: 'text/html',
  };
  const response = await fetch(`${url}/svc1/userinterface.link.htm?k=spring-sale`, { headers });
  assert.deepEqual([response.url, response.status], [`${url}/offers/short`, 200]);
  assert.match(await response.text(), /Spring offers, in short/);
});
