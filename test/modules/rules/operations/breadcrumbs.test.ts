import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';
import { transports } from '../../status/transports.ts';

const rule = 'svc1.userinterface';
const phone =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1';
const shopCrumb = {
  path: 'shop',
  kind: 'resolve',
  enginedata: {
    target: '/shop/',
    forward_query: true,
    when: [
      { if: { before: '2020-01-01' }, html: '<h1>Not open yet</h1>', status: 403 },
      { if: { device: 'ios' }, target: 'https://apps.example/ios' },
      { if: { lang: 'de' }, target: '/laden/', status: 307 },
      { if: { query: { ref: 'mail' } }, target: '/post/' },
      { if: { user: '*' }, target: 'key:mine' },
    ],
  },
};
const mine = {
  path: 'mine',
  kind: 'resolve',
  enginedata: { target: '/login', when: [{ if: { user: 'ann' }, html: '<p>Ann</p>' }] },
};
const rules = [shopCrumb, mine, { ...shopCrumb, path: '/visit' }];

function follow(
  site: TestSite,
  headers: Readonly<Record<string, string>> = {},
  where = '/svc1/userinterface.link.htm?k=shop',
): Promise<Response> {
  return fetch(site.url + where, { redirect: 'manual', headers });
}

for (const where of [
  '/svc1/userinterface.link.htm?k=shop',
  '/svc1/userinterface/link.htm?k=shop',
  '/visit',
]) {
  suite(`a breadcrumb followed over HTTP, as ${where}`, () => {
    const landings: readonly (readonly [
      title: string,
      headers: Readonly<Record<string, string>>,
      status: number,
      location: string,
    ])[] = [
      ['by nobody in particular', {}, 302, '/shop/'],
      ['by a telephone', { 'user-agent': phone }, 302, 'https://apps.example/ios'],
      ['by a reader of German', { 'accept-language': 'de-CH, en;q=0.5' }, 307, '/laden/'],
      ['by somebody signed in', { 'x-user': 'eve' }, 302, '/login'],
      [
        'by a reader of German with a telephone, whose earlier branch counts',
        { 'accept-language': 'de', 'user-agent': phone },
        302,
        'https://apps.example/ios',
      ],
      [
        'by one who prefers pages to JSON',
        { accept: 'text/html, application/json;q=0.9' },
        302,
        '/shop/',
      ],
      ['by one who takes anything', { accept: '*/*' }, 302, '/shop/'],
    ];
    test('leads to the target that its conditions select', async (t) => {
      const site = await startSite(t, {
        rules,
        server: 'trust_proxy = 127.0.0.0/8, ::1',
        ini: '[auth]\nuser_header = X-User\n',
      });
      for (const [title, headers, status, location] of landings) {
        const reply = await follow(site, headers, where);
        assert.deepEqual([reply.status, reply.headers.get('location')], [status, location], title);
        assert.equal(reply.headers.get('cache-control'), 'private, no-store');
      }
      const html = await follow(site, { 'x-user': 'ann' }, where);
      assert.deepEqual([html.status, await html.text()], [200, '<p>Ann</p>']);
      const mail = await follow(site, {}, `${where}${where.includes('?') ? '&' : '?'}ref=mail`);
      assert.equal(mail.headers.get('location'), '/post/?ref=mail');
    });

    test('answers a client that prefers JSON as get_resolve does', async (t) => {
      const site = await startSite(t, { rules });
      for (const accept of ['application/json', 'application/json, text/html;q=0.5']) {
        const reply = await follow(site, { accept, 'user-agent': phone }, where);
        assert.equal(reply.status, 200);
        assert.equal(reply.headers.get('location'), null);
        assert.equal(reply.headers.get('cache-control'), 'private, no-store');
        const { r, data } = (await reply.json()) as Answer;
        assert.equal(r, `${rule}.get_resolve`);
        assert.deepEqual(
          [data.status, data.target, data.matched],
          [302, 'https://apps.example/ios', 'when[1]'],
        );
      }
    });

    test('names in Vary the request fields that selected the target', async (t) => {
      const site = await startSite(t, { rules });
      const reply = await follow(site, {}, where);
      assert.equal(
        reply.headers.get('vary'),
        'Accept, Accept-Language, Authorization, Cookie, Sec-CH-UA-Form-Factors, ' +
          'Sec-CH-UA-Mobile, Sec-CH-UA-Platform, User-Agent' +
          // Pages of other origins may call the operation, and not the page.
          (where === '/visit' ? '' : ', Origin'),
      );
    });
  });
}

