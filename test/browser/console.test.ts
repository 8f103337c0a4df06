import assert from 'node:assert/strict';
import { after, suite, test, type TestContext } from 'node:test';
import { builtDocs } from '../docs/built-docs.ts';
import { startSite, type TestSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes, visit } from './browser.ts';
import {
  code,
  goTo,
  heading,
  hostile,
  openConsole,
  realTroubles,
  type ConsoleTab,
} from './console-tab.ts';

const openTab = oneBrowser();
const started = startSite(
  { after },
  {
    docsFolder: (await builtDocs()).folder,
    ini: '[disk.site]\nroot = site\n',
    files: { 'site/index.html': '<h1>Front</h1>', 'site/shadow.html': 'file' },
    rules: [
      { path: '/offers/', kind: 'content', content: '<h1>Offers</h1>' },
      { path: '/offers/spring', kind: 'content', content: '<h1>Spring</h1>', lang: 'en' },
      { path: '/shadow.html', kind: 'content', content: 'rule' },
      { path: 'summer', kind: 'resolve', enginedata: { target: '/offers/' } },
      {
        path: `/${encodeURIComponent(code)}`,
        kind: 'content',
        content: hostile,
        enginecomments: hostile,
        contenttype: 'text/html',
        colour: hostile,
        [code]: hostile,
      },
    ],
  },
);

async function signedIn(t: TestContext, options: object = {}): Promise<ConsoleTab> {
  const site = await started;
  await theHook(site);
  return openConsole(t, openTab, site, options);
}

let hook: Promise<string> | undefined;

/** The id of a webhook with a hostile name and a hostile answer of its receiver. */
function theHook(site: TestSite): Promise<string> {
  hook ??= site
    .call('svc1.webhook.insert', {
      ...{ name: hostile, url: 'http://127.0.0.1:1/', event: ['record.changed'] },
    })
    .then(({ data }) => data.id as string);
  return hook;
}

/** The screens, each with an element that appears once it has loaded. */
const screens = [
  ['#/', 'Overview', '.facts'],
  ['#/pages', 'Pages', '.row'],
  ['#/pages?text=offers', 'Pages', '.row'],
  ['#/explain?url=/offers/', 'Explain', '.precedence'],
  ['#/webhooks', 'Webhooks', '.cards li'],
  ['#/operations', 'Keys', '.table-list li'],
  ['#/history', 'History', '.changes li'],
  ['#/history?by=import', 'History', '.changes li'],
] as const;

