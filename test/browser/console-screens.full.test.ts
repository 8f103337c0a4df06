import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Page } from 'playwright-core';
import { assertOpenToAll } from './axe.ts';
import { assertReadable, oneBrowser } from './browser.ts';
import { goTo, heading, openConsole, realTroubles } from './console-tab.ts';
import { documentedScreens, show } from './screens.ts';

const openTab = oneBrowser();
const started = documentedScreens();

/** The element that the Tab key reaches has an outline, and nothing moves with reduced motion. */
async function assertFocusShown(page: Page, hash: string): Promise<void> {
  await page.locator('main').focus();
  await page.keyboard.press('Tab');
  const focused = '(e => e.shadowRoot?.activeElement ?? e)(document.activeElement)';
  const [outline, motion] = await page.evaluate<string[]>(
    `(s => [s.outlineStyle + s.outlineWidth, s.transitionDuration])(getComputedStyle(${focused}))`,
  );
  assert.match(outline ?? '', /^(solid|auto)[1-9]/, hash);
  assert.equal(motion, '0s', hash);
}

const desktop = { width: 1440, height: 900 };
const phone = { width: 390, height: 844 };

/** On a desktop in light by all rules; on a phone in dark by those whose result may differ there. */
const looks = [
  { what: 'a desktop, in light', viewport: desktop, colorScheme: 'light', rules: undefined },
  {
    what: 'a phone, in dark',
    viewport: phone,
    colorScheme: 'dark',
    rules: ['color-contrast', 'target-size', 'scrollable-region-focusable'],
  },
] as const;

suite('every screen of the console', () => {
  for (const { what, rules, ...options } of looks) {
    test(`is open to all on ${what}, without errors`, async (t) => {
      const { site, screens } = await started;
      const tab = await openConsole(t, openTab, site, options);
      const { page } = tab;
      for (const screen of screens) {
        await show(page, screen);
        await assertReadable(tab, screen.hash);
        await assertOpenToAll(page, screen.hash, rules);
        if (screen.open === undefined) await assertFocusShown(page, screen.hash);
      }
      // Explain and the preview of the page for which nothing answers.
      const expected = /status 404: \/svc1\/|status of 404/;
      assert.deepEqual(
        realTroubles(tab).filter((one) => !expected.test(one)),
        [],
      );
    });
  }

  test('keeps its heading and says so when the server is gone', async (t) => {
    const { site, screens } = await started;
    const { page } = await openConsole(t, openTab, site, { viewport: phone });
    const plain = screens.filter(({ open }) => open === undefined);
    // The code of the screens is there; only the operations fail.
    for (const screen of plain) await show(page, screen);
    await page.route('**/svc1/*/*', (route) =>
      route.request().method() === 'POST' ? route.abort('connectionrefused') : route.continue(),
    );
    const needNothing = /new$|send$|\/explain$|log$|transfer$|part=code$/;
    for (const { hash } of plain.filter((one) => !needNothing.test(one.hash))) {
      // A screen without a request first, so that the failure is not that of the former one.
      await goTo(page, '#/explain', 'Explain');
      await page.locator('main [role=alert]').first().waitFor({ state: 'detached' });
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.locator('main [role=alert]').first().waitFor();
      await page.locator('main h1').first().waitFor();
    }
  });

  test('is there for a key without scopes, and says which scope it needs', async (t) => {
    const { site, screens } = await started;
    const { data } = await site.call('svc1.key.insert', { name: 'guest', scopes: ['render'] });
    const tab = await openTab(t, { viewport: desktop });
    const { page } = tab;
    await page.goto(`${site.url}/svc1/console/`);
    await page.getByLabel('API key').fill(data.key as string);
    await page.keyboard.press('Enter');
    await heading(page, /./);
    for (const { hash } of screens) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.locator('main h1').first().waitFor();
      await page.getByText(/scope/).first().waitFor();
    }
    assert.ok(!tab.troubles.some((one) => one.startsWith('uncaught')));
  });
});
