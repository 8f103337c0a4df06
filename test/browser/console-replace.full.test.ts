import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import { goTo, heading, holdNext, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();
const title = 'Find and replace';

function html(name: string): string {
  return `<!doctype html><html lang="en"><title>${name}</title><h1>${name}</h1><p>Pier 7</p>`;
}

/** A site with three pages at Pier 7, and the key of a writer. */
async function start(t: TestContext) {
  const pages = ['a', 'b', 'c'].map((name) => ({ path: `/${name}.html`, content: html(name) }));
  const site = await startSite(t, {
    rules: pages.map((page) => ({ ...page, kind: 'content', contenttype: 'text/html' })),
  });
  const key = { name: 'writer', scopes: ['draft', 'read'] };
  const { data } = await site.call('svc1.key.insert', key);
  return { site, apikey: data.key as string };
}

suite('find and replace in the console', () => {
  test('a writer replaces in the pages that they choose, in a new draft, and compares', async (t) => {
    const { site, apikey } = await start(t);
    const tab = await openConsole(t, openTab, site, { apikey });
    const { page } = tab;
    await goTo(page, '#/pages', 'Pages');
    await page.getByText('Your key changes pages in drafts').waitFor();
    await page.getByRole('link', { name: 'Find and replace' }).click();
    await heading(page, title);
    await page.getByLabel('Find', { exact: true }).fill('pier (\\d)');
    await page.getByLabel('Replace with').fill('Quay $1');
    await page.getByLabel('Ignore upper').check();
    await page.getByLabel('Regular expression').check();
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    await page.getByText('3 places in 3 of 3 pages.').waitFor();
    await page.locator('ins', { hasText: 'Quay 7' }).first().waitFor();
    await page.getByLabel('/b.html').uncheck();
    await page.getByLabel('Name of the new draft').fill('moving');
    await page.getByRole('button', { name: 'Replace in 2 pages' }).click();
    await heading(page, 'moving');
    await page.getByText('2 compared, 2 differ.').waitFor();
    await page.locator('.compare .added', { hasText: 'Quay 7' }).first().waitFor();
    const { data } = await site.call('svc1.draft.changes', { draft: 'moving' });
    const labels = data.rows.map(({ label }: { readonly label: string }) => label);
    assert.deepEqual(labels.toSorted(), ['/a.html', '/c.html']);
    assert.match(await (await fetch(`${site.url}/a.html`)).text(), /Pier 7/);
    assert.deepEqual(realTroubles(tab), []);
  });

  test('it names a page that has changed meanwhile, and replaces nothing', async (t) => {
    const { site } = await start(t);
    const { page } = await openConsole(t, openTab, site);
    await goTo(page, '#/pages/replace?find=Pier', title);
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    await page.getByText('3 places in 3 of 3 pages.').waitFor();
    const { data } = await site.call('svc1.userinterface.list', { path: '/b' });
    await site.call('svc1.userinterface.edit', { id: data.rows[0].id, content: 'Pier 8' });
    await page.getByRole('button', { name: 'Replace in 3 pages' }).click();
    await page.getByText(/Nothing was replaced: \/b\.html .* changed since the report/).waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('button', { name: 'Replace in 3 pages' }).waitFor({ state: 'detached' });
  });

  for (const [at, { name, viewport }] of sizes.entries()) {
    const colorScheme = at === 0 ? 'dark' : 'light';
    test(`is open to all on ${name}, in ${colorScheme}`, async (t) => {
      const { site } = await start(t);
      const tab = await openConsole(t, openTab, site, { viewport, colorScheme });
      await goTo(tab.page, '#/pages/replace?find=Pier', title);
      await tab.page.getByText('Where: everywhere').click();
      await tab.page.getByRole('button', { name: 'Find', exact: true }).click();
      await tab.page.getByRole('button', { name: 'Replace in 3 pages' }).waitFor();
      await assertReadable(tab, title);
      await assertOpenToAll(tab.page, title);
      assert.deepEqual(realTroubles(tab), []);
    });
  }
});

suite('templates in the console', () => {
  test('a page becomes a template that no visitor gets, and new pages start with it', async (t) => {
    const { site } = await start(t);
    const tab = await openConsole(t, openTab, site);
    const { page } = tab;
    const { data } = await site.call('svc1.userinterface.list', { path: '/a' });
    await goTo(page, `#/pages/${data.rows[0].id}`, '/a.html');
    await page.getByRole('link', { name: 'Make a template' }).click();
    await heading(page, 'New page');
    await page.getByText('A template: people start new pages with it.').waitFor();
    await page.locator('.cm-content').first().click();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.press('Delete');
    await page.keyboard.insertText('<h1>[[title]]</h1><p>[[path]]</p>');
    await page.getByRole('button', { name: 'Save' }).click();
    await heading(page, '/_templates/a.html');
    assert.equal((await fetch(`${site.url}/_templates/a.html`)).status, 404);

    await goTo(page, '#/pages/new?path=/new.html', 'New page');
    await page.getByLabel('Start with').selectOption('the template a.html');
    await page.getByLabel('Title').fill('Lamps & more');
    await page.getByRole('button', { name: 'Save' }).click();
    await heading(page, '/new.html');
    const text = await (await fetch(`${site.url}/new.html`)).text();
    assert.equal(text, '<h1>Lamps &amp; more</h1><p>/new.html</p>');
    assert.deepEqual(realTroubles(tab), []);
  });

  test('a page is copied to another path', async (t) => {
    const { site } = await start(t);
    const { page } = await openConsole(t, openTab, site);
    const { data } = await site.call('svc1.userinterface.list', { path: '/a' });
    await goTo(page, `#/pages/${data.rows[0].id}`, '/a.html');
    await page.getByRole('link', { name: 'Copy', exact: true }).click();
    await heading(page, 'New page');
    await page.getByLabel('Path', { exact: true }).fill('/d.html');
    await page.getByRole('button', { name: 'Save' }).click();
    await heading(page, '/d.html');
    assert.equal(await (await fetch(`${site.url}/d.html`)).text(), html('a'));
  });
});

suite('a draft in the console', () => {
  test('is scheduled for a time, which can be cancelled', async (t) => {
    const { site } = await start(t);
    const { data } = await site.call('svc1.draft.insert', { name: 'spring' });
    await site.call('svc1.userinterface.insert', { path: '/d', content: 'd' }, { draft: 'spring' });
    const tab = await openConsole(t, openTab, site, { timezoneId: 'Europe/Berlin' });
    const { page } = tab;
    await goTo(page, `#/drafts/${data.id}`, 'spring');
    await page.getByRole('button', { name: 'Publish at a later time' }).click();
    assert.match(await page.getByLabel('Publish at').inputValue(), /^\d{4}-\d\d-\d\dT08:00$/);
    await page.getByLabel('Publish at').fill('2999-12-01T08:00');
    await page.getByRole('button', { name: 'Schedule 1 change' }).click();
    await page.getByText('Goes live 2999-12-01 08:00 Europe/Berlin').waitFor();
    const { data: read } = await site.call('svc1.draft.read', { draft: data.id });
    assert.equal(read.schedule.at, '2999-12-01T07:00:00.000Z');
    await page.getByRole('button', { name: 'Cancel the schedule' }).click();
    await page.getByRole('button', { name: 'Publish 1 change' }).waitFor();
    assert.deepEqual(realTroubles(tab), []);
  });

  test('keeps its form as it was sent until it is made, and leads back to the page', async (t) => {
    const { site, apikey } = await start(t);
    const { data } = await site.call('svc1.userinterface.list', { path: '/a' });
    const { page } = await openConsole(t, openTab, site, { apikey });
    await goTo(page, `#/pages/${data.rows[0].id}`, '/a.html');
    await page.getByRole('link', { name: 'make one' }).click();
    await heading(page, 'New draft');
    await page.getByLabel('Name').fill('spring');
    const held = await holdNext(page, '**/svc1/draft/insert');
    await page.getByRole('button', { name: 'Make the draft' }).click();
    await held.requested;
    assert.equal(await page.getByLabel('Comment').isDisabled(), true);
    held.release();
    await heading(page, '/a.html');
    await page.getByRole('button', { name: 'Save' }).waitFor();
  });
});
