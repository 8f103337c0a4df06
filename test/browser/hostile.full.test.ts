import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { oneBrowser, visit, visitGeneric } from './browser.ts';
import { letters } from './form-rig.ts';

const openTab = oneBrowser();
const hit = 'window.hit = true';
const code = `javascript:${hit}`;
const html = `"></p></script><script>${hit}</script><img src=x: onerror="${hit}">`;

/** A schema in which every text that a form shows is hostile HTML. */
const hostileTable = {
  title: html,
  type: 'object',
  required: ['choice'],
  properties: {
    plain: { type: 'string', title: html, description: html },
    choice: { enum: [html, 'b', '__proto__'] },
    many: { type: 'array', title: html, items: { enum: [html] } },
    list: { type: 'array', minItems: 1, items: { type: 'string', title: html } },
    group: { type: 'object', title: html, properties: { ['__proto__']: { type: 'string' } } },
    constructor: { type: 'string', title: 'Builder' },
  },
};
const withOwnName = JSON.stringify(hostileTable).replace(
  '"plain":',
  '"__proto__":{"type":"string"},"plain":',
);

const submit = { url: '/data', a: 'x.insert' };
const form = (path: string, more: object, kind = 'insert-record') => ({
  path,
  kind,
  table: 'hostile',
  engine: 'form',
  enginedata: { submit, html: '<h1>Instead</h1>', ...more },
});

const site = startSite(
  { after },
  {
    ini:
      '[disk.site]\nroot = site\n[table.hostile]\nschema = hostile.json\n' +
      '[table.letters]\nschema = letters.json\n[engine.own]\nscript = /own.js\n',
    files: {
      'hostile.json': withOwnName,
      'letters.json': JSON.stringify(letters),
      'site/own.js': `export function render({ enginedata }, { element }) {
        element.innerHTML = '<h1></h1>';
        element.firstChild.textContent = Object.keys(enginedata).join();
      }`,
    },
    rules: [
      form('/texts', {
        title: html,
        heading: html,
        intro: html,
        cancel: code,
        words: { insert: html, constructor: html, toString: 'x' },
        css: `</style><script>${hit}</script>`,
        values: { constructor: html },
      }),
      form('/links', {
        fields: ['plain', 'none', 'constructor', '__proto__', 'plain'],
        done: {
          links: [
            { href: code, label: 'code' },
            { href: 'data:text/html,x', label: 'data' },
            { href: '//other.example/{id}', label: 'other' },
            { href: '{id}', label: 'whole' },
            { href: '/edit/{id}/{__proto__}{none}', label: 'edit' },
          ],
        },
      }),
      form('/to-code', { submit: { url: code, a: 'x.insert' } }),
      form('/records/*', {}, 'edit-record'),
      {
        path: '/own',
        kind: 'content',
        engine: 'own',
        enginedata: JSON.parse('{"__proto__": {"html": 5}, "constructor": 1, "then": 2}') as object,
      },
      {
        path: '/huge',
        kind: 'content',
        engine: 'html',
        enginedata: { html: `<h1>Huge</h1><p>${'y'.repeat(1_000_000)}</p>` },
      },
    ],
  },
);

