import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { type Answer, type TestSite, startSite } from '../../../harness.ts';

const rule = 'svc1.userinterface';

const page = (origin: string, path = '/a', more: object = {}): object => ({
  ...{ origin, path, kind: 'content', content: origin, contenttype: 'text/plain', ...more },
});

function start(t: TestContext, more: Parameters<typeof startSite>[1] = {}): Promise<TestSite> {
  return startSite(t, { server: 'trust_proxy = 127.0.0.0/8', ...more });
}

/** A GET as a visitor of an origin. */
function visit({ url }: TestSite, origin: string, path = '/a'): Promise<Response> {
  const { protocol, host } = new URL(origin);
  return fetch(url + path, {
    redirect: 'manual',
    headers: { 'x-forwarded-proto': protocol.slice(0, -1), 'x-forwarded-host': host },
  });
}

/** In the order of precedence for `https://a.b.example.com`. */
const order = [
  'https://a.b.example.com',
  'https://*.b.example.com',
  'https://*.example.com',
  'https://*.com',
  '*',
] as const;

const transports: readonly (readonly [
  string,
  (t: TestContext, site: TestSite) => Promise<(a: string, v: object) => Promise<Answer>>,
])[] = [
  ['HTTP', (_t, site) => Promise.resolve((a, v) => site.call(a, v))],
  [
    'the websocket',
    async (_t, site) => {
      const socket = await site.socket(site.adminKey);
      return (a, v) => socket.call(a, v);
    },
  ],
];

