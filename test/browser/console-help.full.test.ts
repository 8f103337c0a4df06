import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { builtDocs } from '../docs/built-docs.ts';
import { cleaningAfterAll } from '../folder.ts';
import { startSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser, sizes } from './browser.ts';
import { goTo, heading, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();
const docs = builtDocs();

suite('the help of the console', () => {
  const started = docs.then(({ folder }) =>
    startSite(cleaningAfterAll(), {
      docsFolder: folder,
      rules: [{ path: '/', kind: 'content', content: '<h1>Front</h1>' }],
    }),
  );

  async function signedIn(t: TestContext, options: object = {}) {
    return openConsole(t, openTab, await started, options);
  }

  for (const [at, { name, viewport }] of sizes.entries()) {
    const colorScheme = at === 0 ? 'light' : 'dark';
    test(`is open to all beside the screen on ${name}, in ${colorScheme}`, async (t) => {
      const tab = await signedIn(t, { viewport, colorScheme });
      const { page } = tab;
      await page.getByRole('button', { name: 'Help' }).click();
      const help = page.getByRole('complementary', { name: 'Help' });
      await help.getByRole('heading', { name: 'Monitor' }).waitFor();
      await assertReadable(tab, 'the help');
      await assertOpenToAll(page, 'the help');
      await help.getByRole('button', { name: 'Take the tour' }).click();
      await page.getByRole('dialog', { name: 'Tour of the console' }).waitFor();
      await assertOpenToAll(page, 'the tour');
      assert.deepEqual(realTroubles(tab), []);
    });
  }

  test('is about the screen, follows links, and closes, by keyboard', async (t) => {
    const { page } = await signedIn(t);
    await goTo(page, '#/webhooks', 'Webhooks');
    await page.locator('main').focus();
    await page.keyboard.press('?');
    const help = page.getByRole('complementary', { name: 'Help' });
    await help.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor();
    await help.getByRole('link', { name: 'From a form to a receiver' }).first().focus();
    await page.keyboard.press('Enter');
    await help.getByRole('heading', { name: 'From a form to a receiver' }).waitFor();
    assert.match(page.url(), /#\/webhooks$/, 'the screen stays');
    await goTo(page, '#/history', 'History');
    await help.getByRole('heading', { name: 'Undo a bad edit or upload' }).waitFor();
    await help.focus();
    await page.keyboard.press('Escape');
    await help.waitFor({ state: 'detached' });
  });

  test('a tour is offered once, leads through the screens, and can be ended, by keyboard', async (t) => {
    const { page } = await signedIn(t);
    await page.getByRole('button', { name: 'Take the tour' }).focus();
    await page.keyboard.press('Enter');
    const tour = page.getByRole('dialog', { name: 'Tour of the console' });
    await page.locator('.tiles.tour-target').waitFor();
    for (const [title, target] of [
      ['Pages', '.virtual'],
      ['Explain', '.precedence'],
      ['History', '.changes'],
      ['Webhooks', 'h1'],
      ['Overview', '.nav-tools'],
    ] as const) {
      await tour.focus();
      await page.keyboard.press('ArrowRight');
      await heading(page, title);
      await page.locator(`${target}.tour-target`).first().waitFor();
    }
    await tour.getByRole('button', { name: 'Done' }).waitFor();
    await page.keyboard.press('ArrowLeft');
    await heading(page, 'Webhooks');
    await page.keyboard.press('Escape');
    await tour.waitFor({ state: 'detached' });
    await page.locator('.tour-target').waitFor({ state: 'detached' });
    await goTo(page, '#/', 'Overview');
    await page.locator('.tiles').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Not now' }).count(), 0);
    await page.keyboard.press('F5');
    await page.waitForLoadState('load');
    await page.locator('.tiles').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Not now' }).count(), 0, 'remembered');
  });
});
