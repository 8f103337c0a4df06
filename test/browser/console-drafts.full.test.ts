import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { startSite, type TestSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import { goTo, heading, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();
const page = { path: '/page', kind: 'content', contenttype: 'text/html' };

/** A site with a live page, and the draft that changes it and adds another one. */
async function start(t: TestContext) {
  const site = await startSite(t);
  const made = await site.call('svc1.userinterface.insert', { ...page, content: '<p>live</p>' });
  const draft = await site.call('svc1.draft.insert', { name: 'spring', comment: 'For May' });
  const inDraft = { draft: 'spring' };
  const { id } = made.data;
  const edit = { id, content: '<p>drafted</p>' };
  await site.call('svc1.userinterface.edit', edit, inDraft);
  const tulips = { ...page, path: '/tulips', content: 'tulips' };
  await site.call('svc1.userinterface.insert', tulips, inDraft);
  return { site, id: id as string, draft: draft.data.id as string };
}

async function textAt({ url }: TestSite, path: string): Promise<string> {
  return (await fetch(url + path)).text();
}

const band = (tab: Page) => tab.getByRole('complementary', { name: 'Draft' });

suite('drafts in the console', () => {
  test('a person makes a draft, changes a page in it, publishes it and undoes that', async (t) => {
    const { site, id } = await start(t);
    const { page: tab, ...rest } = await openConsole(t, openTab, site);
    await tab.getByLabel('What you work in').selectOption('New draft …');
    await heading(tab, 'New draft');
    await tab.getByLabel('Name').fill('summer');
    await tab.getByRole('button', { name: 'Make the draft' }).click();
    await band(tab).getByText('Nothing of it is live.').waitFor();
    await goTo(tab, `#/pages/${id}`, '/page');
    await tab.locator('.cm-content').first().click();
    await tab.keyboard.press('ControlOrMeta+A');
    await tab.keyboard.insertText('<p>summer</p>');
    await tab.getByRole('button', { name: 'Save' }).click();
    await tab.getByText('Saved').waitFor();
    assert.equal(await textAt(site, '/page'), '<p>live</p>');
    await goTo(tab, '#/history', 'History');
    await band(tab).getByText('the live site, not the draft').waitFor();
    await band(tab).getByRole('link', { name: 'Its changes' }).click();
    await heading(tab, 'summer');
    await tab.getByLabel('Live now').getByText('<p>live</p>').waitFor();
    await tab.locator('.side .added', { hasText: '<p>summer</p>' }).waitFor();
    await tab.getByRole('button', { name: 'Publish 1 change' }).click();
    await tab.getByRole('heading', { name: 'Published' }).waitFor();
    await band(tab).waitFor({ state: 'detached' });
    assert.equal(await textAt(site, '/page'), '<p>summer</p>');
    await tab.getByRole('button', { name: 'Undo this publication' }).click();
    await tab.getByText('Undone').waitFor();
    assert.equal(await textAt(site, '/page'), '<p>live</p>');
    assert.deepEqual(realTroubles(rest), []);
  });

  test('a publication is undone with a choice for what was changed since', async (t) => {
    const { site, id, draft } = await start(t);
    await site.call('svc1.userinterface.edit', { id, lang: 'de' }, { draft });
    const { data } = await site.call('svc1.draft.publish', { draft });
    await site.call('svc1.draft.publish', { draft, confirm: data.digest });
    await site.call('svc1.userinterface.edit', { id, content: '<p>later</p>' });
    const { page: tab } = await openConsole(t, openTab, site);
    await goTo(tab, `#/drafts/${draft}`, 'spring');
    const undo = tab.getByRole('button', { name: 'Undo this publication' });
    await tab.getByText('changed again since').waitFor();
    assert.equal(await undo.isDisabled(), true);
    await tab.getByLabel('After the undo').getByText('<p>later</p>').waitFor();
    await tab.getByLabel('what the draft has changed').check();
    await undo.click();
    await tab.getByText('Undone: the site').waitFor();
    const { data: read } = await site.call('svc1.userinterface.read', { id });
    assert.deepEqual([read.content, read.lang], ['<p>later</p>', undefined]);
  });

  test('screens read the draft that the switch chooses, also after a reload by key', async (t) => {
    const { site, draft } = await start(t);
    const { page: tab } = await openConsole(t, openTab, site);
    await goTo(tab, '#/pages?sort=path', 'Pages');
    await tab.locator('.row', { hasText: '/page' }).first().waitFor();
    assert.equal(await tab.locator('.row', { hasText: '/tulips' }).count(), 0);
    await tab.getByLabel('What you work in').selectOption(draft);
    await tab.locator('.row', { hasText: '/tulips' }).first().waitFor();
    await tab.keyboard.press('F5');
    await band(tab).getByText('spring').waitFor();
    await tab.locator('.row', { hasText: '/tulips' }).first().waitFor();
    await tab.getByLabel('What you work in').selectOption('Live');
    await tab.locator('.row', { hasText: '/tulips' }).waitFor({ state: 'detached' });
    await tab.getByLabel('What you work in').selectOption(draft);
    await site.call('svc1.draft.invalidate', { draft });
    await band(tab).getByText('The draft is discarded.').waitFor();
    await band(tab).getByRole('button', { name: 'Leave the draft' }).click();
    await band(tab).waitFor({ state: 'detached' });
  });

  test('a page is deleted in the draft, and stays live', async (t) => {
    const { site, id, draft } = await start(t);
    const { page: tab } = await openConsole(t, openTab, site);
    await tab.getByLabel('What you work in').selectOption(draft);
    await goTo(tab, `#/pages/${id}`, '/page');
    await tab.getByRole('button', { name: 'Delete …' }).click();
    await tab.getByRole('button', { name: /^Revert \d+ changes?$/ }).click();
    await heading(tab, 'Pages');
    await goTo(tab, `#/drafts/${draft}`, 'spring');
    await tab.locator('.draft-changes .tag', { hasText: 'removed' }).waitFor();
    assert.equal(await textAt(site, '/page'), '<p>live</p>');
  });

  test('a conflict has three versions, and nothing is published before a choice', async (t) => {
    const { site, id, draft } = await start(t);
    await site.call('svc1.userinterface.edit', { id, content: '<p>meanwhile</p>' });
    const { page: tab } = await openConsole(t, openTab, site);
    await goTo(tab, `#/drafts/${draft}`, 'spring');
    const conflict = tab.locator('.conflicts > li', { hasText: '/page' });
    for (const [version, text] of [
      ['Live when the draft began', '<p>live</p>'],
      ['Live now', '<p>meanwhile</p>'],
      ['Draft', '<p>drafted</p>'],
    ] as const) {
      await conflict.getByRole('group', { name: version, exact: true }).getByText(text).waitFor();
    }
    const publish = tab.getByRole('button', { name: 'Publish 2 changes' });
    assert.equal(await publish.isDisabled(), true);
    await conflict.getByLabel('the fields of the draft').check();
    await publish.click();
    await tab.getByRole('heading', { name: 'Published' }).waitFor();
    assert.equal(await textAt(site, '/page'), '<p>drafted</p>');
  });

  test('a writer submits, another key approves what it has seen, a link shows the draft', async (t) => {
    const { site, draft } = await start(t);
    const key = { name: 'writer', scopes: ['draft', 'read'] };
    const { data: writer } = await site.call('svc1.key.insert', key);
    const { page: tab } = await openConsole(t, openTab, site, { apikey: writer.key });
    await goTo(tab, `#/drafts/${draft}`, 'spring');
    assert.equal(await tab.getByRole('button', { name: 'Approve' }).count(), 0);
    await tab.getByLabel('Comment', { exact: true }).fill('Please read the second line.');
    await tab.getByRole('button', { name: 'Add the comment' }).click();
    await tab.locator('.said', { hasText: 'the second line' }).waitFor();
    await tab.getByRole('button', { name: 'Submit for review' }).click();
    await tab.getByRole('button', { name: 'Submit again' }).waitFor();
    await tab.getByRole('button', { name: 'Make a link' }).click();
    const link = (await tab.locator('.preview-link').textContent()) ?? '';
    const visitor = await openTab(t);
    // It leads to the first page that the draft changes.
    await visitor.page.goto(link);
    await visitor.page.getByText('drafted').waitFor();
    await tab.locator('.draft-links li').getByRole('button', { name: 'Revoke' }).click();
    await tab.locator('.draft-links li').waitFor({ state: 'detached' });
    await visitor.page.goto(`${site.url}/page`);
    await visitor.page.getByText('live').waitFor();
    const { page: reviewer } = await openConsole(t, openTab, site);
    await goTo(reviewer, `#/drafts/${draft}`, 'spring');
    await reviewer.getByText('writer').first().waitFor();
    await reviewer.getByRole('button', { name: 'Compare' }).click();
    await reviewer.getByText('2 compared, 2 differ.').waitFor();
    await reviewer.getByRole('button', { name: 'Approve' }).click();
    await reviewer.locator('.draft-notes .tag.good', { hasText: 'approved' }).waitFor();
  });

  test('shows what has the focus below the band of the draft, at 200 %', async (t) => {
    const { site, draft } = await start(t);
    const viewport = { width: 640, height: 400 };
    const { page } = await openConsole(t, openTab, site, { viewport });
    await page.getByLabel('What you work in').selectOption(draft);
    await goTo(page, `#/drafts/${draft}`, 'spring');
    await page.locator('.publish-panel .main-button:enabled').waitFor();
    await page.getByRole('textbox', { name: 'Comment' }).focus();
    const isUnderBand = `(({ top, height }) => top + height / 2 <
      document.querySelector('.draft-band').getBoundingClientRect().bottom)(
      document.activeElement.getBoundingClientRect())`;
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press('Shift+Tab');
      const isBack = await page.evaluate('document.activeElement.matches(".back")');
      assert.equal(await page.evaluate(isUnderBand), false);
      if (isBack === true) return;
    }
    assert.fail('Shift and Tab do not reach the link to all drafts');
  });

  for (const [at, { name, viewport }] of sizes.entries()) {
    const colorScheme = at === 0 ? 'dark' : 'light';
    test(`is open to all on ${name}, in ${colorScheme}, without errors`, async (t) => {
      const { site, id, draft } = await start(t);
      await site.call('svc1.userinterface.edit', { id, content: '<p>meanwhile</p>' });
      const tab = await openConsole(t, openTab, site, { viewport, colorScheme });
      await tab.page.getByLabel('What you work in').selectOption(draft);
      for (const [hash, title, element] of [
        ['#/drafts', 'Drafts', '.draft-cards h2'],
        ['#/drafts/new', 'New draft', '.draft-form'],
        [`#/drafts/${draft}`, 'spring', '.conflicts .side'],
        [`#/pages/${id}`, '/page', '.code .cm-editor'],
      ] as const) {
        await goTo(tab.page, hash, title);
        await tab.page.locator(element).first().waitFor();
        await assertReadable(tab, hash);
        await assertOpenToAll(tab.page, hash);
      }
      assert.deepEqual(realTroubles(tab), []);
    });
  }
});
