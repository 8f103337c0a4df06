import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { oneBrowser } from './browser.ts';
import { goTo, realTroubles, signIn } from './console-tab.ts';
import { startDemo } from './demo-site.ts';

const openTab = oneBrowser();
const started = startDemo({ after });

/** Runs in a page: resolves when it has loaded all that it shows. */
const isComplete = `document.readyState === 'complete'
  ? undefined
  : new Promise((resolve) => addEventListener('load', resolve))`;

interface Rule {
  readonly id: string;
  readonly path: string;
  readonly kind: string;
  readonly contenttype?: string;
  readonly engine?: string;
}

/** The engines of which the console shows a preview. */
const previewed: readonly string[] = ['html', 'template'];

suite('the console of the demo', () => {
  test('previews every page without a console error', async (t) => {
    const { url, adminKey } = await started;
    const tab = await openTab(t, { locale: 'en-GB' });
    await signIn(tab, url, adminKey);
    const { page, troubles } = tab;
    const answer = await fetch(`${url}/svc1/userinterface/list?_v.limit=1000`, {
      headers: { apikey: adminKey },
    });
    const { data } = (await answer.json()) as { data: { rows: readonly Rule[] } };
    const pages = data.rows.filter(
      ({ kind, contenttype = '', engine }) =>
        kind === 'content' && (contenttype.includes('html') || previewed.includes(engine ?? '')),
    );
    assert.ok(pages.length >= 10, `${pages.length} pages`);
    for (const { id, path } of pages) {
      const before = troubles.length;
      await goTo(page, `#/pages/${id}`, path);
      const frame = page.frameLocator('.preview').locator('html');
      await frame.locator('body > *').first().waitFor({ state: 'attached' });
      await frame.evaluate(isComplete);
      const found = realTroubles({ troubles: troubles.slice(before) });
      assert.deepEqual(found, [], `the preview of ${path}`);
    }
  });
});
