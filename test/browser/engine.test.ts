import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { assertReadable, oneBrowser, visit, visitGeneric } from './browser.ts';

const openTab = oneBrowser();

/** A rule that a generic page shows. */
function generic(path: string, enginedata: object, more: object = {}): object {
  return { path, kind: 'content', engine: 'html', enginedata, ...more };
}

/** A generic page of a site, with a footer after the inserted content. */
function frame(loader = '<script defer src="/svc1/engine.js"></script>'): string {
  return (
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>Frame</title>${loader}` +
    '<body><main id="waymark"></main><footer>the foot</footer></body></html>'
  );
}

const onDisk = '[disk.site]\nroot = site\n';

suite('the scripts of a page rule', () => {
  const files = {
    'site/one.js': 'said.push("one")',
    'site/three.js': 'said.push("three")',
    'site/broken.js': 'throw new Error("broken")',
  };
  const begin = 'window.said = [document.querySelector("h1").textContent]';
  const cases = [
    {
      what: 'run once each and in order, whether files or code',
      scripts: [begin, '/one.js', 'said.push("two")', '/three.js', 'said.push("four")'],
      said: ['Hello', 'one', 'two', 'three', 'four'],
      troubles: [],
    },
    {
      what: 'run as often as they are listed',
      scripts: [begin, '/one.js', '/one.js'],
      said: ['Hello', 'one', 'one'],
      troubles: [],
    },
    {
      what: 'run though one before them is missing or broken',
      scripts: [begin, '/none.js', '/broken.js', 'throw new Error("broken too")', '/one.js'],
      said: ['Hello', 'one'],
      troubles: [
        'error: Cannot load the script /none.js.',
        'uncaught: broken',
        'uncaught: broken too',
      ],
    },
    {
      what: 'are code to the last character, whatever HTML would make of it',
      scripts: [begin, 'said.push("</script><!--<script>")'],
      said: ['Hello', '</script><!--<script>'],
      troubles: [],
    },
  ];
  for (const { what, scripts, said, troubles } of cases) {
    test(what, async (t) => {
      const site = await startSite(t, {
        ini: onDisk,
        files,
        rules: [generic('/page', { html: '<h1>Hello</h1>', scripts })],
      });
      const tab = await openTab(t);
      assert.equal(await visitGeneric(tab, `${site.url}/page`), 'rendered');
      assert.deepEqual(await tab.page.evaluate('said'), said);
      // The browser adds its own message about a missing file.
      const ofScripts = tab.troubles.filter((trouble) => /^uncaught|the script/.test(trouble));
      assert.deepEqual(troubles.length === 0 ? tab.troubles : ofScripts, troubles);
    });
  }

  test('run once even if a page loads the engine twice', async (t) => {
    const loader = '<script defer src="/svc1/engine.js"></script>';
    const site = await startSite(t, {
      ini: onDisk,
      files: { 'site/frame.html': frame(loader + loader) },
      rules: [
        generic('/page', {
          page: '/frame.html',
          scripts: ['window.runs = (window.runs ?? 0) + 1'],
        }),
      ],
    });
    const tab = await openTab(t);
    assert.equal(await visitGeneric(tab, `${site.url}/page`), 'rendered');
    assert.equal(await tab.page.evaluate('runs'), 1);
  });
});

suite('what a page rule puts into the page', () => {
  test('has HTML, style, title and language, and the fragment of the address is scrolled to', async (t) => {
    const site = await startSite(t, {
      rules: [
        generic(
          '/page',
          {
            html: '<h1>Hallo</h1><p style="height: 300vh"></p><h2 id="end">Ende</h2>',
            css: 'h1 { color: rgb(1, 2, 3) }',
          },
          { lang: 'de' },
        ),
      ],
    });
    const tab = await openTab(t);
    const { page } = tab;
    assert.equal(await visitGeneric(tab, `${site.url}/page#end`), 'rendered');
    await assertReadable(tab, 'the page');
    assert.equal(await page.title(), 'Hallo');
    assert.equal(await page.locator('html').getAttribute('lang'), 'de');
    assert.equal(
      await page.evaluate('getComputedStyle(document.querySelector("h1")).color'),
      'rgb(1, 2, 3)',
    );
    assert.ok((await page.evaluate<number>('scrollY')) > 0);
    assert.deepEqual(tab.troubles, []);
  });

  test('is shown under very long addresses in any script', async (t) => {
    const template = '<h1>{{ query.q | size }}</h1><p>{{ capture | size }}</p>';
    const page = { kind: 'content', engine: 'template', enginedata: { template } };
    const site = await startSite(t, { rules: [{ ...page, path: '/page/*' }] });
    const tab = await openTab(t);
    const url = `${site.url}/page/${'\u00e9'.repeat(200)}?q=${'\u00e9'.repeat(1_000)}`;
    assert.equal(await visitGeneric(tab, url), 'rendered');
    assert.deepEqual(await tab.page.locator('h1, p').allInnerTexts(), ['1000', '200']);
    // The name of this parameter is ?q.
    assert.equal(await visitGeneric(tab, `${site.url}/page/x??q=1`), 'rendered');
    assert.equal(await tab.page.locator('h1').innerText(), '0');
  });

  test('has the writing direction of its language, or that of the page', async (t) => {
    const files = {
      'site/frame.html':
        '<!doctype html><html lang="en" dir="ltr"><title>Frame</title><main id="waymark"></main>' +
        '<script defer src="/svc1/engine.js"></script>',
    };
    const html = '<h1>x</h1>';
    const directions = { ar: 'rtl', 'az-Arab': 'rtl', 'he-IL': 'rtl', 'sd-Deva': '', de: '' };
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\n',
      files,
      rules: [
        ...Object.keys(directions).map((lang) => generic(`/${lang}`, { html }, { lang })),
        generic('/framed', { html, page: '/frame.html' }, { lang: 'ar' }),
      ],
    });
    const tab = await openTab(t);
    for (const [path, direction] of Object.entries({ ...directions, framed: 'ltr' })) {
      assert.equal(await visitGeneric(tab, `${site.url}/${path}`), 'rendered');
      const said = (await tab.page.locator('html').getAttribute('dir')) ?? '';
      assert.equal(said, direction, path);
    }
  });

  const hit = 'window.hit = true';
  const hostile = [
    { what: 'a script element', html: `<h1>x</h1><script>${hit}</script>` },
    { what: 'the end of a script', html: `<h1>x</h1></script><script>${hit}</script>` },
    { what: 'a comment without an end', html: '<h1>x</h1><!-- </main>' },
    { what: 'a comment around a script', html: `<h1>x</h1><!--<script>--><script>${hit}</script>` },
    { what: 'the end of the page', html: '<h1>x</h1></main></body></html><p>y</p>' },
    { what: 'a style with an end', html: '<h1>x</h1>', css: `</style><script>${hit}</script>` },
    { what: 'a title with an end', html: '<h1>x</h1>', title: `</title><script>${hit}</script>` },
  ];
  for (const { what, ...enginedata } of hostile) {
    test(`does not break out of its place: ${what}`, async (t) => {
      const site = await startSite(t, {
        ini: onDisk,
        files: { 'site/frame.html': frame() },
        rules: [generic('/page', { ...enginedata, page: '/frame.html' })],
      });
      const tab = await openTab(t);
      const { page } = tab;
      const query = encodeURIComponent(`</script><script>${hit}</script><!--`);
      assert.equal(await visitGeneric(tab, `${site.url}/page?q=${query}`), 'rendered');
      assert.equal(await page.locator('main h1').innerText(), 'x');
      assert.equal(await page.locator('body > footer').innerText(), 'the foot');
      assert.equal(await page.locator('body > *').count(), 2);
      assert.equal(await page.evaluate('window.hit'), undefined);
      assert.equal(await page.title(), enginedata.title ?? 'Frame');
      assert.deepEqual(tab.troubles, []);
    });
  }

  test('is trusted HTML: its event handlers work', async (t) => {
    const html = `<h1>x</h1><button onclick="${hit}">Press</button>`;
    const site = await startSite(t, { rules: [generic('/page', { html })] });
    const tab = await openTab(t);
    await visitGeneric(tab, `${site.url}/page`);
    await tab.page.getByRole('button').click();
    assert.equal(await tab.page.evaluate('window.hit'), true);
  });

  test('is not shown as a page if the response of get_render is opened directly', async (t) => {
    const html = `<h1>x</h1><img src="data:," onerror="${hit}">`;
    const site = await startSite(t, { rules: [generic('/page', { html })] });
    const tab = await openTab(t);
    const place = `_v.origin=${site.url}&_v.path=/page`;
    await visit(tab, `${site.url}/svc1/userinterface/get_render?${place}`);
    assert.equal(await tab.page.locator('h1, img').count(), 0);
    assert.match(await tab.page.locator('body').innerText(), /<h1>x<\/h1>/);
  });
});

