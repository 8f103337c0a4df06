import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { cleaningAfterAll } from '../folder.ts';
import { startSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import { code, goTo, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();

const greeting = {
  path: '/greeting',
  kind: 'content',
  engine: 'template',
  enginedata: {
    when: [
      { if: { country: 'CH' }, enginedata: { data: { word: 'Grüezi' } } },
      { if: { user: '*' }, enginedata: { data: { word: 'Welcome back' } } },
    ],
    template:
      '<h1>{{ data.word }} {{ user.name }}</h1><script>document.title = "ran"</script>' +
      '<img src="x" onerror="document.body.dataset.ran = 1">',
    css: 'h1 { color: rgb(1, 2, 3) }',
    data: { word: 'Hello' },
  },
};

async function start() {
  const site = await startSite(cleaningAfterAll(), {
    ini: '[disk.site]\nroot = site\n[engine.mine]\nscript = /mine.js\n',
    files: { 'site/hidden.html': 'file' },
    rules: [{ path: '/hidden.html', kind: 'content', content: 'rule' }],
  });
  const ids: string[] = [];
  for (const rule of [
    greeting,
    { ...greeting, path: '/served', enginedata: { ...greeting.enginedata, render: 'server' } },
    { path: '/two', kind: 'content', lang: 'en', content: '<h1>English</h1>' },
    { path: '/two', kind: 'content', lang: 'de', content: '<h1>Deutsch</h1>' },
    { path: '/own', kind: 'content', engine: 'mine', enginedata: { html: '<h1>Instead</h1>' } },
  ]) {
    ids.push((await site.call('svc1.userinterface.insert', rule)).data.id as string);
  }
  const [template = '', , english = '', german = ''] = ids;
  return { site, ids: { template, english, german } };
}

function preview(page: Page) {
  return page.frameLocator('.preview');
}

/** The table of a form: visitors may add rows; a hostile text in its schema. */
const guests = {
  name: 'guests',
  schema: {
    required: ['name'],
    properties: {
      name: { type: 'string', title: 'Your name', description: code },
      stay: { type: 'string', enum: ['one night', 'two nights'], default: 'two nights' },
      breakfast: { type: 'boolean', default: true },
    },
  },
};

suite('the preview of a page that is not saved', () => {
  const shared = startSite(cleaningAfterAll(), {
    ini: '[engine.mine]\nscript = /mine.js\n',
    rules: [
      { path: '/frame', kind: 'content', content: '<p>Own frame</p><div id="waymark"></div>' },
    ],
  });

  /** A new page with a kind and an engine, and a function that writes its data as JSON. */
  async function newPage(t: TestContext, { kind = 'content', engine = '' }) {
    const tab = await openConsole(t, openTab, await shared);
    const { page } = tab;
    await goTo(page, '#/pages/new?path=/new', 'New page');
    await page.getByRole('combobox', { name: 'Kind' }).selectOption(kind);
    if (engine !== '') await page.getByRole('combobox', { name: 'Engine' }).fill(engine);
    const write = async (data: object): Promise<void> => {
      if (engine !== 'mine') await page.getByRole('button', { name: 'JSON', exact: true }).click();
      await page.getByRole('textbox', { name: 'Data of the kind or engine (JSON)' }).click();
      await page.keyboard.press('Control+a');
      await page.keyboard.insertText(JSON.stringify(data));
    };
    return { ...tab, write };
  }

  test('shows the form of a table as it begins', async (t) => {
    const site = await shared;
    const { id } = (await site.call('svc1.table.insert', guests)).data as { id: string };
    const tab = await newPage(t, { kind: 'insert-record', engine: 'form' });
    const { page } = tab;
    await page.getByText('Choose a table: its schema makes the form.').waitFor();
    await page.getByRole('textbox', { name: 'Table' }).fill('guests');
    const name = preview(page).getByLabel('Your name');
    await name.waitFor();
    await page.getByText('Visitors without a sign-in see a message instead').waitFor();
    await preview(page).getByText(code).waitFor();
    assert.equal(await preview(page).getByLabel('Stay').inputValue(), '1');
    assert.ok(await preview(page).getByLabel('Breakfast').isChecked());
    assert.equal(await name.evaluate('window.hit'), undefined);
    const opened = await site.call('svc1.table.edit', { id, insert: ['anonymous'] });
    assert.equal(opened.error, undefined);
    await page.getByRole('combobox', { name: 'Kind' }).selectOption('delete-record');
    await preview(page).getByText('This record will be deleted:').waitFor();
    await page.getByRole('combobox', { name: 'Kind' }).selectOption('insert-record');
    await name.waitFor();
    await page.getByText('see a message instead').waitFor({ state: 'detached' });
    // The console asks as a visitor first, whom the table refuses until it is open.
    const expected = /status 401: .*record\/schema|status of 401/;
    const troubles = realTroubles(tab).filter((one) => !expected.test(one));
    assert.deepEqual(troubles, []);
  });

  test('shows each branch of the data, in the generic page that the data names', async (t) => {
    const { page, write } = await newPage(t, { engine: 'template' });
    const branch = { if: { country: 'CH' }, enginedata: { data: { word: 'Grüezi' } } };
    await write({
      ...{ template: '<h1>{{ data.word }}</h1>', data: { word: 'Hello' } },
      ...{ when: [branch], page: '/frame' },
    });
    await preview(page).getByRole('heading', { name: 'Hello' }).waitFor();
    await preview(page).getByText('Own frame').waitFor();
    await page.getByLabel('Show the branch').selectOption('when[0]');
    await preview(page).getByRole('heading', { name: 'Grüezi' }).waitFor();
  });

  test('says why there is none', async (t) => {
    const { page, write } = await newPage(t, { engine: 'mine' });
    await page.getByText('The engine mine works in the browser of a visitor only').waitFor();
    await write({ html: '<h1>Instead</h1>' });
    await preview(page).getByRole('heading', { name: 'Instead' }).waitFor();
    for (const [kind, why] of [
      ['content.fetch', 'Another server answers: save the page to see it.'],
      ['resolve', 'A breadcrumb has no page of its own'],
    ] as const) {
      await page.getByRole('combobox', { name: 'Kind' }).selectOption(kind);
      await page.getByText(why).waitFor();
    }
  });
});

suite('the preview of the page editor', () => {
  const shared = start();

  async function signedIn(t: TestContext, options: object = {}) {
    const { site, ids } = await shared;
    return { ...(await openConsole(t, openTab, site, options)), ids };
  }

  test('shows a template as the visitor whom the fields describe', async (t) => {
    const { page, ids } = await signedIn(t);
    await goTo(page, `#/pages/${ids.template}`, '/greeting');
    await preview(page).getByRole('heading', { name: 'Hello' }).waitFor();
    await page.getByText('No branch of “when” applies.').waitFor();
    await page.getByText('As a visitor').click();
    await page.getByLabel('Country').fill('CH');
    await preview(page).getByRole('heading', { name: 'Grüezi' }).waitFor();
    await page.getByText('The branch when[0] applies.').waitFor();
    await page.waitForURL(/country=CH/);
    await page.getByLabel('Country').fill('');
    await page.getByLabel('User').fill('Ada');
    const heading = preview(page).getByRole('heading', { name: 'Welcome back Ada' });
    await heading.waitFor();
    assert.equal(await heading.evaluate('document.title + document.body.dataset.ran'), 'undefined');
    const colour = await heading.evaluate('getComputedStyle(document.querySelector("h1")).color');
    assert.equal(colour, 'rgb(1, 2, 3)');
    await page.getByLabel('Device').selectOption('mobile');
    const { width = 0 } = (await page.locator('.preview').boundingBox()) ?? {};
    assert.ok(width <= 390, `${width}`);
  });

  test('shows changes before they are saved, and mistakes of a template', async (t) => {
    const { page, ids } = await signedIn(t);
    await goTo(page, `#/pages/${ids.template}?country=CH`, '/greeting');
    await preview(page).getByRole('heading', { name: 'Grüezi' }).waitFor();
    await page.getByRole('button', { name: 'JSON', exact: true }).click();
    const data = page.getByRole('textbox', { name: 'Data of the kind or engine (JSON)' });
    const write = async (enginedata: object): Promise<void> => {
      await data.click();
      await page.keyboard.press('Control+a');
      await page.keyboard.insertText(JSON.stringify(enginedata));
    };
    const { when, ...rest } = greeting.enginedata;
    const [first, second] = when;
    const changed = { ...first, enginedata: { data: { word: 'Salü' } } };
    await write({ ...rest, when: [changed, second] });
    await preview(page).getByRole('heading', { name: 'Salü' }).waitFor();
    await write({ ...rest, when: [{ ...changed, if: { country: 'DE' } }, second] });
    await page.getByText('Conditions apply as they are saved').waitFor();
    await write({ ...rest, template: '{{ data.word | nosuchfilter }}' });
    await page.getByRole('alert').getByText('nosuchfilter').waitFor();
  });

  test('is that of explain, whose response is the one of its visitor', async (t) => {
    const { page } = await signedIn(t);
    const body = page.locator('.body');
    const request = async (visitor: string): Promise<void> => {
      await goTo(page, `#/explain?url=/served${visitor}`, 'Explain');
      await page.getByRole('button', { name: 'Request the page' }).click();
    };
    await request('');
    await body.filter({ hasText: '<h1>Hello </h1>' }).waitFor();
    await preview(page).getByRole('heading', { name: 'Hello' }).waitFor();
    await page.getByText('As a visitor').click();
    await page.getByLabel('Country').fill('CH');
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await page.waitForURL(/country=CH/);
    // What is shown of the former visitor ends.
    await body.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Request the page' }).click();
    await body.filter({ hasText: '<h1>Grüezi </h1>' }).waitFor();
    await page.locator('.facts', { hasText: 'text/html' }).waitFor();
    await request('&user=Ada');
    await body.filter({ hasText: '<h1>Welcome back Ada</h1>' }).waitFor();
    await goTo(page, '#/explain?url=/two&lang=de', 'Explain');
    await page.getByRole('button', { name: 'Request the page' }).click();
    await body.filter({ hasText: 'Deutsch' }).waitFor();
  });

  test('is that of explain and history, for a page that the browser of a visitor renders', async (t) => {
    const tab = await signedIn(t);
    const { page, ids } = tab;
    const explained = async (address: string): Promise<void> => {
      await goTo(page, `#/explain?url=${address}`, 'Explain');
      await page.getByRole('button', { name: 'Request the page' }).click();
    };
    await explained('/greeting&country=CH');
    const heading = preview(page).getByRole('heading', { name: 'Grüezi' });
    await heading.waitFor();
    const shown = 'document.title + document.body.dataset.ran';
    assert.equal(await heading.evaluate(shown), 'Untitled pageundefined');
    await explained('/own');
    await page.getByText('The engine mine works in the browser of a visitor only').waitFor();
    await preview(page).getByRole('heading', { name: 'Instead' }).waitFor();
    await goTo(page, `#/history?id=${ids.template}`, 'History of a page');
    await preview(page).getByRole('heading', { name: 'Hello' }).waitFor();
    // The template has an image that is none, and a frame that is replaced stops loading.
    const expected = /^failed: (\S+\/x: |.* net::ERR_ABORTED$)/;
    const troubles = realTroubles(tab).filter((one) => !expected.test(one));
    assert.deepEqual(troubles, []);
  });

  test('is for pages that the tree marks as hidden, with what hides them', async (t) => {
    const { page } = await signedIn(t);
    await goTo(page, '#/pages', 'Pages');
    const row = page.locator('.row', { hasText: 'hidden.html' });
    await row.getByTitle('A file of [disk.site] has this path and hides the page rule.').waitFor();
    assert.equal(await page.locator('.tag.shadowed').count(), 1);
  });

  test('says which page a visitor gets instead, and why', async (t) => {
    const { page, ids } = await signedIn(t);
    await goTo(page, `#/pages/${ids.german}?lang=de`, '/two');
    await preview(page).getByRole('heading', { name: 'Deutsch' }).waitFor();
    await page.getByText('As a visitor').waitFor();
    const mark = page.getByText('This visitor does not get this page:');
    await page.getByLabel('Preferred language').fill('en');
    await mark.waitFor();
    await page.getByRole('link', { name: 'Open that page' }).click();
    await page.waitForURL(new RegExp(ids.english));
  });

  for (const [at, { name, viewport }] of sizes.entries()) {
    const colorScheme = at === 0 ? 'dark' : 'light';
    test(`is open to all on ${name}, in ${colorScheme}, without errors`, async (t) => {
      const tab = await signedIn(t, { viewport, colorScheme });
      await goTo(tab.page, `#/pages/${tab.ids.english}?lang=de&device=tablet`, '/two');
      await tab.page.getByText('This visitor does not get this page:').waitFor();
      await tab.page.locator('.code .cm-editor').first().waitFor();
      await assertReadable(tab, 'the editor');
      // axe sends messages to the frame, which it refuses.
      assert.deepEqual(realTroubles(tab), []);
      await assertOpenToAll(tab.page, 'the editor');
    });
  }
});