suite('hostile content', () => {
  test('in the texts of a form and of its table is shown as text', async (t) => {
    const { url } = await site;
    const tab = await openTab(t);
    const { page } = tab;
    assert.equal(
      await visitGeneric(tab, `${url}/texts?plain=${encodeURIComponent(html)}`),
      'rendered',
    );
    assert.equal(await page.title(), html);
    assert.equal(await page.locator('h1').innerText(), html);
    assert.ok((await page.locator('main').innerText()).split(html).length > 8);
    assert.equal(await page.locator('main :is(img, script)').count(), 0);
    assert.equal(await page.locator('main a').count(), 0);
    await page.getByRole('button', { name: html }).first().click();
    assert.equal(await page.evaluate('window.hit'), undefined);
    assert.equal(await page.getByLabel('Builder').inputValue(), html);
    assert.deepEqual(tab.troubles, []);
  });

  test('in responses of a data host is encoded in links', async (t) => {
    const { url } = await site;
    const tab = await openTab(t);
    const { page } = tab;
    await page.route('**/data', async (route) => {
      const data = JSON.parse(`{"id": ${JSON.stringify(code)}, "__proto__": {"x": 1}}`) as object;
      await route.fulfill({ json: { r: 'x.insert', data } });
    });
    assert.equal(await visitGeneric(tab, `${url}/links`), 'rendered');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. Thank you.').waitFor();
    const links = await page.evaluate<string[]>('[...document.links].map(({ href }) => href)');
    const id = encodeURIComponent(code);
    assert.deepEqual(links, [
      `http://other.example/${id}`,
      `${url}/${id}`,
      `${url}/edit/${id}/${encodeURIComponent('{"x":1}')}`,
    ]);
    assert.equal(await page.evaluate('window.hit'), undefined);
  });

  test('in place of a record breaks no form', async (t) => {
    const { url } = await site;
    const tab = await openTab(t);
    const { page } = tab;
    for (const data of [null, 5, 'text', [], { plain: { a: 1 }, many: 'x', list: 5, group: [] }]) {
      await page.route('**/data', (route) => route.fulfill({ json: { r: 'x.read', data } }));
      assert.equal(await visitGeneric(tab, `${url}/records/1`), 'rendered');
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.unroute('**/data');
    }
    assert.deepEqual(tab.troubles, []);
  });

  test('in the address of a data host is stored but not used', async (t) => {
    const { url, ...own } = await site;
    const { data } = await own.call('svc1.userinterface.get_render', {
      origin: url,
      path: '/to-code',
    });
    assert.deepEqual(data.enginedata, { html: '<h1>Instead</h1>', submit: null });
    const written = await own.call('svc1.userinterface.insert', {
      ...form('/to-code-2', { submit: { url: code, a: 'x' } }),
    });
    assert.deepEqual(written.data.unknowns, ['enginedata']);
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${url}/to-code`), 'failed');
    assert.equal(await tab.page.locator('h1').innerText(), 'Instead');
  });

  test('in names of enginedata changes only enginedata', async (t) => {
    const { url } = await site;
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${url}/own?__proto__=1&constructor=2`), 'rendered');
    assert.equal(await tab.page.locator('h1').innerText(), '__proto__,constructor,then');
    assert.equal(await tab.page.evaluate('({}).html'), undefined);
  });

  test('is shown up to the size limit, and refused beyond it', async (t) => {
    const { url, ...own } = await site;
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${url}/huge`), 'rendered');
    assert.equal((await tab.page.locator('p').textContent())?.length, 1_000_000);
    const { error } = await own.call('svc1.userinterface.insert', {
      path: '/huger',
      kind: 'content',
      engine: 'html',
      enginedata: { html: 'y'.repeat(1_100_000) },
    });
    assert.equal(error?.code, 'too_large');
  });

  test('of another site does not run: only the scripts of the rule do', async (t) => {
    const { url } = await site;
    const other = await startSite(t, {
      rules: [{ path: '/hit.js', kind: 'content', contenttype: 'text/javascript', content: hit }],
    });
    const tab = await openTab(t);
    for (const query of [
      `scripts=${other.url}/hit.js`,
      `script=${other.url}/hit.js`,
      `page=${other.url}/`,
    ]) {
      await visit(tab, `${url}/own?${query}&engine=html&html=${encodeURIComponent(html)}`);
      await tab.page.locator('[data-waymark-state=rendered]').waitFor();
      assert.equal(await tab.page.evaluate('window.hit'), undefined);
      assert.equal(await tab.page.locator('img').count(), 0);
    }
    assert.deepEqual(tab.troubles, []);
  });
});