suite('the console', () => {
  for (const [at, { name, viewport }] of sizes.entries()) {
    const colorScheme = at === 0 ? 'light' : 'dark';
    test(`is open to all on ${name}, in ${colorScheme}, without errors`, async (t) => {
      const tab = await signedIn(t, { viewport, colorScheme });
      const { page } = tab;
      for (const [hash, title, element] of screens) {
        await goTo(page, hash, title);
        await page.locator(element).first().waitFor();
        await assertReadable(tab, hash);
        await assertOpenToAll(page, hash);
      }
      await page.locator('.changes summary').first().click();
      await page
        .locator('.changes .changes')
        .getByRole('link', { name: '/offers/' })
        .last()
        .click();
      await page.locator('.diff, .version .note').first().waitFor();
      await assertOpenToAll(page, 'the history of a page');
      await goTo(page, '#/pages?text=Offers', 'Pages');
      await page.locator('.row').first().click();
      await heading(page, '/offers/');
      await page.locator('.code .cm-editor').first().waitFor();
      await assertReadable(tab, 'the editor');
      assert.deepEqual(realTroubles(tab), []);
      await assertOpenToAll(page, 'the editor');
    });
  }

  test('its sign-in is open to all, says why it refuses, and takes at most 150 KB with the overview', async (t) => {
    const { url } = await started;
    const tab = await openTab(t);
    const network = await tab.page.context().newCDPSession(tab.page);
    await network.send('Network.enable');
    let bytes = 0;
    network.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    await visit(tab, `${url}/svc1/console/`);
    await heading(tab.page, 'Sign in');
    await assertOpenToAll(tab.page, 'sign-in');
    await assertReadable(tab, 'sign-in');
    await tab.page.getByLabel('API key').fill('wmk_wrong');
    await tab.page.keyboard.press('Enter');
    const alert = tab.page.getByRole('alert');
    await alert.waitFor();
    assert.match((await alert.textContent()) ?? '', /unknown or has been revoked/);
    await tab.page.getByLabel('API key').fill((await started).adminKey);
    await tab.page.keyboard.press('Enter');
    await heading(tab.page, 'Overview');
    await tab.page.locator('.tiles').waitFor();
    // The first answers of a server are not compressed yet: about 100 KB, later 46.
    assert.ok(bytes > 10_000 && bytes < 150_000, `${bytes} bytes`);
  });

  test('its frame links to the documentation, which opens in a tab of its own', async (t) => {
    const { page, site } = await signedIn(t);
    const opened = page.context().waitForEvent('page');
    await page.getByRole('link', { name: 'Docs', exact: true }).click();
    const docs = await opened;
    await docs.getByRole('heading', { level: 1 }).waitFor();
    assert.equal(docs.url(), `${site.url}/svc1/docs/`);
  });

  test('an edit by another user meanwhile is not overwritten', async (t) => {
    const { page, site } = await signedIn(t);
    const rule = { path: '/both', kind: 'content', content: 'one' };
    const { data } = await site.call('svc1.userinterface.insert', rule);
    await goTo(page, `#/pages/${data.id}`, '/both');
    await site.call('svc1.userinterface.edit', { id: data.id, content: 'theirs' });
    await page.getByLabel('Language', { exact: true }).fill('de');
    await page.keyboard.press('Control+s');
    await page.getByText('Somebody has changed this page').waitFor();
    await page.getByRole('button', { name: 'Load the newer version' }).click();
    await page.locator('.code .cm-content', { hasText: 'theirs' }).waitFor();
  });

  test('the data of a kind or engine has a form from its schema, which changes nothing else', async (t) => {
    const { page, site } = await signedIn(t);
    const enginedata = { title: 'Lamps', scripts: ['/a.js', 'one()\ntwo()'], own: { watts: 6 } };
    const template = { ...enginedata, template: '<h1>{{ title }}</h1>' };
    const insert = async (rule: object): Promise<string> =>
      (await site.call('svc1.userinterface.insert', rule)).data.id as string;
    const read = async (id: string): Promise<object> =>
      (await site.call('svc1.userinterface.read', { id })).data.enginedata as object;
    const page1 = { path: '/lamps', kind: 'content', engine: 'template', enginedata: template };
    const id = await insert(page1);
    await goTo(page, `#/pages/${id}`, '/lamps');
    const form = page.getByRole('region', { name: 'Data of the kind or engine' });
    await form.getByText('Further members, which JSON shows: own.').waitFor();
    const liquid = form.getByRole('textbox', { name: 'template', exact: true });
    await liquid.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.insertText('{% if own %}!{% endif %}');
    await liquid.locator('span', { hasText: /^endif$/ }).waitFor();
    await form.getByLabel('title', { exact: true }).fill('All lamps');
    await page.keyboard.press('Control+s');
    await page.getByText('Saved', { exact: true }).waitFor();
    const changed = {
      title: 'All lamps',
      template: '<h1>{{ title }}</h1>{% if own %}!{% endif %}',
    };
    assert.deepEqual(await read(id), { ...template, ...changed });

    const far = {
      path: '/far/*',
      kind: 'content.fetch',
      enginedata: { source: 'http://a.example/*' },
    };
    await goTo(page, `#/pages/${await insert(far)}`, '/far/*');
    await form.getByLabel(/^source/).fill('nowhere');
    await form.getByText(/has to be an absolute http or https URL/).waitFor();
    await page.getByRole('button', { name: 'JSON', exact: true }).click();
    await form.locator('.cm-content', { hasText: 'nowhere' }).waitFor();
  });

  test('a page that a file hides says so, and explain shows which', async (t) => {
    const { page } = await signedIn(t);
    await goTo(page, '#/pages?text=shadow', 'Pages');
    await page.locator('.row').first().click();
    await page.getByText('Visitors do not get this page').waitFor();
    await page.getByRole('link', { name: 'what answers instead' }).click();
    await heading(page, 'Explain');
    await page.locator('.precedence .winner', { hasText: '[disk.site]' }).waitFor();
    await page.getByRole('button', { name: 'Request the page' }).click();
    await page.locator('.body', { hasText: 'file' }).waitFor();
    await page.frameLocator('.preview').getByText('file').waitFor();
  });

  test('shows hostile text as text, and runs none of it', async (t) => {
    const { page, site, troubles } = await signedIn(t);
    const found = await site.call('svc1.userinterface.list', { text: 'onerror' });
    const { id } = found.data.rows[0] as { id: string };
    for (const [hash, name] of [
      ['#/pages?text=onerror', 'Pages'],
      [`#/history?id=${id}`, 'History of a page'],
      [`#/history?by=${encodeURIComponent(code)}`, 'History'],
      [`#/explain?url=${encodeURIComponent(`/${code}`)}`, 'Explain'],
      [`#/pages/${id}`, /onerror/],
    ] as const) {
      await goTo(page, hash, name);
      await page.waitForLoadState('networkidle');
      assert.equal(await page.evaluate('window.hit'), undefined, hash);
    }
    await page.frameLocator('.preview').locator('img').waitFor({ state: 'attached' });
    assert.equal(await page.evaluate('window.hit'), undefined);
    // The preview requests the missing image of the page, and explain answers 404.
    const isOfPreview = (one: string): boolean => /ERR_BLOCKED|\/x\b|status 404/.test(one);
    assert.deepEqual(
      realTroubles({ troubles }).filter((one) => !isOfPreview(one)),
      [],
    );
  });

  test('a reload keeps the session, another page of the tab does not find it', async (t) => {
    const { page, site } = await signedIn(t);
    await page.keyboard.press('F5');
    await page.waitForLoadState('load');
    await heading(page, 'Overview');
    assert.equal(await page.evaluate('sessionStorage.length'), 0);
    await page.goto(`${site.url}/`);
    assert.equal(await page.evaluate('sessionStorage.length + localStorage.length'), 0);
    await page.goto(`${site.url}/svc1/console/`);
    await heading(page, 'Sign in');
  });

  test('a chosen theme survives a reload, from the first paint on', async (t) => {
    const { page, site } = await signedIn(t, { colorScheme: 'light' });
    const theme = () => page.evaluate('document.documentElement.dataset.theme');
    await page.getByRole('button', { name: 'Light or dark' }).click();
    assert.equal(await theme(), 'dark');
    const colour = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const dark = await colour();
    // Without the scripts of the console, which run after the first paint.
    await page.route(/\/assets\/[^/]+\.js$/, (route) => route.abort());
    await page.goto(`${site.url}/svc1/console/`);
    assert.deepEqual([await theme(), await colour()], ['dark', dark]);
    await page.unroute(/\/assets\/[^/]+\.js$/);
    await page.goto(`${site.url}/svc1/console/?again`);
    await heading(page, 'Sign in');
    assert.equal(await theme(), 'dark');
    // Another page of the origin can write it.
    await page.evaluate('localStorage.setItem("waymark console theme", "<b>")');
    await page.reload();
    await heading(page, 'Sign in');
    assert.equal(await theme(), undefined);
  });

  test('a key is made and revoked, and content is purged', async (t) => {
    const { page, site } = await signedIn(t);
    await goTo(page, '#/operations', 'Keys');
    await page.getByLabel('Name', { exact: true }).fill('till');
    await page.getByLabel('design', { exact: true }).check();
    await page.getByLabel('record.write', { exact: true }).check();
    await page.getByRole('button', { name: 'Make a key' }).click();
    const shown = await page.locator('.new-key code').textContent();
    assert.match(shown ?? '', /^wmk_/);
    const key = page.locator('.table-list li', { hasText: 'till' });
    await key.getByText('never used').waitFor();
    const made = await site.call('svc1.session.read', {}, { apikey: shown ?? '' });
    assert.deepEqual(made.data.scopes, ['render', 'read', 'design', 'record.write']);
    await goTo(page, '#/operations/cache', 'Cache');
    await goTo(page, '#/operations', 'Keys');
    await key.getByText(/last used \S/).waitFor();
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Revoke till' }).click();
    await page.getByRole('button', { name: 'Revoke till' }).waitFor({ state: 'detached' });
    const revoked = await site.call('svc1.session.read', {}, { apikey: shown ?? '' });
    assert.equal(revoked.error?.code, 'unauthenticated');
    await goTo(page, '#/operations/cache', 'Cache');
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Purge everything' }).click();
    await page.getByText('Purged 0.').waitFor();
  });

  test('signing out ends the session at the server', async (t) => {
    const { page, site } = await signedIn(t);
    const before = (await site.call('svc1.session.list', {})).data.rows.length as number;
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading(page, 'Sign in');
    const { data } = await site.call('svc1.session.list', {});
    assert.equal(data.rows.length, before - 1);
  });
});
