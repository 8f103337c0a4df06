import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { assertReadable, oneBrowser, visitGeneric } from './browser.ts';

const openTab = oneBrowser();
const hit = 'window.hit = true';

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
  const anchor = (attribute: string) => `<a ${attribute}>press</a>`;
  const cases: readonly {
    readonly what: string;
    readonly template: string;
    readonly value: string;
  }[] = [
    { what: 'a script', template: '{{ v }}', value: `<script>${hit}</script>` },
    { what: 'a handler', template: '{{ v }}', value: `<img src="data:," onerror="${hit}">` },
    { what: 'a raw script', template: '{{ v | raw }}', value: `<script>${hit}</script>` },
    { what: 'a raw handler', template: '{{ v | raw }}', value: `<img src=x: onerror="${hit}">` },
    { what: 'a raw SVG', template: '{{ v | raw }}', value: `<svg onload="${hit}"></svg>` },
    {
      what: 'a script in an SVG',
      template: '{{ v | raw }}',
      value: `<svg><script>${hit}</script></svg>`,
    },
    { what: 'another document', template: '{{ v | raw }}', value: '<iframe srcdoc="x"></iframe>' },
    {
      what: 'a document as data',
      template: '<iframe src="{{ v }}"></iframe>',
      value: 'data:text/html,x',
    },
    { what: 'the end of an attribute', template: anchor('title="{{ v }}"'), value: `" onclick="` },
    {
      what: 'an attribute without quotes',
      template: anchor('title={{ v }}'),
      value: `x onclick=${hit.replaceAll(' ', '')}`,
    },
    {
      what: 'code as an address',
      template: anchor('href="{{ v }}"'),
      value: `javascript:${hit}`,
    },
    {
      what: 'code behind blanks and in capitals',
      template: anchor('href="{{ v }}"'),
      value: ` \tJaVa\nScRiPt:${hit}`,
    },
    {
      what: 'code as an address in an SVG',
      template: '<svg width="90" height="30">{{ v | raw }}</svg>',
      value: `<a xlink:href="javascript:${hit}"><text y="20">press</text></a>`,
    },
    {
      what: 'an address that is changed later',
      template: '<svg width="90" height="30">{{ v | raw }}</svg>',
      value:
        `<a><animate attributeName="href" values="javascript:${hit}" dur="1s" ` +
        'repeatCount="indefinite"/><text y="20">press</text></a>',
    },
    {
      what: 'a button that sends elsewhere',
      template: '<form action="/no"><button formaction="{{ v }}">press</button></form>',
      value: `javascript:${hit}`,
    },
    {
      what: 'a form whose action is code',
      template: '<form action="{{ v }}"><button>press</button></form>',
      value: `javascript:${hit}`,
    },
    { what: 'another base', template: '{{ v | raw }}', value: '<base href="https://x.example/">' },
    {
      what: 'a way off the page',
      template: '{{ v | raw }}',
      value: '<meta http-equiv="refresh" content="0;url=/other">',
    },
    { what: 'more Liquid', template: '{{ v }}', value: "{{ 'x' | upcase }}" },
    {
      what: 'markup that is something else when it is read again',
      template: '{{ v | raw }}',
      value:
        '<math><mtext><table><mglyph><style><!--</style>' +
        `<img title="--&gt;&lt;img src=x: onerror=${hit.replaceAll(' ', '')}&gt;">`,
    },
  ];
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
      await page.waitForFunction('document.readyState === "complete"');
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
