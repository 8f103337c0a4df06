import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser } from './browser.ts';
import { goTo, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();
const started = startSite(
  { after },
  {
    rules: [
      { path: '/blog/first', kind: 'content', content: 'first' },
      { path: '/shop', kind: 'content', content: 'elsewhere' },
    ],
  },
);

suite('the console of a bound key', () => {
  test('shows its part, and no screen of the whole server', async (t) => {
    const site = await started;
    const given = { name: 'Bea', scopes: ['read', 'design'], paths: ['/blog/'] };
    const { data } = await site.call('svc1.key.insert', given);
    const tab = await openConsole(t, openTab, site, {
      apikey: data.key as string,
      opens: 'Pages',
    });
    const { page } = tab;
    const links = page.locator('nav ul a');
    const names = (await links.allTextContents()).map((one) => one.replace(/g .$/, '').trim());
    assert.deepEqual(names, [
      ...['Pages', 'Breadcrumbs', 'Visits', 'Drafts', 'Calendar', 'Explain', 'History'],
    ]);
    await page.locator('.nav-tools code').getByText('/blog/').waitFor();
    await page.getByRole('link', { name: 'blog/' }).click();
    await page.getByText('first').first().waitFor();
    assert.equal(await page.getByText('shop').count(), 0);
    await goTo(page, '#/history', 'History');
    await page.getByText('/blog/first').first().waitFor();
    await goTo(page, '#/visits', 'Visits');
    await page.getByText('Visits a day').waitFor();
    assert.equal(await page.getByRole('heading', { name: 'Certificates' }).count(), 0);
    await goTo(page, '#/operations', 'Operations');
    await page.getByText('it needs a key without bounds').waitFor();
    assert.deepEqual(realTroubles(tab), []);
  });

  test('is made with the form for keys', async (t) => {
    const site = await started;
    const { page } = await openConsole(t, openTab, site);
    await goTo(page, '#/operations', 'Keys');
    const form = page.locator('form.new-key');
    await form.getByLabel('Name').fill('Cleo');
    await form.getByLabel('Only for these origins').fill('https://one.example');
    await form.getByLabel('Only below these paths').fill('/blog/ /news/');
    await form.getByRole('button').click();
    await page.getByText('https://one.example /blog/ /news/').waitFor();
    const { data } = await site.call('svc1.key.list', {});
    const made = (data.rows as { name: string; paths?: string[] }[]).find(
      ({ name }) => name === 'Cleo',
    );
    assert.deepEqual(made?.paths, ['/blog/', '/news/']);
  });
});
