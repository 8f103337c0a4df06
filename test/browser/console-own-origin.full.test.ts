import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Page } from 'playwright-core';
import { freePort } from '../free-port.ts';
import { startSite } from '../harness.ts';
import { eventually } from '../modules/nodes/rig.ts';
import { oneBrowser } from './browser.ts';
import { goTo, openConsole, realTroubles } from './console-tab.ts';

const openTab = oneBrowser();
const look = '<link rel="stylesheet" href="/style.css"><img alt="a dot" src="/dot.svg">';
const html = { kind: 'content', contenttype: 'text/html' };
const stored = { path: '/stored', ...html, content: `${look}<h1>Stored</h1>` };
const template = `${look}<h1>Hello {{ data.name }}</h1>`;
const data = { name: 'Ada' };
const made = { path: '/made', ...html, engine: 'template', enginedata: { data, template } };
const siteOfFiles = {
  ini: '[disk.site]\nroot = site\n',
  files: {
    'site/style.css': 'h1 { width: 177px }',
    'site/dot.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="31" height="9"/>',
  },
};

/** Asserts that the frame shows a page with its style sheet and image. */
async function assertComplete(page: Page, text: string): Promise<void> {
  const frame = page.frameLocator('.preview');
  await frame.getByRole('heading', { name: text }).waitFor();
  await eventually(async () => {
    const heading = await frame.getByRole('heading', { name: text }).boundingBox();
    const image = await frame.getByRole('img').boundingBox();
    assert.deepEqual([heading?.width, image?.width], [177, 31]);
  });
}

async function explain(page: Page, url: string): Promise<void> {
  await goTo(page, `#/explain?url=${encodeURIComponent(url)}`, 'Explain');
  await page.getByRole('button', { name: 'Request the page' }).click();
}

suite('pages of a site in the console', () => {
  test('have their files where the console is at an origin of its own', async (t) => {
    const port = await freePort();
    // The site is at localhost, the console at the address.
    const own = `http://127.0.0.1:${port}`;
    const site = await startSite(t, {
      listen: `listen = 127.0.0.1:${port}`,
      server: `console = ${own}`,
      rules: [stored, made],
      ...siteOfFiles,
    });
    const tab = await openConsole(t, openTab, { ...site, url: own });
    const { page } = tab;
    const rules = (await site.call('svc1.userinterface.list', {})).data.rows;
    for (const [path, text] of [
      ['/stored', 'Stored'],
      ['/made', 'Hello Ada'],
    ] as const) {
      await goTo(
        page,
        `#/pages/${rules.find((rule: { path: string }) => rule.path === path).id}`,
        path,
      );
      await assertComplete(page, text);
      await explain(page, site.url + path);
      await assertComplete(page, text);
      await goTo(page, `#/history/past?page=${path}`, 'The site in the past');
      await assertComplete(page, text);
    }
    assert.deepEqual(realTroubles(tab), []);
  });

  test('have the files of their own site where one server has several', async (t) => {
    const origin = 'https://other.example';
    const site = await startSite(t, { rules: [{ origin, ...stored }], ...siteOfFiles });
    const tab = await openConsole(t, openTab, site);
    const [rule] = (await site.call('svc1.userinterface.list', {})).data.rows;
    await goTo(tab.page, `#/pages/${rule.id}`, '/stored');
    await assertComplete(tab.page, 'Stored');
    await explain(tab.page, `${origin}/stored`);
    await assertComplete(tab.page, 'Stored');
    assert.deepEqual(realTroubles(tab), []);
    // While a person types an origin, the frame goes on showing the page.
    await goTo(tab.page, `#/pages/${rule.id}`, '/stored');
    for (const typed of ['htt', 'htt:', 'https://']) {
      await tab.page.getByLabel('Origin', { exact: true }).fill(typed);
      await tab.page.locator('.cm-content').first().fill(`<h1>After ${typed}</h1>`);
      const frame = tab.page.frameLocator('.preview');
      await frame.getByRole('heading', { name: `After ${typed}`, exact: true }).waitFor();
    }
  });
});
