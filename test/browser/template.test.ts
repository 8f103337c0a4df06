import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { assertReadable, oneBrowser, visitGeneric } from './browser.ts';
import { hostileValues } from './template-corpus.ts';

const openTab = oneBrowser();
interface Template {
  readonly template: string;
  readonly [name: string]: unknown;
}

/** A rule of the engine template. */
function templated(path: string, enginedata: Template, more: object = {}): object {
  return { path, kind: 'content', engine: 'template', enginedata, ...more };
}

suite('a template', () => {
  const lamps = [
    { name: 'Tern & Co', finish: 'brass' },
    { name: 'Dunlin', finish: 'slate' },
    { name: 'Heron', finish: 'brass' },
  ];
  test('makes a different page of each address under one rule', async (t) => {
    const site = await startSite(t, {
      rules: [
        templated(
          '/lamps/*',
          {
            title: '{{ capture | capitalize }} & more',
            template:
              '<h1>{{ capture }}</h1><ul>' +
              "{% assign found = data.lamps | where: 'finish', capture %}" +
              "{% for lamp in found %}{% render 'line', lamp: lamp %}{% endfor %}" +
              '</ul><p>{{ query.by | join: "+" }}; {{ path }}; {{ lang }}; {{ user }}</p>',
            partials: { line: '<li>{{ lamp.name }}</li>' },
            data: { lamps },
            css: 'h1 { color: rgb(1, 2, 3) }',
            scripts: ['window.said = document.querySelectorAll("li").length'],
          },
          { lang: 'en' },
        ),
      ],
    });
    const tab = await openTab(t);
    const { page } = tab;
    const cases = [
      { finish: 'brass', found: ['Tern & Co', 'Heron'] },
      { finish: 'slate', found: ['Dunlin'] },
      { finish: 'gold', found: [] },
    ];
    for (const { finish, found } of cases) {
      const url = `${site.url}/lamps/${finish}?by=a&by=b`;
      assert.equal(await visitGeneric(tab, url), 'rendered');
      assert.equal(page.url(), url);
      assert.deepEqual(await page.locator('li').allInnerTexts(), found);
      assert.equal(await page.locator('p').innerText(), `a+b; /lamps/${finish}; en;`);
      const name = finish.replace(/^./, (first) => first.toUpperCase());
      assert.equal(await page.title(), `${name} & more`);
      assert.equal(await page.evaluate('said'), found.length);
    }
    await assertReadable(tab, 'the page');
    assert.equal(
      await page.evaluate('getComputedStyle(document.querySelector("h1")).color'),
      'rgb(1, 2, 3)',
    );
    assert.deepEqual(tab.troubles, []);
  });
});

suite('values that a template shows', () => {
  const cases = hostileValues;
  const rules = cases.map(({ template }, at) =>
    templated(`/${at}`, {
      template: `<h1>x</h1>{% assign v = query.v %}${template}<footer>end</footer>`,
    }),
  );
  const site = startSite({ after }, { rules });
  for (const [at, { what, value }] of cases.entries()) {
    test(`run no code: ${what}`, async (t) => {
      const { url } = await site;
      const tab = await openTab(t);
      const { page } = tab;
      const asked = `${url}/${at}?v=${encodeURIComponent(value)}`;
      assert.equal(await visitGeneric(tab, asked), 'rendered');
      const presses = page.getByText('press', { exact: true });
      for (const press of await presses.all()) await press.click();
      // The remaining form is sent to the page itself, which loads again.
      await page.waitForLoadState('load');
      assert.equal(await page.evaluate('window.hit'), undefined);
      assert.equal(await page.evaluate('document.baseURI'), page.url());
      const left =
        '#waymark :is(script, base, object, embed, [srcdoc], meta, [onclick], [onerror])';
      assert.equal(await page.locator(left).count(), 0);
    });
  }
});