suite('a page rule for all subdomains of a host', () => {
  for (const [title, open] of transports) {
    test(`has its place in the precedence, over ${title}`, async (t) => {
      const site = await start(t, {
        rules: order.toReversed().map((origin, at) => page(origin, at % 2 === 0 ? '/a' : '/*')),
      });
      const call = await open(t, site);
      const { data: listed } = await call(`${rule}.list`, {});
      const ids = new Map<string, string>(
        listed.rows.map((row: { origin: string; id: string }) => [row.origin, row.id]),
      );
      for (const [at, origin] of order.entries()) {
        const [asked] = order;
        assert.equal(await (await visit(site, asked)).text(), origin);
        const { data } = await call(`${rule}.explain`, { url: `${asked}/a` });
        assert.equal(data.winner.id, ids.get(origin));
        const [stored] = data.tried.filter(({ source }: { source: string }) => source === 'stored');
        assert.deepEqual(
          stored.candidates.map((one: { origin: string }) => one.origin),
          order.slice(at),
        );
        const { data: got } = await call(`${rule}.get`, { origin: asked, path: '/a' });
        assert.equal(got.origin, origin);
        const { data: undone } = await call(`${rule}.invalidate`, { id: ids.get(origin) });
        await call(`${rule}.invalidate`, { id: ids.get(origin), confirm: undone.digest });
      }
      assert.equal((await visit(site, order[0])).status, 404);
    });

    test(`covers every depth, and no other scheme, port or host, over ${title}`, async (t) => {
      const site = await start(t);
      const call = await open(t, site);
      // A site without such a rule knows that it has none: its answers must not outlast that.
      assert.equal((await visit(site, 'https://a.example.com')).status, 404);
      const { data } = await call(`${rule}.insert`, page('HTTPS://*.Example.com:443'));
      assert.equal(data.origin, 'https://*.example.com');
      assert.deepEqual(data.problems ?? [], []);
      const statuses: readonly (readonly [string, number])[] = [
        ['https://a.example.com', 200],
        ['https://a.b.example.com', 200],
        ['https://example.com', 404],
        ['https://badexample.com', 404],
        ['http://a.example.com', 404],
        ['https://a.example.com:8443', 404],
      ];
      for (const [origin, status] of statuses) {
        assert.equal((await visit(site, origin)).status, status, origin);
        const got = await call(`${rule}.get_content`, { origin, path: '/a' });
        const isMissing = got.error?.code === 'not_found' || got.data?.status === 404;
        assert.equal(isMissing || got.status === 404, status === 404, origin);
      }
      const refused = await call(`${rule}.get`, { origin: 'https://*.example.com', path: '/a' });
      assert.deepEqual([refused.error?.code, refused.error?.field], ['invalid', 'origin']);
      const bad = await call(`${rule}.insert`, page('https://a.*.example.com', '/b'));
      assert.equal(bad.data.problems[0].field, 'origin');
    });

    test(`is in lists, the tree, the past and drafts, over ${title}`, async (t) => {
      const origin = 'https://*.example.com';
      const site = await start(t, {
        rules: [page(origin, '/shop/*/edit'), page('*', '/x'), page('https://z.example', '/z')],
      });
      const call = await open(t, site);
      const paths = async (v: object): Promise<readonly string[]> =>
        (await call(`${rule}.list`, v)).data.rows.map((row: { path: string }) => row.path);
      assert.deepEqual(await paths({ origin }), ['/shop/*/edit']);
      assert.deepEqual(await paths({ origin, path: '/shop', sort: 'path' }), ['/shop/*/edit']);
      assert.deepEqual(await paths({ origin: 'https://a.example.com' }), []);
      assert.deepEqual((await call(`${rule}.tree`, {})).data.origins, [
        '*',
        origin,
        'https://z.example',
      ]);
      const where = { origin: 'https://a.example.com', path: '/shop/7/edit' };
      const { data: found } = await call(`${rule}.get`, where);
      assert.equal(found.capture, '7');
      await call(`${rule}.edit`, { id: found.id, origin: 'https://*.example.org' });
      assert.equal((await call(`${rule}.get`, where)).error?.code, 'not_found');
      const past = await call(`${rule}.get`, { ...where, as_of: String(found.seq) });
      assert.equal(past.data.id, found.id);
      await call('svc1.draft.insert', { name: 'new' });
      await site.call(`${rule}.insert`, page(origin, '/new'), { draft: 'new' });
      const inDraft = { origin: 'https://a.example.com', path: '/new' };
      assert.equal((await call(`${rule}.get`, inDraft)).error?.code, 'not_found');
      assert.equal((await site.call(`${rule}.get`, inDraft, { draft: 'new' })).data.origin, origin);
    });

    test(`leads its breadcrumbs at each of its sites, over ${title}`, async (t) => {
      const origin = 'https://*.example.com';
      const crumb = (path: string, target: string): object => ({
        ...{ origin, path, kind: 'resolve', enginedata: { target } },
      });
      const site = await start(t, {
        rules: [crumb('summer', 'https://{host}/offers'), crumb('/go', 'key:summer')],
      });
      const call = await open(t, site);
      const at = { origin: 'https://a.example.com' };
      const resolve = async (v: object): Promise<string | undefined> => {
        const { data } = await call(`${rule}.get_resolve`, v);
        return data?.target;
      };
      assert.equal(await resolve({ k: 'summer', ...at }), 'https://a.example.com/offers');
      assert.equal(await resolve({ k: '/go', ...at }), 'https://a.example.com/offers');
      assert.equal(await resolve({ k: 'summer', origin: 'https://example.com' }), undefined);
      const reply = await visit(site, at.origin, '/go');
      assert.equal(reply.headers.get('location'), 'https://a.example.com/offers');
    });

    test(`belongs to a key that is bound to all of its sites, over ${title}`, async (t) => {
      const site = await start(t, { rules: [page('https://*.example.com')] });
      const call = await open(t, site);
      const bound = async (origin: string): Promise<string> => {
        const v = { name: 'bound', scopes: ['design', 'read', 'render'], origins: [origin] };
        return (await call('svc1.key.insert', v)).data.key;
      };
      const one = await bound('https://a.example.com');
      const all = await bound('https://*.Example.com');
      const insert = async (apikey: string, origin: string): Promise<string | undefined> =>
        (await site.call(`${rule}.insert`, page(origin, '/b'), { apikey })).error?.code;
      assert.equal(await insert(one, 'https://*.example.com'), 'forbidden');
      assert.equal(await insert(one, 'https://a.example.com'), undefined);
      assert.equal(await insert(all, '*'), 'forbidden');
      assert.equal(await insert(all, 'https://*.com'), 'forbidden');
      assert.equal(await insert(all, 'https://example.com'), 'forbidden');
      assert.equal(await insert(all, 'https://*.example.com'), undefined);
      assert.equal(await insert(all, 'https://*.shop.example.com'), undefined);
      const where = { origin: 'https://a.example.com', path: '/a' };
      const get = (apikey: string): Promise<Answer> => site.call(`${rule}.get`, where, { apikey });
      assert.equal((await get(one)).error?.code, 'not_found');
      assert.equal((await get(all)).data.origin, 'https://*.example.com');
      const { data: tree } = await site.call(`${rule}.tree`, {}, { apikey: all });
      assert.deepEqual(tree.origins, [
        'https://*.example.com',
        'https://*.shop.example.com',
        'https://a.example.com',
      ]);
      const { data: mine } = await site.call(`${rule}.list`, {}, { apikey: one });
      assert.deepEqual(
        mine.rows.map((row: { origin: string }) => row.origin),
        ['https://a.example.com'],
      );
    });
  }
});