suite('a changed rule', () => {
  test('is shown when the page is next loaded, and not before', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call('svc1.userinterface.insert', {
      path: '/page',
      kind: 'content',
      engine: 'html',
      enginedata: { html: '<h1>old</h1>' },
    });
    const tab = await openTab(t);
    const heading = tab.page.getByRole('heading', { level: 1 });
    for (const text of ['old', 'new', 'newer']) {
      if (text !== 'old') {
        const enginedata = { html: `<h1>${text}</h1>` };
        await site.call('svc1.userinterface.edit', { id: data.id, enginedata });
      }
      assert.equal(await visitGeneric(tab, `${site.url}/page`), 'rendered');
      assert.equal(await heading.innerText(), text);
    }
    // Content of its own replaces the generic page at the same address.
    const content = '<!doctype html><title>Own</title><h1>its own</h1>';
    await site.call('svc1.userinterface.edit', { id: data.id, content });
    assert.equal(await heading.innerText(), 'newer');
    await visit(tab, `${site.url}/page`);
    assert.equal(await heading.innerText(), 'its own');
    assert.deepEqual(tab.troubles, []);
  });
});

suite('the pages of records', () => {
  const ini =
    `${onDisk}[table.letters]\nschema = letters.json\n` + '[engine.sheet]\nscript = /sheet.js\n';
  const files = {
    'letters.json': '{"type": "object", "properties": {"name": {}, "message": {}}}',
    'site/sheet.js': `export function render({ kind, table, meta, capture, query }, { element }) {
      element.innerHTML = '<h1></h1>';
      const fields = Object.keys(meta.properties).join(' and ');
      element.firstChild.textContent = [kind, table, fields, capture, query.draft].join('; ');
    }`,
  };
  for (const kind of ['insert-record', 'edit-record', 'delete-record']) {
    test(`of the kind ${kind} have their table and the values of the address`, async (t) => {
      const rules = [
        generic('/letters/*', { any: 1 }, { kind, table: 'letters', engine: 'sheet' }),
        generic('/plain', { html: '<h1>Plain</h1>' }, { kind, table: 'letters' }),
      ];
      const site = await startSite(t, { ini, files, rules });
      const tab = await openTab(t);
      const heading = tab.page.getByRole('heading', { level: 1 });
      assert.equal(await visitGeneric(tab, `${site.url}/letters/7?draft=2`), 'rendered');
      assert.equal(await heading.innerText(), `${kind}; letters; name and message; 7; 2`);
      assert.equal(await visitGeneric(tab, `${site.url}/plain`), 'rendered');
      assert.equal(await heading.innerText(), 'Plain');
      assert.deepEqual(tab.troubles, []);
    });
  }
});
