import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { suite, test, type TestContext } from 'node:test';
import { type Answer, type TestSite, startSite } from '../../../harness.ts';

const rule = 'svc1.userinterface';

const page = (path: string, content: string, more: object = {}): object => ({
  path,
  kind: 'content',
  content,
  ...more,
});

/** In the order of precedence for `/shop/a/edit`. */
const order = [
  '/shop/a/edit',
  '/shop/a/*',
  '/shop/a*',
  '/shop/*/edit',
  '/shop/*',
  '/*/a/edit',
  '/*',
] as const;

/** The calls of an operation over HTTP and over the websocket. */
const transports: readonly (readonly [
  string,
  (t: TestContext, site: TestSite) => Promise<(a: string, v: object) => Promise<Answer>>,
])[] = [
  ['HTTP', (_t, site) => Promise.resolve((a, v) => site.call(a, v))],
  [
    'the websocket',
    async (t, site) => {
      const socket = await site.socket(site.adminKey);
      t.after(() => {
        socket.websocket.close();
      });
      return (a, v) => socket.call(a, v);
    },
  ],
];

suite('a page rule with a * for one segment', () => {
  for (const [title, open] of transports) {
    test(`has its place in the precedence, over ${title}`, async (t) => {
      const site = await startSite(t, {
        rules: order.toReversed().map((path) => page(path, path)),
      });
      const call = await open(t, site);
      const { data: listed } = await call(`${rule}.list`, {});
      const ids = new Map<string, string>(
        listed.rows.map((row: { path: string; id: string }) => [row.path, row.id]),
      );
      for (const [at, path] of order.entries()) {
        assert.equal(await (await fetch(`${site.url}/shop/a/edit`)).text(), path);
        const { data } = await call(`${rule}.explain`, { url: `${site.url}/shop/a/edit` });
        assert.equal(data.winner.id, ids.get(path));
        const [stored] = data.tried.filter(({ source }: { source: string }) => source === 'stored');
        assert.deepEqual(
          stored.candidates.map((one: { path: string }) => one.path),
          order.slice(at),
        );
        const { data: undone } = await call(`${rule}.invalidate`, { id: ids.get(path) });
        await call(`${rule}.invalidate`, { id: ids.get(path), confirm: undone.digest });
      }
      assert.equal((await fetch(`${site.url}/shop/a/edit`)).status, 404);
    });

    test(`tells what * stood for, over ${title}`, async (t) => {
      const site = await startSite(t, {
        rules: [
          page('/shop/*/edit', '', {
            content: null,
            engine: 'template',
            enginedata: { template: 'Edit {{ capture }}', render: 'server' },
          }),
          {
            path: '/old/*/edit',
            kind: 'resolve',
            enginedata: { target: '/shop/{splat}/edit?was={path}', when: [] },
          },
          { path: '/go/*/x', kind: 'resolve', enginedata: { target: 'https://a.example/*' } },
        ],
      });
      const call = await open(t, site);
      const render = (path: string): Promise<Answer> =>
        call(`${rule}.get_render`, { origin: site.url, path });
      assert.equal((await render('/shop/red%20chair/edit')).data.capture, 'red chair');
      assert.equal((await render('/shop/a%2Fb/edit')).data.capture, 'a%2Fb');
      for (const path of ['/shop/a/b/edit', '/shop//edit', '/shop/edit', '/shop/a/edit/']) {
        assert.equal((await render(path)).error?.code, 'not_found', path);
      }
      const html = await (await fetch(`${site.url}/shop/chair/edit`)).text();
      assert.match(html, /Edit chair/);
      const { data } = await call(`${rule}.get`, { origin: site.url, path: '/shop/x/edit' });
      assert.deepEqual([data.path, data.capture], ['/shop/*/edit', 'x']);
      const resolve = async (k: string): Promise<string> =>
        (await call(`${rule}.get_resolve`, { k })).data.target;
      assert.equal(await resolve('/old/a b/edit'), '/shop/a%20b/edit?was=%2Fold%2Fa%20b%2Fedit');
      assert.equal(await resolve('/go/q/x'), 'https://a.example/q');
      const visit = await fetch(`${site.url}/old/7/edit`, { redirect: 'manual' });
      assert.match(visit.headers.get('location') ?? '', /^\/shop\/7\/edit/);
    });

    test(`is in lists, the tree, the past and drafts, over ${title}`, async (t) => {
      const site = await startSite(t, {
        rules: [page('/shop/b', 'b'), page('/shop/*/edit', 'star'), page('/a', 'a')],
      });
      const call = await open(t, site);
      const paths = async (v: object): Promise<readonly string[]> =>
        (await call(`${rule}.list`, v)).data.rows.map((row: { path: string }) => row.path);
      assert.deepEqual(await paths({ sort: 'path' }), ['/a', '/shop/*/edit', '/shop/b']);
      assert.deepEqual(await paths({ sort: '-path' }), ['/shop/b', '/shop/*/edit', '/a']);
      const shop = { origin: '*', path: '/shop/', sort: 'path' };
      assert.deepEqual(await paths(shop), ['/shop/*/edit', '/shop/b']);
      const { data: first } = await call(`${rule}.list`, { ...shop, limit: 1 });
      assert.deepEqual(await paths({ ...shop, after: first.next }), ['/shop/b']);
      const names = async (path: string): Promise<readonly string[]> =>
        (await call(`${rule}.tree`, { origin: '*', path })).data.rows.map(
          ({ name }: { name: string }) => name,
        );
      assert.deepEqual(await names('/'), ['a', 'shop/']);
      assert.deepEqual(await names('/shop/'), ['*/', 'b']);
      assert.deepEqual(await names('/shop/*/'), ['edit']);
      assert.deepEqual((await call(`${rule}.tree`, {})).data.origins, ['*']);

      const { data } = await call(`${rule}.list`, { path: '/shop/*' });
      const [{ id, seq }] = data.rows;
      await call(`${rule}.edit`, { id, path: '/shop/*/view' });
      assert.equal((await fetch(`${site.url}/shop/x/edit`)).status, 404);
      assert.equal(await (await fetch(`${site.url}/shop/x/view`)).text(), 'star');
      const past = { origin: site.url, path: '/shop/x/edit', as_of: String(seq) };
      assert.equal((await call(`${rule}.get`, past)).data.id, id);

      await call('svc1.draft.insert', { name: 'new' });
      const drafted = page('/new/*/edit', 'drafted', { draft: undefined });
      await site.call(`${rule}.insert`, drafted, { draft: 'new' });
      const where = { origin: site.url, path: '/new/1/edit' };
      assert.equal((await call(`${rule}.get`, where)).error?.code, 'not_found');
      const inDraft = await site.call(`${rule}.get`, where, { draft: 'new' });
      assert.equal(inDraft.data.capture, '1');
      const { data: report } = await call('svc1.draft.publish', { draft: 'new' });
      await call('svc1.draft.publish', { draft: 'new', confirm: report.digest });
      assert.equal((await call(`${rule}.get`, where)).data.content, 'drafted');
    });

    test(`belongs to a key that is bound to the paths before its *, over ${title}`, async (t) => {
      const site = await startSite(t, { rules: [page('/shop/*/edit', 'star')] });
      const call = await open(t, site);
      const bound = async (path: string): Promise<string> => {
        const v = { name: 'bound', scopes: ['design', 'read', 'render'], paths: [path] };
        return (await call('svc1.key.insert', v)).data.key;
      };
      const insert = async (apikey: string, path: string): Promise<string | undefined> =>
        (await site.call(`${rule}.insert`, page(path, 'own'), { apikey })).error?.code;
      const shop = await bound('/shop/');
      const chairs = await bound('/shop/chairs/');
      assert.equal(await insert(shop, '/shop/*/view'), undefined);
      assert.equal(await insert(shop, '/*/chairs/view'), 'forbidden');
      assert.equal(await insert(chairs, '/shop/*/view'), 'forbidden');
      assert.equal(await insert(chairs, '/shop/chairs/*/view'), undefined);
      const get = async (apikey: string): Promise<Answer> =>
        site.call(`${rule}.get`, { origin: site.url, path: '/shop/chairs/edit' }, { apikey });
      assert.equal((await get(shop)).data.content, 'star');
      assert.equal((await get(chairs)).error?.code, 'not_found');
      const { data } = await site.call(`${rule}.list`, {}, { apikey: chairs });
      assert.deepEqual(
        data.rows.map((row: { path: string }) => row.path),
        ['/shop/chairs/*/view'],
      );
    });
  }

  const refused = [
    '/a*b',
    '/a/b*/c',
    '/a/*b/c',
    '/a/*/b*',
    '/a/*/*',
    '/*/*/a',
    `/*${'/a'.repeat(32)}`,
  ];
  test('stands for a whole segment, once', async (t) => {
    const site = await startSite(t);
    for (const path of refused) {
      const { error } = await site.call(`${rule}.insert`, page(path, 'x'));
      assert.deepEqual([error?.code, error?.field], ['invalid', 'path'], path);
      assert.match(error?.message ?? '', /segment/);
    }
    const long = await site.call(`${rule}.insert`, page(`/*/${'a'.repeat(1_100)}`, 'x'));
    assert.equal(long.error?.code, 'too_large');
  });

  test('is told what hides it, and follows its changes', async (t) => {
    const site = await startSite(t, { rules: [page('/shop/*/edit', 'one')] });
    const { data } = await site.call(`${rule}.insert`, page('/shop/*/edit', 'two'));
    assert.deepEqual(
      data.problems.map(({ reason }: { reason: string }) => reason),
      ['shadowed'],
    );
    const socket = await site.socket();
    const packet = new Promise<Answer>((resolve) => {
      socket.websocket.on('message', (text: Buffer) => {
        const answer = JSON.parse(text.toString()) as Answer;
        if (answer.r === 'svc1.userinterface.stale') resolve(answer);
      });
    });
    await socket.call(`${rule}.follow`, { origin: site.url, path: '/shop/7/edit' });
    const { data: edited } = await site.call(`${rule}.edit`, { id: data.id, content: 'three' });
    assert.equal((await packet).data.seq, edited.seq);
  });

  test('fetches the segment from another server, and maps what it says back', async (t) => {
    const server = createServer((request, response) => {
      response.writeHead(302, {
        location: request.url === '/items/last.json' ? '/items/a%2Fb.json' : '/elsewhere',
        'x-path': request.url ?? '',
        'set-cookie': 'a=1; Path=/items/',
      });
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const { port } = server.address() as { port: number };
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
      rules: [
        {
          path: '/shop/*/edit',
          kind: 'content.fetch',
          enginedata: {
            source: `http://127.0.0.1:${port}/items/*.json`,
            pass: ['X-Path', 'Set-Cookie'],
          },
        },
      ],
    });
    const ask = (segment: string): Promise<Response> =>
      fetch(`${site.url}/shop/${segment}/edit?x=1`, { redirect: 'manual' });
    const plain = await ask('a%2fb');
    assert.equal(plain.headers.get('x-path'), '/items/a%2fb.json?x=1');
    const last = await fetch(`${site.url}/shop/last/edit`, { redirect: 'manual' });
    assert.equal(last.headers.get('location'), '/shop/a%2Fb/edit');
    assert.equal(last.headers.getSetCookie()[0], 'a=1; Path=/shop/');
    assert.equal((await fetch(`${site.url}/shop/a/b/edit`)).status, 404);
  });
});