suite('a section of the ini file for all subdomains of a host', () => {
  const ini = `
[disk.all]
root = site
[disk.sub]
origin = https://*.example.com
root = sub
[disk.one]
origin = https://one.example.com
root = one
[redirect.sub]
origin = https://*.example.com
path = /old/*
to = /new/{splat}
[redirect.lines]
origin = https://*.example.com
path = /*
file = lines.txt
[rewrite.sub]
origin = https://*.example.com
match = ^/nice$
to = /file.txt
[headers.sub]
origin = https://*.example.com
path = /*
X-Sub = yes
[access.sub]
origin = https://*.example.com
path = /closed/*
allow = 10.0.0.0/8
[rate.sub]
origin = https://*.example.com
path = /rare
rate = 1/h
status = 503
[proxy.sub]
origin = https://*.example.com
path = /app/
source = http://127.0.0.1:1
`;
  const files = {
    'site/file.txt': 'site',
    'site/index.html': 'site',
    'sub/file.txt': 'sub',
    'sub/closed/index.html': 'closed',
    'sub/rare': 'rare',
    'one/file.txt': 'one',
    'lines.txt': '/line https://example.com/there 301\n',
  };
  const outside = ['https://example.com', 'http://a.example.com', 'https://a.example.org'];

  test('holds at each of them, and nowhere else', async (t) => {
    const site = await start(t, { ini, files });
    const at = (origin: string, path: string): Promise<Response> => visit(site, origin, path);
    for (const origin of ['https://a.example.com', 'https://a.b.example.com']) {
      assert.equal(await (await at(origin, '/file.txt')).text(), 'sub');
      assert.equal(await (await at(origin, '/nice')).text(), 'sub');
      const file = await at(origin, '/file.txt');
      assert.equal(file.headers.get('x-sub'), 'yes');
      assert.equal((await at(origin, '/old/x')).headers.get('location'), '/new/x');
      const line = (await at(origin, '/line')).headers.get('location');
      assert.equal(line, 'https://example.com/there');
      assert.equal((await at(origin, '/closed/')).status, 403);
      assert.equal((await at(origin, '/app/x')).status, 502);
    }
    assert.equal(await (await at('https://one.example.com', '/file.txt')).text(), 'one');
    assert.equal((await at('https://a.example.com', '/rare')).status, 200);
    assert.equal((await at('https://a.example.com', '/rare')).status, 503);
    for (const origin of outside) {
      const file = await at(origin, '/file.txt');
      assert.equal(await file.text(), 'site', origin);
      assert.equal(file.headers.get('x-sub'), null, origin);
      for (const path of ['/nice', '/old/x', '/line', '/app/x']) {
        assert.equal((await at(origin, path)).status, 404, origin + path);
      }
    }
    const { data } = await site.call('svc1.userinterface.explain', {
      url: 'https://a.example.com/file.txt',
    });
    assert.equal(data.winner.mount, 'sub');
    assert.doesNotMatch(data.notes.join(' '), /does not name/);
  });

  test('takes no other form', async (t) => {
    for (const origin of ['https://*', 'https://a.*.example.com', '*.example.com']) {
      await assert.rejects(
        start(t, { ini: `[headers.sub]\norigin = ${origin}\npath = /*\nX-Sub = yes\n` }),
        /write an origin such as `https:\/\/www\.example\.com` or `https:\/\/\*\.example\.com`/,
      );
    }
  });
});