test('a key that ends with * is that of the rule with this path', async (t) => {
  const crumb = (path: string, enginedata: object) => ({ path, kind: 'resolve', enginedata });
  const site = await startSite(t, {
    rules: [
      crumb('/go/*', { target: 'https://shop.example/all/*' }),
      crumb('/*', { target: '/elsewhere' }),
      crumb('all', { target: 'key:/go/*' }),
    ],
  });
  for (const k of ['/go/*', 'all']) {
    const link = await follow(site, {}, `/svc1/userinterface.link.htm?k=${k}`);
    assert.equal(link.headers.get('location'), 'https://shop.example/all/', k);
    const { data } = await site.call(`${rule}.explain`, { k });
    assert.equal(data.status, 302, k);
  }
  const visit = await follow(site, {}, '/go/lamps');
  assert.equal(visit.headers.get('location'), 'https://shop.example/all/lamps');
  const other = await follow(site, {}, '/svc1/userinterface.link.htm?k=/g*');
  assert.equal(other.headers.get('location'), '/elsewhere');
  assert.equal((await follow(site, {}, '/svc1/userinterface.link.htm?k=g*')).status, 404);
});

suite('a breadcrumb that fails', () => {
  test('gives a browser a page, and a program an envelope', async (t) => {
    const site = await startSite(t);
    const where = '/svc1/userinterface.link.htm?k=none';
    const page = await follow(site, { accept: 'text/html,*/*;q=0.8' }, where);
    assert.equal(page.status, 404);
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
    assert.match(await page.text(), /No breadcrumb has this key\./);
    const data = await follow(site, { accept: 'application/json' }, where);
    assert.equal(data.status, 404);
    assert.equal(((await data.json()) as Answer).error?.code, 'not_found');
  });
});

suite('a breadcrumb for a share of the visitors', () => {
  const crumb = {
    path: '/half',
    kind: 'resolve',
    enginedata: { target: '/a', when: [{ if: { percent: 50 }, target: '/b' }] },
  };
  test('keeps each visitor in its share, also if its address changes', async (t) => {
    const site = await startSite(t, {
      rules: [crumb],
      server: 'trust_proxy = 127.0.0.0/8, ::1',
    });
    const from = (at: number) => ({ 'x-forwarded-for': `192.0.2.${at}` });
    const landings = new Set<string | null>();
    for (let at = 0; at < 20; at += 1) {
      const first = await follow(site, from(at), '/half');
      const again = await follow(site, from(at), '/half');
      const location = first.headers.get('location');
      landings.add(location);
      assert.equal(again.headers.get('location'), location);
      const cookie = first.headers.get('set-cookie')?.split(';')[0] ?? '';
      assert.match(cookie, /^waymark_lot=[0-9a-f]{5}$/);
      const moved = await follow(site, { ...from(at + 100), cookie }, '/half');
      assert.equal(moved.headers.get('location'), location);
      assert.equal(moved.headers.get('set-cookie'), null);
      assert.match(moved.headers.get('vary') ?? '', /\bCookie\b/);
    }
    assert.deepEqual([...landings].toSorted(), ['/a', '/b']);
  });

  test('sets no cookie without a condition on shares, and none with get_resolve', async (t) => {
    const site = await startSite(t, { rules: [crumb, ...rules] });
    assert.equal((await follow(site)).headers.get('set-cookie'), null);
    const path = '/svc1/userinterface/get_resolve?_v.k=%2Fhalf';
    assert.equal((await follow(site, {}, path)).headers.get('set-cookie'), null);
  });
});

test('a browser that may be a tablet is asked for client hints', async (t) => {
  const site = await startSite(t, { rules });
  const hints = { 'sec-ch-ua-mobile': '?0', 'sec-ch-ua-platform': '"Linux"' };
  const { headers } = await follow(site, hints, '/visit');
  assert.equal(headers.get('accept-ch'), 'Sec-CH-UA-Form-Factors');
  assert.equal(headers.get('critical-ch'), 'Sec-CH-UA-Form-Factors');
  const told = await follow(site, { ...hints, 'sec-ch-ua-form-factors': '"Desktop"' }, '/visit');
  assert.equal(told.headers.get('critical-ch'), null);
  const plain = await follow(
    await startSite(t, { rules: [mine] }),
    hints,
    '/svc1/userinterface.link.htm?k=mine',
  );
  assert.equal(plain.headers.get('accept-ch'), null);
});

