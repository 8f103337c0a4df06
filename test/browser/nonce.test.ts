import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser } from './browser.ts';

const openTab = oneBrowser();

test('with security = strict a browser runs the scripts and styles with the nonce only', async (t) => {
  const site = await startSite(t, {
    ini: '[headers.all]\nsecurity = strict\n',
    rules: [
      {
        path: '/page',
        kind: 'content',
        content: `<!doctype html><title>none</title>
<style nonce="\${nonce}">p { color: rgb(1, 2, 3) }</style>
<style>p { font-size: 99px }</style>
<p>text</p>
<script nonce="\${nonce}">document.title = 'with'</script>
<script>document.title = 'without'</script>`,
      },
    ],
  });
  const { page } = await openTab(t);
  // Twice: the second one may come from a cache.
  for (let visit = 0; visit < 2; visit += 1) {
    await page.goto(`${site.url}/page`);
    assert.equal(await page.title(), 'with');
    const [colour, size] = await page.evaluate<[string, string]>(
      `(({ color, fontSize }) => [color, fontSize])(getComputedStyle(document.querySelector('p')))`,
    );
    assert.deepEqual([colour, size], ['rgb(1, 2, 3)', '16px']);
  }
});
