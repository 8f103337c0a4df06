import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';

const enginedata = {
  html: '<p>Everybody</p>',
  css: 'p { color: green }',
  parts: { greeting: 'Hello', price: 5 },
  when: [
    { if: { user: 'ann' }, enginedata: { html: '<p>Ann</p>', parts: { price: null } } },
    { if: { lang: 'de', place: 'shop-7' }, enginedata: { parts: { greeting: 'Grüezi' } } },
    { if: { caller: 'iframe' }, enginedata: { css: null } },
    { if: { weekday: 'monday' }, enginedata: { html: 'never' } },
    { if: { query: { ref: 'mail' } }, enginedata: { html: '<p>From the letter</p>' } },
  ],
};
const rules = [
  { path: '/offers', kind: 'content', engine: 'html', enginedata },
  { path: '/plain', kind: 'content', engine: 'html', enginedata: { html: '<p>Plain</p>' } },
];

function start(t: TestContext): Promise<TestSite> {
  return startSite(t, {
    ini: '[auth]\nuser_header = X-User\n[node]\nplace = shop-7\n',
    server: 'trust_proxy = 127.0.0.0/8',
    rules,
  });
}

function render(
  { url }: TestSite,
  headers: Readonly<Record<string, string>> = {},
  query = '',
): Promise<Response> {
  const where = `_v.origin=${encodeURIComponent(url)}&_v.path=/offers&_v.query=${query}`;
  return fetch(`${url}/svc1/userinterface/get_render?${where}`, { headers });
}

suite('a generic page whose enginedata varies by visitor', () => {
  test('is shown signed out to a page of another host of the server', async (t) => {
    const site = await start(t);
    const v = { origin: 'http://other.example', path: '/offers' };
    const shown = async (options: object): Promise<unknown> => {
      const { data } = await site.call('userinterface.get_render', v, options);
      return [data.enginedata.html, data.user];
    };
    const ann = ['<p>Ann</p>', { name: 'ann', roles: [] }];
    const headers = { 'x-user': 'ann' };
    assert.deepEqual(await shown({ apikey: undefined, headers }), ['<p>Everybody</p>', null]);
    // A page of that origin calls another host for its own sake; a key reads all pages anyway.
    const own = { ...headers, origin: v.origin };
    assert.deepEqual(await shown({ apikey: undefined, headers: own }), ann);
    assert.deepEqual(await shown({ headers }), ann);
    const seen = { path: '/user', content: 'x', headers: { 'X-Seen': '${user}' } };
    await site.call('userinterface.insert', seen);
    const asked = async (origin: string): Promise<string | null> => {
      const where = new URLSearchParams({ '_v.origin': origin, '_v.path': seen.path });
      const url = `${site.url}/svc1/userinterface/get_content?${where.toString()}`;
      return (await fetch(url, { headers })).headers.get('x-seen');
    };
    assert.deepEqual([await asked(site.url), await asked(v.origin)], ['ann', null]);
  });

  const visits: readonly (readonly [
    title: string,
    headers: Readonly<Record<string, string>>,
    query: string,
    shown: object,
  ])[] = [
    ['by nobody in particular', {}, '', {}],
    ['by a user', { 'x-user': 'ann' }, '', { html: '<p>Ann</p>', parts: { greeting: 'Hello' } }],
    [
      'by language and place',
      { 'accept-language': 'de-CH' },
      '',
      { parts: { greeting: 'Grüezi', price: 5 } },
    ],
    ['by its query', {}, 'ref%3Dmail', { html: '<p>From the letter</p>' }],
  ];
  for (const [title, headers, query, shown] of visits) {
    test(`is shown ${title}, without the conditions and what others see`, async (t) => {
      const { data } = (await (await render(await start(t), headers, query)).json()) as Answer;
      const { when: _when, ...rest } = enginedata;
      assert.deepEqual(data.enginedata, { ...rest, ...shown });
    });
  }

  test('can lose a member in a branch', async (t) => {
    const site = await start(t);
    const headers = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' };
    const { data } = (await (await render(site, headers)).json()) as Answer;
    assert.equal(Object.hasOwn(data.enginedata as object, 'css'), false);
  });

  test('is private, and names the request fields in Vary', async (t) => {
    const site = await start(t);
    const reply = await render(site);
    assert.equal(reply.headers.get('cache-control'), 'private, no-cache');
    const vary = reply.headers.get('vary')?.split(', ') ?? [];
    for (const name of ['Accept-Language', 'Authorization', 'Cookie', 'Sec-Fetch-Dest']) {
      assert.ok(vary.includes(name), name);
    }
    const etag = reply.headers.get('etag') ?? '';
    const again = await render(site, { 'if-none-match': etag });
    assert.equal(again.status, 304);
    const other = await render(site, { 'if-none-match': etag, 'x-user': 'ann' });
    assert.equal(other.status, 200);
  });

  test('hides other branches in get, too, and shows designers all of them', async (t) => {
    const site = await start(t);
    const v = { origin: site.url, path: '/offers' };
    const { data } = await site.call('userinterface.get', v, { apikey: undefined });
    assert.doesNotMatch(JSON.stringify(data), /when|Ann|letter/);
    const read = await site.call('userinterface.read', { id: data.id });
    assert.deepEqual(read.data.enginedata, enginedata);
  });

  test('reports the part of a branch that is not valid', async (t) => {
    const site = await start(t);
    const answer = await site.call('userinterface.insert', { ...rules[0], path: '/other' });
    assert.ok((answer.data.unknowns as string[]).includes('enginedata.when[3].if.weekday'));
  });

  test('is explained to every visitor as it is shown', async (t) => {
    const site = await start(t);
    const some = <T>(...values: readonly T[]) =>
      fc.option(fc.constantFrom(...values), { nil: undefined });
    const previews = fc.record({
      user: some('ann', 'eve'),
      lang: some('de', 'en, de;q=0.5'),
      place: some('shop-7', 'shop-8'),
      caller: some('navigation', 'iframe', 'api'),
      query: fc.constantFrom('', 'ref=mail', 'ref=x'),
    });
    await fc.assert(
      fc.asyncProperty(previews, async (preview) => {
        // JSON has no undefined members.
        const v = { origin: site.url, path: '/offers', ...preview, country: 'CH' };
        const shown = await site.call('userinterface.get_render', v);
        const explained = await site.call('userinterface.explain', v);
        const branches = (
          explained.data.tried as {
            candidates: { branches?: { branch: string; lost?: object }[] }[];
          }[]
        ).flatMap(({ candidates }) => candidates.flatMap((one) => one.branches ?? []));
        const taken = branches.filter(({ lost }) => lost === undefined).map(({ branch }) => branch);
        assert.deepEqual(taken, [shown.data.matched]);
      }),
      { numRuns: 60 },
    );
  });

  test('has one answer for all visitors if its rule has no branches', async (t) => {
    const site = await start(t);
    const v = { origin: site.url, path: '/plain', query: { a: ['1', '2'], b: 'x' } };
    const { data } = await site.call('userinterface.get_render', v, { apikey: undefined });
    assert.deepEqual(data.query, { a: ['1', '2'], b: 'x' });
    assert.equal(data.meta, null);
    const again = { ...v, query: data.query as object };
    assert.deepEqual((await site.call('userinterface.get_render', again)).data.query, data.query);
  });
});