for (const [transport, open] of Object.entries(transports)) {
  suite(`breadcrumbs, over ${transport}`, () => {
    test('are resolved for another visitor', async (t) => {
      const site = await startSite(t, { rules });
      const call = await open(site);
      const cases: readonly (readonly [preview: object, target: string | undefined, string])[] = [
        [{}, '/shop/', 'default'],
        [{ device: 'ios' }, 'https://apps.example/ios', 'when[1]'],
        [{ device: ' mobile, ios ' }, 'https://apps.example/ios', 'when[1]'],
        [{ device: 'desktop' }, '/shop/', 'default'],
        [{ lang: 'de' }, '/laden/', 'when[2]'],
        [{ query: 'ref=mail' }, '/post/?ref=mail', 'when[3]'],
        [{ user: 'eve' }, '/login', 'default'],
        [{ user: 'ann' }, undefined, 'when[0]'],
        [{ at: '2019-12-31' }, undefined, 'when[0]'],
        [{ user: 'ann', lang: 'de' }, '/laden/', 'when[2]'],
        [{ user: null, device: null }, '/shop/', 'default'],
        [{ draw: 49.99 }, '/shop/', 'default'],
      ];
      for (const [preview, target, matched] of cases) {
        const { data } = await call(`${rule}.get_resolve`, { k: 'shop', ...preview });
        assert.deepEqual([data.target, data.matched], [target, matched], JSON.stringify(preview));
        const explained = await call(`${rule}.explain`, { k: 'shop', ...preview });
        assert.equal(explained.data.winner.id, data.id);
        assert.equal(explained.data.status, data.status);
        const last = explained.data.tried.at(-1).candidates[0].branches as {
          branch: string;
          lost?: object;
        }[];
        const taken = last.filter(({ lost }) => lost === undefined).map(({ branch }) => branch);
        assert.deepEqual(taken, [matched]);
      }
    });

    test('refuse an impossible visitor', async (t) => {
      const call = await open(await startSite(t, { rules }));
      const cases: readonly (readonly [preview: object, field: string])[] = [
        [{ device: 'fridge' }, 'device'],
        [{ country: 'Switzerland' }, 'country'],
        [{ ip: 'localhost' }, 'ip'],
        [{ at: 'tomorrow' }, 'at'],
        [{ role: 'editor' }, 'role'],
        [{ lang: 'de\nx' }, 'lang'],
      ];
      for (const [preview, field] of cases) {
        for (const name of ['get_resolve', 'explain']) {
          const { error } = await call(`${rule}.${name}`, { k: 'shop', ...preview });
          assert.deepEqual([error?.code, error?.field], ['invalid', field], `${name} ${field}`);
        }
      }
    });

    test('store conditions that are not valid, and name them', async (t) => {
      const call = await open(await startSite(t));
      const when = [
        { if: { country: 'Switzerland', weekday: 1 }, target: '/a' },
        { if: { lang: 'de' }, target: 'javascript:alert(1)' },
        { if: { lang: 'de' }, target: '/de' },
      ];
      const enginedata = { target: '/all', when };
      const { data } = await call(`${rule}.insert`, { path: 'k', kind: 'resolve', enginedata });
      assert.deepEqual(data.unknowns, [
        'enginedata.when[0].if.country',
        'enginedata.when[0].if.weekday',
        'enginedata.when[1].target',
      ]);
      assert.deepEqual(data.enginedata, enginedata);
      const { data: come } = await call(`${rule}.get_resolve`, { k: 'k', lang: 'de' });
      assert.deepEqual([come.target, come.matched], ['/de', 'when[2]']);
      const { data: edited } = await call(`${rule}.edit`, { id: data.id, rve: 1 });
      assert.deepEqual(edited.unknowns, []);
      const script = { target: 'javascript:alert(1)' };
      const refused = await call(`${rule}.edit`, { id: data.id, enginedata: script });
      assert.deepEqual(refused.data.unknowns, ['enginedata']);
      assert.deepEqual(refused.data.enginedata, { target: '/all' }, 'the target stays in force');
      assert.deepEqual(refused.data._unknowns_, { enginedata: script });
    });
  });
}

