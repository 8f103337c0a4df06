import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { cleaningAfterAll } from '../folder.ts';
import { startSite, type TestSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import { goTo, heading, holdNext, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();

interface Shared {
  readonly site: TestSite;
  readonly id: string;
  /** The seq of the change that made the page. */
  readonly seq: number;
  /** A key that has written two pages. */
  readonly deploy: { readonly id: string; readonly key: string };
}

async function start(): Promise<Shared> {
  const site = await startSite(cleaningAfterAll(), {
    rules: ['a', 'b', 'c', 'd', 'e'].map((name) => ({
      ...{ path: `/list/${name}`, kind: 'content', content: name },
    })),
  });
  const page = { path: '/page', kind: 'content', contenttype: 'text/html' };
  const made = await site.call('svc1.userinterface.insert', { ...page, content: '<p>first</p>' });
  const { id, seq } = made.data;
  await site.call('svc1.userinterface.edit', { id, content: '<p>second</p>' });
  const deploy = await site.call('svc1.key.insert', { name: 'deploy', scopes: ['design', 'read'] });
  const { key: apikey } = deploy.data;
  await site.call('svc1.userinterface.edit', { id, content: '<p>by deploy</p>' }, { apikey });
  await site.call(
    'svc1.userinterface.insert',
    { path: '/new', kind: 'content', content: 'new' },
    { apikey },
  );
  return { site, id, seq, deploy: deploy.data };
}

suite('the history of the console', () => {
  const shared = start();

  async function signedIn(t: TestContext, options: object = {}) {
    const all = await shared;
    return { ...all, ...(await openConsole(t, openTab, all.site, options)) };
  }

  for (const [at, { name, viewport }] of sizes.entries()) {
    const colorScheme = at === 0 ? 'dark' : 'light';
    test(`is open to all on ${name}, in ${colorScheme}, without errors`, async (t) => {
      const tab = await signedIn(t, { viewport, colorScheme });
      for (const [hash, title, element] of [
        ['#/history', 'History', '.changes details'],
        [`#/history?id=${tab.id}`, 'History of a page', '.rendered iframe'],
        [`#/history/past?at=${tab.seq}&page=/page`, 'The site in the past', '.rendered iframe'],
      ] as const) {
        await goTo(tab.page, hash, title);
        await tab.page.locator(element).first().waitFor();
        await assertReadable(tab, hash);
        await assertOpenToAll(tab.page, hash);
      }
      assert.deepEqual(realTroubles(tab), []);
    });
  }

  test('a version shows its fields and its page beside those before it', async (t) => {
    const { page, id, seq } = await signedIn(t);
    await goTo(page, `#/history?id=${id}&seq=${seq + 1}`, 'History of a page');
    await page.locator('.side .removed', { hasText: 'first' }).waitFor();
    await page.locator('.side .added', { hasText: 'second' }).waitFor();
    const frame = (title: string) => page.frameLocator(`iframe[title="${title}"]`);
    await frame('before').getByText('first').waitFor();
    await frame('after').getByText('second').waitFor();
  });

  test('a slider goes through the past of the site, by keyboard', async (t) => {
    const { page, seq } = await signedIn(t);
    await goTo(page, `#/history/past?at=${seq}`, 'The site in the past');
    const paths = page.getByRole('region', { name: 'Paths then' });
    await paths.getByRole('link', { name: 'list/' }).waitFor();
    assert.equal(await paths.getByRole('link', { name: 'new' }).count(), 0);
    await paths.getByRole('link', { name: 'page' }).click();
    const frame = (title: string) => page.frameLocator(`iframe[title="${title}"]`);
    await frame('then').getByText('first').waitFor();
    await frame('now')
      .getByText(/deploy|second/)
      .waitFor();
    await page.getByRole('slider').focus();
    await page.keyboard.press('ArrowRight');
    await frame('then').getByText('second').waitFor();
    assert.match(page.url(), new RegExp(`at=${seq + 1}`));
    await page.keyboard.press('End');
    await paths.getByRole('link', { name: 'new' }).waitFor();
    await page.keyboard.press('Home');
    await page.getByText('Change 1 ·').waitFor();
  });

  test('changes of a key are reverted, with conflicts shown, and the revert is reverted', async (t) => {
    const { page, site, deploy, id } = await signedIn(t);
    const contentOf = async () => (await site.call('svc1.userinterface.read', { id })).data.content;
    const isThere = async () => (await fetch(`${site.url}/new`)).status === 200;
    await goTo(page, `#/history?by=${deploy.id}`, 'History');
    await page.getByRole('button', { name: 'Revert …' }).click();
    await page.getByText('Records that go').waitFor();
    await page.getByRole('button', { name: 'Revert 2 changes' }).click();
    await page.getByRole('button', { name: 'Revert this revert' }).waitFor();
    assert.equal(await contentOf(), '<p>second</p>');
    assert.equal(await isThere(), false);
    await page.getByRole('button', { name: 'Revert this revert' }).click();
    await page.getByRole('button', { name: /^Revert \d+ change/ }).click();
    await page.getByRole('button', { name: 'Revert this revert' }).waitFor();
    assert.equal(await contentOf(), '<p>by deploy</p>');
    assert.equal(await isThere(), true);
    await site.call('svc1.userinterface.edit', { id, content: '<p>later</p>' });
    await goTo(page, '#/', 'Overview');
    await goTo(page, '#/history', 'History');
    await page.getByLabel('By key or command').fill(deploy.id);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Revert …' }).click();
    await page.getByText('Conflicts: records with later changes, which stay').waitFor();
    const conflict = page.locator('.plan > li', { hasText: '/page' });
    assert.match((await conflict.textContent()) ?? '', /Changed again .*: content/s);
    const choice = page.getByRole('checkbox', { name: 'Revert /page' });
    await choice.press('Space');
    await page.getByText('stays as it is').waitFor();
    await page.getByRole('button', { name: /^Revert \d+ change/ }).click();
    await page.getByRole('button', { name: 'Revert this revert' }).waitFor();
    assert.equal(await contentOf(), '<p>later</p>');
    assert.equal(await isThere(), false);
  });

  test('a transaction of several families is reverted as a whole', async (t) => {
    const { page, site } = await signedIn(t);
    const hook = { event: ['sale.completed'], url: 'https://hooks.example/' };
    const operations = [
      { a: 'svc1.userinterface.insert', v: { path: '/batched', content: 'batched' } },
      { a: 'svc1.webhook.insert', v: hook },
      { a: 'svc1.event.insert', v: { type: 'sale.completed', data: { total: 5 } } },
    ];
    const { data } = await site.call('svc1.batch', { operations });
    await goTo(page, `#/history?txn=${data.txn}`, 'History');
    await page.getByRole('button', { name: 'Revert …' }).click();
    await page.getByText('stays: event (1 change).').waitFor();
    await page.getByRole('checkbox', { name: /^Revert webhook / }).waitFor();
    await page.getByRole('button', { name: 'Revert 2 changes' }).click();
    await page.getByRole('button', { name: 'Revert this revert' }).waitFor();
    assert.equal((await fetch(`${site.url}/batched`)).status, 404);
    const hooks = await site.call('svc1.webhook.list', {});
    assert.deepEqual(hooks.data.rows, []);
  });

  test('what a person types in the filters stays when the changes have loaded', async (t) => {
    const { page, deploy } = await signedIn(t);
    const list = await holdNext(page, '**/svc1/change/list');
    await goTo(page, '#/history', 'History');
    const by = page.getByLabel('By key or command');
    const selected = page.locator('p', { hasText: /^All changes by deploy$/ });
    await by.fill(deploy.id);
    list.release();
    await page.locator('.changes > li').first().waitFor();
    assert.equal(await by.inputValue(), deploy.id);
    await page.keyboard.press('Tab');
    await selected.waitFor();
    // The field stays where the person is, although the address and the list have changed.
    const focused = await page.evaluate('document.activeElement.closest("label").textContent');
    assert.equal(focused, 'Transaction');
    await page.getByRole('link', { name: 'Clear the filters' }).click();
    await selected.waitFor({ state: 'detached' });
    assert.equal(await by.inputValue(), '');
    await page.goBack();
    await selected.waitFor();
    assert.equal(await by.inputValue(), deploy.id);
  });

  test('changes are selected by time and by transaction', async (t) => {
    const { page, site } = await signedIn(t);
    await goTo(page, '#/history', 'History');
    await page.getByLabel('From').fill('2099-01-01T00:00:00');
    await page.keyboard.press('Tab');
    await page.getByText('You have seen everything.').waitFor();
    assert.equal(await page.locator('.changes li').count(), 0);
    await goTo(page, '#/history', 'History');
    const folded = page.locator('.changes details', { hasText: '5 changes in one transaction' });
    await folded.locator('summary').click();
    await folded.getByRole('link', { name: 'Transaction' }).click();
    await page.waitForURL(/txn=/);
    await page.getByRole('button', { name: 'Revert …' }).click();
    await page.getByRole('button', { name: 'Revert 5 changes' }).click();
    await page.getByRole('button', { name: 'Revert this revert' }).waitFor();
    assert.equal((await fetch(`${site.url}/list/a`)).status, 404);
    await page.getByRole('button', { name: 'Revert this revert' }).click();
    await page.getByRole('button', { name: /^Revert \d+ change/ }).click();
    await page.getByRole('button', { name: 'Revert this revert' }).waitFor();
    assert.equal((await fetch(`${site.url}/list/a`)).status, 200);
    await heading(page, 'History');
  });
});
