import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertOpenToAll } from './axe.ts';
import { sizes, visit, type oneBrowser } from './browser.ts';

/** Defines a test for each of two looks, which visits these pages of the documentation. */
export function testLooks(
  openTab: ReturnType<typeof oneBrowser>,
  docs: string,
  shown: readonly string[],
): void {
  for (const [{ name, viewport }, colorScheme] of [
    [sizes[0], 'light'],
    [sizes[1], 'dark'],
  ] as const) {
    test(`has no barrier and nothing too wide on ${name} in ${colorScheme}`, async (t) => {
      const tab = await openTab(t, { viewport, colorScheme });
      for (const path of shown) {
        await visit(tab, `${docs}/${path}`);
        const overflow = await tab.page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        assert.equal(overflow, 0, `${path} is wider than the window`);
        await assertOpenToAll(tab.page, path);
      }
      assert.deepEqual(tab.troubles, []);
    });
  }
}
