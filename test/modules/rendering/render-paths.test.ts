import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { type Answer, type TestSite, startSite } from '../../harness.ts';

const part = (path: string, html: string, more: object = {}): object => ({
  path,
  kind: 'content',
  engine: 'html',
  enginedata: { html },
  ...more,
});

const rules = [
  part('/head', '<h1>Shop</h1>'),
  part('/menu', '<nav>Menu</nav>', {
    enginedata: { html: 'all', when: [{ if: { lang: 'de' }, enginedata: { html: 'deutsch' } }] },
  }),
  part('/foot/*', '<p>Foot</p>'),
  part('/staff/news', '<p>Secret</p>'),
  part('/rare', '<p>Rare</p>'),
];

const ini = `
[access.staff]
path = /staff/*
allow = 10.0.0.0/8
[rate.rare]
path = /rare
rate = 2/h
[rate.render]
path = /svc1/userinterface/get_render
rate = 1000/h
by = field:X-Limited
`;

function start(t: TestContext, more: Parameters<typeof startSite>[1] = {}): Promise<TestSite> {
  return startSite(t, { ini, rules, ...more });
}

type Render = (
  v: { readonly paths: readonly string[] } & Readonly<Record<string, unknown>>,
) => Promise<Answer>;

/** The ways of a visitor without a key to ask for several pages. */
const transports: readonly (readonly [
  string,
  (t: TestContext, site: TestSite) => Promise<Render>,
])[] = [
  [
    'a GET',
    (_t, { url }) =>
      Promise.resolve(async ({ paths, ...v }) => {
        const query = new URLSearchParams(paths.map((one) => ['_v.paths', one]));
        for (const [name, value] of Object.entries(v)) query.append(`_v.${name}`, String(value));
        const reply = await fetch(`${url}/svc1/userinterface/get_render?${query.toString()}`);
        return (await reply.json()) as Answer;
      }),
  ],
  [
    'a POST',
    (_t, site) =>
      Promise.resolve((v) => site.call('svc1.userinterface.get_render', v, { apikey: undefined })),
  ],
  [
    'the websocket',
    async (_t, site) => {
      const socket = await site.socket();
      return (v) => socket.call('svc1.userinterface.get_render', v);
    },
  ],
];

const codes = ({ data }: Answer): readonly string[] =>
  data.pages.map(({ error }: Answer) => error?.code ?? 'ok');