suite('a template that cannot be rendered', () => {
  const html = '<h1>Instead</h1>';
  const long = 'x'.repeat(700_000);
  const cases: readonly (readonly [what: string, enginedata: Template])[] = [
    ['has a mistake', { template: '<h1>{{ x </h1>{% if %}', html }],
    ['asks for a filter that is not there', { template: "{{ 'x' | shout }}", html }],
    ['includes a partial that is not there', { template: "{% render 'other' %}", html }],
    ['includes what an object has of its own', { template: "{% include 'toString' %}", html }],
    ['includes from elsewhere', { template: "{% include 'http://127.0.0.1:9/a' %}", html }],
    [
      'includes itself',
      { template: "{% include 'a' %}", partials: { a: "{% include 'a' %}" }, html },
    ],
    ['never ends', { template: '{% for i in (1..999999999) %}{{ i }}{% endfor %}', html }],
    [
      'takes too long',
      {
        template: '{% for i in (1..9999) %}{% for j in (1..9999) %}{{ i }}{% endfor %}{% endfor %}',
        html,
      },
    ],
    [
      'grows without end',
      {
        template:
          '{% for i in (1..99) %}{% assign x = x | append: query.v | append: x %}{% endfor %}',
        html,
      },
    ],
  ];
  const rules = [
    ...cases.map(([, enginedata], at) => templated(`/${at}`, enginedata)),
    templated('/silent', { template: '{% if %}' }),
    templated('/large', {
      template: `<h1>Large</h1><p>${long}</p>`,
      data: { more: 'y'.repeat(9) },
    }),
    templated('/own', {
      template:
        '<h1>Own</h1><p>{{ data.constructor }}{{ data.__proto__ }}{{ query.constructor.name }}' +
        '{{ data.toString }}{{ constructor }}</p>',
      data: { a: 1 },
    }),
  ];
  const site = startSite({ after }, { rules });
  for (const [at, [what]] of cases.entries()) {
    test(`is replaced by the HTML of its rule: it ${what}`, async (t) => {
      const { url } = await site;
      const tab = await openTab(t);
      assert.equal(await visitGeneric(tab, `${url}/${at}?v=${'v'.repeat(1_000)}`), 'failed');
      assert.equal(await tab.page.locator('#waymark').innerText(), 'Instead');
      assert.ok(tab.troubles.every((trouble) => trouble.startsWith('error: ')));
    });
  }

  test('shows an error if its rule has no HTML; large templates and odd names are rendered', async (t) => {
    const { url } = await site;
    const tab = await openTab(t);
    const { page } = tab;
    assert.equal(await visitGeneric(tab, `${url}/large`), 'rendered');
    assert.equal((await page.locator('p').textContent())?.length, long.length);
    assert.equal(await visitGeneric(tab, `${url}/own`), 'rendered');
    assert.equal(await page.locator('p').innerText(), '');
    assert.deepEqual(tab.troubles, []);
    assert.equal(await visitGeneric(tab, `${url}/silent`), 'failed');
    assert.match(await page.getByRole('alert').innerText(), /could not load the engine “template”/);
  });
});

test('a template is rendered under the strictest Content-Security-Policy, with style and script', async (t) => {
  const policy = [
    `default-src 'none'; connect-src 'self'; style-src 'nonce-n0nce'; base-uri 'none'`,
    `script-src 'nonce-n0nce' 'strict-dynamic'`,
    `require-trusted-types-for 'script'; trusted-types waymark`,
  ].join('; ');
  const site = await startSite(t, {
    ini:
      '[disk.site]\nroot = site\n' + `[disk.site.headers]\nContent-Security-Policy = "${policy}"\n`,
    files: {
      'site/frame.html':
        '<!doctype html><html lang="en"><title>Frame</title><main id="waymark"></main>' +
        '<script defer src="/svc1/engine.js" nonce="n0nce"></script>',
      'site/one.js': 'window.said = ["one"]',
    },
    rules: [
      templated('/page', {
        page: '/frame.html',
        template: '<h1>{{ path }}</h1>',
        css: 'h1 { color: rgb(1, 2, 3) }',
        scripts: ['/one.js', 'said.push(getComputedStyle(document.querySelector("h1")).color)'],
      }),
    ],
  });
  const tab = await openTab(t);
  assert.equal(await visitGeneric(tab, `${site.url}/page`), 'rendered');
  assert.deepEqual(await tab.page.evaluate('said'), ['one', 'rgb(1, 2, 3)']);
  assert.deepEqual(tab.troubles, []);
});
