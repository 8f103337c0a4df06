import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { assertOpenToAll } from './axe.ts';
import { oneBrowser, sizes, visit } from './browser.ts';

const openTab = oneBrowser();
const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', '<img src=x onerror=alert(1)>'];
const site = await startSite(
  { after },
  {
    ini: '[disk.files]\npath = /files/\nroot = files\nlisting = yes\n',
    files: {
      'files/zoo/x.txt': '',
      ...Object.fromEntries(
        letters.map((name, at) => [`files/${name}.txt`, 'x'.repeat(10 * (9 - at))]),
      ),
    },
  },
);

suite('the listing of a folder in a browser', () => {
  test('sorts by the columns and filters by name', async (t) => {
    const tab = await openTab(t, { viewport: sizes[0].viewport });
    await visit(tab, `${site.url}/files/`);
    const { page } = tab;
    const shown = async (): Promise<readonly string[]> =>
      page.locator('tbody tr:visible bdi').allInnerTexts();
    assert.equal((await shown())[0], 'zoo/');
    await page.getByRole('button', { name: 'Size' }).click();
    assert.deepEqual((await shown()).slice(0, 2), ['zoo/', '<img src=x onerror=alert(1)>.txt']);
    await page.getByRole('button', { name: 'Size' }).click();
    assert.deepEqual([(await shown())[0], (await shown()).at(-1)], ['a.txt', 'zoo/']);
    const head = page.locator('th[aria-sort]');
    assert.equal(await head.getAttribute('aria-sort'), 'descending');
    await page.getByRole('button', { name: 'Name' }).click();
    assert.equal((await shown())[0], 'zoo/');
    await page.getByLabel('Filter by name').fill('B.T');
    assert.deepEqual(await shown(), ['b.txt']);
    await page.getByText('1 of 10 entries').waitFor();
    await assertOpenToAll(page, 'the listing');
    assert.deepEqual(tab.troubles, []);
  });
});
