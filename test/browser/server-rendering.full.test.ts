import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startSite } from '../harness.ts';
import { project } from '../tidy/sources.ts';
import { oneBrowser, visit, visitGeneric, type Tab } from './browser.ts';
import { hostileValues, templates } from './template-corpus.ts';

const openTab = oneBrowser();
const genericPage = readFileSync(join(project, 'public/page.html'), 'utf8').replaceAll(
  /\{\{\w+\}\}/g,
  '',
);

const corpus: readonly { readonly enginedata: object; readonly query: string }[] = [
  ...templates.map((enginedata) => ({ enginedata, query: '?by=a&by=%3Cb%3E' })),
  ...hostileValues.map(({ template, value }) => ({
    enginedata: { template: `<h1>x</h1>{% assign v = query.v %}${template}<footer>end</footer>` },
    query: `?v=${encodeURIComponent(value)}`,
  })),
];

const site = startSite(
  { after },
  {
    rules: corpus.map(({ enginedata }, at) => ({
      path: `/${at}/*`,
      kind: 'content',
      engine: 'template',
      ...(at % 3 === 0 && { lang: 'de' }),
      ...(at % 5 === 4 && { lang: 'ar' }),
      enginedata: { ...enginedata, render: 'server' },
    })),
  },
);

/** The parts of a page that a visitor sees. */
function seen({ page }: Tab): Promise<unknown> {
  return page.evaluate(`({
    html: document.querySelector('#waymark').innerHTML,
    title: document.title,
    lang: document.documentElement.lang,
    dir: document.documentElement.dir,
    css: document.querySelector('style[data-waymark-css]')?.textContent.replaceAll('<\\\\/', '</'),
  })`);
}

test('the server renders what the browser renders', async (t) => {
  const { url } = await site;
  const withScript = await openTab(t);
  const withoutScript = await openTab(t, { javaScriptEnabled: false });
  for (const [at, { enginedata, query }] of corpus.entries()) {
    const address = `${url}/${at}/brass${query}`;
    const html = await (await fetch(address)).text();
    assert.match(html, /data-waymark-server/, JSON.stringify(enginedata));
    // The browser renders the same rule itself in the generic page, as it is without the server.
    await withScript.page.route(address, (route) =>
      route.fulfill({ contentType: 'text/html', body: genericPage }),
    );
    await visitGeneric(withScript, address);
    await withScript.page.unroute(address);
    const byBrowser = await seen(withScript);
    await visit(withoutScript, address);
    assert.deepEqual(await seen(withoutScript), byBrowser, JSON.stringify(enginedata));
    // With scripts, the engine leaves the rendered page as it is.
    if (at % 8 !== 0) continue;
    await visitGeneric(withScript, address);
    assert.deepEqual(await seen(withScript), byBrowser, JSON.stringify(enginedata));
  }
});

test('the scripts of a page that the server has rendered run once, after its answer has come', async (t) => {
  const { url } = await startSite(t, {
    rules: [
      {
        path: '/page',
        kind: 'content',
        engine: 'template',
        enginedata: {
          render: 'server',
          template: '<h1>{{ data.name }}</h1>',
          data: { name: 'Tern' },
          scripts: ['window.said = (window.said ?? 0) + 1'],
        },
      },
    ],
  });
  const tab = await openTab(t);
  await tab.page.addInitScript(`
    document.addEventListener('waymark:rendered', ({ detail }) => {
      window.name = detail.enginedata.data.name;
    });
    document.addEventListener('DOMContentLoaded', () => {
      const heading = document.querySelector('h1');
      window.isSame = () => heading === document.querySelector('h1');
    });
  `);
  assert.equal(await visitGeneric(tab, `${url}/page`), 'rendered');
  assert.deepEqual(await tab.page.evaluate('[said, window.name, isSame(), document.title]'), [
    1,
    'Tern',
    true,
    'Tern',
  ]);
  assert.deepEqual(tab.troubles, []);
});