suite('several pages in one call of get_render', () => {
  for (const [title, open] of transports) {
    test(`have their data or their error, in their order, over ${title}`, async (t) => {
      const site = await start(t);
      const render = await open(t, site);
      const paths = [
        ...['/foot/a?x=1', '/none', '/head', '/staff/news', '/../x', '/head'],
        ...['/svc1/docs', '/menu'],
      ];
      const answer = await render({ origin: site.url, paths });
      assert.deepEqual(
        answer.data.pages.map(({ path }: { path: string }) => path),
        paths,
      );
      assert.deepEqual(codes(answer), [
        ...['ok', 'not_found', 'ok', 'forbidden', 'invalid', 'ok', 'not_found', 'ok'],
      ]);
      const [foot, none, head] = answer.data.pages;
      assert.equal(foot.data.capture, 'a');
      assert.deepEqual(foot.data.query, { x: '1' });
      assert.equal(none.data, undefined);
      assert.match(none.error.message, /\/none/);
      assert.equal(answer.data.pages[4].error.field, 'path');
      const alone = await site.call(
        'svc1.userinterface.get_render',
        { origin: site.url, path: '/head' },
        { apikey: undefined },
      );
      assert.deepEqual(head.data, alone.data);
      assert.doesNotMatch(JSON.stringify(answer), /Secret|deutsch/);
    });

    test(`count for the rate of each path as if asked alone, over ${title}`, async (t) => {
      const site = await start(t);
      const render = await open(t, site);
      const answer = await render({
        origin: site.url,
        paths: ['/rare', '/head', '/rare', '/rare'],
      });
      assert.deepEqual(codes(answer), ['ok', 'ok', 'ok', 'rate_limited']);
      assert.ok(answer.data.pages[3].error.retry_after >= 1);
      const visit = await fetch(`${site.url}/rare`);
      assert.equal(visit.status, 429);
    });
  }

  test('count for the rate of the operation, and of the key, as calls do', async (t) => {
    const site = await start(t, {
      ini: '[rate.calls]\npath = /svc1/userinterface/get_render\nrate = 3/h\n',
    });
    const render = (paths: readonly string[], apikey?: string): Promise<Answer> =>
      site.call('svc1.userinterface.get_render', { origin: site.url, paths }, { apikey });
    const answer = await render(['/head', '/head', '/head', '/head']);
    assert.deepEqual(codes(answer), ['ok', 'ok', 'ok', 'rate_limited']);
    assert.equal((await render(['/head'])).status, 429);

    const limited = await startSite(t, { rules });
    const { data } = await limited.call('svc1.key.insert', {
      name: 'pages',
      scopes: ['render'],
      rate: 2,
    });
    const asked = await limited.call(
      'svc1.userinterface.get_render',
      { origin: limited.url, paths: ['/head', '/head', '/head'] },
      { apikey: data.key },
    );
    assert.deepEqual(codes(asked), ['ok', 'ok', 'rate_limited']);
  });

  test('of a bound key outside of its bounds fail alone', async (t) => {
    const site = await start(t);
    const { data } = await site.call('svc1.key.insert', {
      name: 'foot',
      scopes: ['read', 'render'],
      paths: ['/foot/'],
    });
    const answer = await site.call(
      'svc1.userinterface.get_render',
      { origin: site.url, paths: ['/foot/a', '/head'] },
      { apikey: data.key },
    );
    assert.deepEqual(codes(answer), ['ok', 'forbidden']);
  });

  test('that are too large together are named, and what fits is there', async (t) => {
    const text = 'x'.repeat(900_000);
    const large = ['/a', '/b', '/c', '/d', '/e'].map((path) => part(path, text));
    const site = await startSite(t, { rules: [...large, part('/small', 'small')] });
    const paths = ['/a', '/b', '/c', '/d', '/e', '/small'];
    const render = (v: object) => site.call('svc1.userinterface.get_render', v);
    const answer = await render({ origin: site.url, paths });
    assert.deepEqual(codes(answer), ['ok', 'ok', 'ok', 'ok', 'too_large', 'ok']);
    const alone = await render({ origin: site.url, path: '/e' });
    assert.equal(alone.data.enginedata.html, text);
    assert.deepEqual(answer.data.pages[3].data.enginedata.html, text);
    const many = Array.from({ length: 20 }, () => '/a');
    const again = await render({ origin: site.url, paths: [...many, '/small'] });
    assert.equal(codes(again).at(-1), 'too_large', 'what comes after so many is no longer made');
  });

  test('are one answer for caches: with an ETag, and private if one of them is', async (t) => {
    const site = await start(t);
    const ask = (paths: readonly string[], fields: Record<string, string> = {}) => {
      const query = new URLSearchParams([['_v.origin', site.url]]);
      for (const one of paths) query.append('_v.paths', one);
      return fetch(`${site.url}/svc1/userinterface/get_render?${query.toString()}`, {
        headers: fields,
      });
    };
    const first = await ask(['/head', '/foot/a']);
    const etag = first.headers.get('etag') ?? '';
    assert.equal((await ask(['/head', '/foot/a'], { 'if-none-match': etag })).status, 304);
    await site.call('svc1.userinterface.insert', { ...part('/foot/a', 'new') });
    assert.equal((await ask(['/head', '/foot/a'], { 'if-none-match': etag })).status, 200);

    const varied = await ask(['/head', '/menu'], { 'accept-language': 'de' });
    assert.match(varied.headers.get('vary') ?? '', /Accept-Language/);
    assert.match(varied.headers.get('cache-control') ?? '', /private/);
    const { data } = (await varied.json()) as Answer;
    assert.equal(data.pages[1].data.enginedata.html, 'deutsch');
    const failing = await ask(['/head', '/staff/news']);
    assert.match(failing.headers.get('cache-control') ?? '', /private/);
  });

  const refused: readonly (readonly [title: string, v: object, code: string, field: string])[] = [
    ['none', { paths: [] }, 'invalid', 'paths'],
    ['more than 100', { paths: Array.from({ length: 101 }, () => '/head') }, 'invalid', 'paths'],
    ['one and several', { path: '/head', paths: ['/head'] }, 'invalid', 'paths'],
    ['no path at all', {}, 'invalid', 'path'],
    ['no text', { paths: [{ a: 1 }] }, 'invalid', 'paths'],
    ['a bad origin', { origin: 'shop', paths: ['/head'] }, 'invalid', 'origin'],
    ['a moment', { paths: ['/head'], as_of: '1' }, 'unauthenticated', 'as_of'],
    ['another visitor', { paths: ['/head'], lang: 'de' }, 'unauthenticated', 'lang'],
  ];
  for (const [title, v, code, field] of refused) {
    test(`are refused as a whole: ${title}`, async (t) => {
      const site = await start(t);
      const { error } = await site.call(
        'svc1.userinterface.get_render',
        { origin: site.url, ...v },
        { apikey: undefined },
      );
      assert.equal(error?.code, code);
      assert.equal(error.field?.split('.')[0], field);
    });
  }
});