for (const [transport, open] of Object.entries(transports)) {
  test(`get_content resolves a breadcrumb with the header fields of its input, over ${transport}`, async (t) => {
    const site = await startSite(t, { rules });
    const call = await open(site);
    const place = { origin: site.url, path: '/visit' };
    const cases: readonly (readonly [headers: object, status: number])[] = [
      [{}, 302],
      [{ 'accept-language': 'de' }, 307],
    ];
    for (const [headers, status] of cases) {
      const { data, status: own } = await call(`${rule}.get_content`, { ...place, headers });
      assert.equal(data?.status ?? own, status);
    }
    const socket = await site.socket(site.adminKey);
    const asked = { ...place, headers: { 'user-agent': phone } };
    const { data } = await socket.call(`${rule}.get_content`, asked);
    assert.equal(data.headers.location, 'https://apps.example/ios');
  });

  test(`with as_of, conditions on time use that moment, over ${transport}`, async (t) => {
    const site = await startSite(t);
    const call = await open(site);
    const when = [{ if: { after: '2099-01-01' }, target: '/new' }];
    const enginedata = { target: '/old', when };
    const { data: crumb } = await call(`${rule}.insert`, {
      path: 'k',
      kind: 'resolve',
      enginedata,
    });
    const come = async (v: object) =>
      (await call(`${rule}.get_resolve`, { k: 'k', ...v })).data.target as string;
    assert.equal(await come({}), '/old');
    assert.equal(await come({ at: '2099-01-01' }), '/new');
    assert.equal(await come({ as_of: '2100-01-01T00:00:00Z' }), '/new');
    assert.equal(await come({ as_of: crumb.seq }), '/old');
    assert.equal(await come({ as_of: crumb.seq, at: '2099-01-01' }), '/new');
    const { data } = await call(`${rule}.explain`, { k: 'k', as_of: '2100-01-01T00:00:00Z' });
    assert.equal(data.notes[0], 'It leads to /new.');
  });
}

test('a query may start with ?, and must be valid in a URL', async (t) => {
  const site = await startSite(t, { rules });
  const socket = await site.socket();
  for (const [query, target] of [
    ['?ref=mail', '/post/?ref=mail'],
    ['ref=mail&n=a b', '/post/?ref=mail&n=a%20b'],
    ['?ref=mail&n=é', '/post/?ref=mail&n=%C3%A9'],
    ['?', '/shop/'],
  ] as const) {
    for (const op of ['get_resolve', 'link.htm']) {
      const { data } = await socket.call(`${rule}.${op}`, { k: 'shop', query });
      assert.equal(data?.target, target, `${op} ${query}`);
    }
    const { data } = await site.call(`${rule}.explain`, { k: 'shop', query });
    assert.equal(data.notes[0], `It leads to ${target}.`, query);
  }
  const { error } = await socket.call(`${rule}.get_resolve`, { k: 'shop', query: 'a#b' });
  assert.deepEqual([error?.code, error?.field], ['invalid', 'query']);
});

test('over a websocket, a breadcrumb is the answer of get_resolve', async (t) => {
  const site = await startSite(t, { rules });
  const socket = await site.socket();
  const { r, data } = await socket.call(`${rule}.link.htm`, { k: 'shop', query: 'ref=mail' });
  assert.equal(r, `${rule}.link.htm`);
  assert.deepEqual([data.status, data.target, data.matched], [302, '/post/?ref=mail', 'when[3]']);
});

test('a preview as another visitor needs the scope read', async (t) => {
  const site = await startSite(t, { rules });
  const ask = (apikey: string | undefined, v: object = { user: 'ann' }) =>
    site.call(`${rule}.get_resolve`, { k: 'shop', ...v }, { apikey });
  const { error } = await ask(undefined);
  assert.deepEqual([error?.code, error?.field], ['unauthenticated', 'user']);
  assert.equal((await ask(undefined, {})).data.target, '/shop/');
  const { data } = await site.call('svc1.key.insert', { name: 'r', scopes: ['render'] });
  assert.equal((await ask(data.key, { at: '2019-01-01' })).error?.code, 'forbidden');
});
