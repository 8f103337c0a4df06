import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import type { Page } from 'playwright-core';
import { startSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { oneBrowser } from './browser.ts';
import { code, goTo, heading, openConsole, realTroubles, untilTrue } from './console-tab.ts';

const openTab = oneBrowser();
const count = 100_000;
const rules = Array.from({ length: count }, (_, at) => {
  // No two neighbours in the order of paths are neighbours in that of inserts.
  const [folder, page] = [at % 100, Math.floor(at / 100)];
  return { path: `/f${folder + 100}/p${page + 1000}`, kind: 'content', content: 'x' };
});
const started = startSite({ after }, { rules });

const paths = (page: Page): Promise<readonly string[]> =>
  page.locator('.rule-columns.row .row-main').allTextContents();

/** Waits until the first row of the list has a path. */
async function firstRow(page: Page, path: string): Promise<void> {
  await page.locator('.rule-columns.row').first().getByText(path, { exact: true }).waitFor();
}

suite('the list of 100,000 page rules', () => {
  test('is sorted by its heads, also by keyboard, and the URL has the order', async (t) => {
    const tab = await openConsole(t, openTab, await started);
    const { page } = tab;
    await goTo(page, '#/pages', 'Pages');
    await page.getByRole('link', { name: 'Show as a list' }).click();
    await firstRow(page, '/f100/p1000');
    assert.deepEqual((await paths(page)).slice(0, 2), ['/f100/p1000', '/f100/p1001']);
    const head = (name: string) => page.getByRole('columnheader', { name });
    assert.equal(await head('Path').getAttribute('aria-sort'), 'ascending');
    assert.equal(await head('Inserted').getAttribute('aria-sort'), 'none');
    await head('Path').getByRole('link').focus();
    await page.keyboard.press('Enter');
    await firstRow(page, '/f199/p1999');
    assert.equal(await head('Path').getAttribute('aria-sort'), 'descending');
    assert.match(page.url(), /#\/pages\?sort=-path$/);
    // The head has the focus still: the next one is a step away.
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await head('Inserted').and(page.locator('[aria-sort=descending]')).waitFor();
    await page.locator('.rule-columns.row').nth(1).getByText('/f198/p1999').waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.rule-columns.row').nth(1).getByText('/f101/p1000').waitFor();
    assert.match(page.url(), /#\/pages\?sort=inserted$/);
    await assertOpenToAll(page, 'the list');
    await page.goBack();
    await page.locator('.rule-columns.row').nth(1).getByText('/f198/p1999').waitFor();
    assert.match(page.url(), /#\/pages\?sort=-inserted$/);
    await page.getByRole('searchbox').fill('/f120/');
    await page.keyboard.press('Enter');
    await firstRow(page, '/f120/p1999');
    // The keyboard is still in the field, for the next search.
    assert.equal(await page.evaluate('document.activeElement.type'), 'search');
    assert.match(page.url(), /text=%2Ff120%2F/);
    assert.match(page.url(), /sort=-inserted/);
    assert.deepEqual(realTroubles(tab), []);
  });

  test('shows the rows again that a person has left', async (t) => {
    const { page } = await openConsole(t, openTab, await started);
    await goTo(page, '#/pages?sort=path', 'Pages');
    const row = (path: string) =>
      page.locator('.rule-columns.row').getByText(path, { exact: true });
    await row('/f100/p1000').waitFor();
    const list = page.locator('.virtual');
    await list.evaluate((box) => {
      box.scrollTop = 44 * 150;
    });
    await row('/f100/p1150').waitFor();
    await untilTrue(page, 'history.state?.row === 150');
    await row('/f100/p1150').click();
    await heading(page, '/f100/p1150');
    await page.goBack();
    await row('/f100/p1150').waitFor();
    await untilTrue(page, 'document.querySelector(".virtual").scrollTop === 44 * 150');
    await page.goForward();
    await heading(page, '/f100/p1150');
    // A new visit begins at the start.
    await goTo(page, '#/pages?sort=path', 'Pages');
    await row('/f100/p1000').waitFor();
  });
});

suite('the tree of pages', () => {
  test('has files, says what answers each path, and leads from a file to explain', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\n',
      files: {
        'site/both.html': 'file',
        'site/.hidden': 'x',
        [`site/dir/${code} 100%.txt`]: 'hostile',
      },
      rules: [
        { path: '/both.html', kind: 'content', content: 'rule' },
        { path: '/far/*', kind: 'content.fetch', enginedata: { source: 'http://a.example/*' } },
      ],
    });
    const tab = await openConsole(t, openTab, site);
    const { page } = tab;
    const row = (name: string) => page.locator('.row', { hasText: name });
    await goTo(page, '#/pages', 'Pages');
    await row('both.html').locator('.tag.file').waitFor();
    await row('both.html').locator('.tag.shadowed').waitFor();
    assert.equal(await row('.hidden').count(), 0);
    await assertOpenToAll(page, 'the tree');
    await row('far/').click();
    await row('everything else').getByText('fetched from http://a.example/*').waitFor();
    await goTo(page, '#/pages', 'Pages');
    await row('dir/').click();
    await row('100%.txt').click();
    await heading(page, 'Explain');
    await page.locator('.precedence .winner', { hasText: '[disk.site]' }).waitFor();
    assert.equal(await page.evaluate('window.hit'), undefined);
    assert.deepEqual(realTroubles(tab), []);
  });

  test('tells a key without the scope admin which files it does not show', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\n',
      files: { 'site/private.txt': 'x' },
      rules: [{ path: '/page', kind: 'content', content: 'x' }],
    });
    const { data } = await site.call('svc1.key.insert', { name: 'reader', scopes: ['read'] });
    const { page } = await openConsole(t, openTab, site, { apikey: data.key as string });
    await goTo(page, '#/pages', 'Pages');
    await page.locator('.row', { hasText: 'page' }).waitFor();
    await page.getByText('Files of [disk.site] are not shown').waitFor();
    assert.equal(await page.getByText('private.txt').count(), 0);
  });
});
