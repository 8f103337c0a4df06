import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { type Answer, type TestSite, startSite } from '../../../harness.ts';

const rule = 'svc1.userinterface';
const both = 'https://a.example https://b.example';

const page = (origin: string, path = '/a', more: object = {}): object => ({
  ...{ origin, path, kind: 'content', content: origin, contenttype: 'text/plain', ...more },
});

function start(t: TestContext, more: Parameters<typeof startSite>[1] = {}): Promise<TestSite> {
  return startSite(t, { server: 'trust_proxy = 127.0.0.0/8', ...more });
}

/** The status of a GET as a visitor of an origin. */
async function statusAt({ url }: TestSite, origin: string, path = '/a'): Promise<number> {
  const { protocol, host } = new URL(origin);
  const headers = { 'x-forwarded-proto': protocol.slice(0, -1), 'x-forwarded-host': host };
  const reply = await fetch(url + path, { redirect: 'manual', headers });
  await reply.text();
  return reply.status;
}

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

suite('a page rule for several origins', () => {
  for (const [title, open] of transports) {
    test(`answers at each of them, edited, undone and in the past, over ${title}`, async (t) => {
      const site = await start(t);
      const call = await open(t, site);
      const statuses = (): Promise<readonly number[]> =>
        Promise.all(
          [
            'https://a.example',
            'https://b.example',
            'https://c.example',
            'https://x.c.example',
          ].map((origin) => statusAt(site, origin)),
        );
      const { data } = await call(
        `${rule}.insert`,
        page(' HTTPS://A.example:443  https://b.example '),
      );
      assert.deepEqual([data.origin, data.problems ?? []], [both, []]);
      assert.deepEqual(await statuses(), [200, 200, 404, 404]);
      const { id, seq } = data;
      const wider = 'https://b.example https://*.c.example';
      const { data: edited } = await call(`${rule}.edit`, { id, origin: wider });
      assert.deepEqual(await statuses(), [404, 200, 404, 200]);
      const then = async (origin: string, asOf: number): Promise<string | undefined> =>
        (await call(`${rule}.get`, { origin, path: '/a', as_of: String(asOf) })).data?.id;
      assert.equal(await then('https://a.example', seq), id);
      assert.equal(await then('https://x.c.example', seq), undefined);
      assert.equal(await then('https://x.c.example', edited.seq), id);
      const { data: dry } = await call(`${rule}.invalidate`, { id });
      await call(`${rule}.invalidate`, { id, confirm: dry.digest });
      assert.deepEqual(await statuses(), [404, 404, 404, 404]);
    });

    test(`is one row of lists, and in the tree of each origin, over ${title}`, async (t) => {
      const site = await start(t, {
        rules: [page(both, '/b'), page('*', '/a'), page('https://b.example', '/c')],
      });
      const call = await open(t, site);
      const paths = async (v: object): Promise<readonly string[]> =>
        (await call(`${rule}.list`, v)).data.rows.map((row: { path: string }) => row.path);
      assert.deepEqual(await paths({ sort: 'path' }), ['/a', '/b', '/c']);
      assert.deepEqual(await paths({ sort: '-path' }), ['/c', '/b', '/a']);
      assert.deepEqual(await paths({}), ['/b', '/a', '/c']);
      for (const sort of ['path', 'inserted']) {
        assert.deepEqual(await paths({ sort, origin: 'https://a.example' }), ['/b']);
        assert.deepEqual(await paths({ sort, origin: 'https://b.example' }), ['/b', '/c']);
      }
      const { data } = await call(`${rule}.tree`, {});
      assert.deepEqual(data.origins, ['*', 'https://a.example', 'https://b.example']);
      const { data: tree } = await call(`${rule}.tree`, { origin: 'https://b.example', path: '/' });
      assert.deepEqual(
        tree.rows.map(({ name }: { name: string }) => name),
        ['b', 'c'],
      );
      const { data: first } = await call(`${rule}.list`, { sort: 'path', limit: 2 });
      assert.deepEqual(await paths({ sort: 'path', after: first.next }), ['/c']);
    });

    test(`wins and is hidden at each of them by itself, over ${title}`, async (t) => {
      const site = await start(t, {
        rules: [page('https://*.example', '/a'), page('https://b.example', '/a')],
      });
      const call = await open(t, site);
      const { data } = await call(`${rule}.insert`, page(both, '/a', { rve: -1 }));
      assert.deepEqual(
        data.problems.map(({ reason, message }: { reason: string; message: string }) => [
          reason,
          message.slice(0, 'At https://b.example: '.length),
        ]),
        [['shadowed', 'At https://b.example: ']],
      );
      const winner = async (origin: string): Promise<string> =>
        (await call(`${rule}.get`, { origin, path: '/a' })).data.origin;
      assert.equal(await winner('https://a.example'), both);
      assert.equal(await winner('https://b.example'), 'https://b.example');
      assert.equal(await winner('https://c.example'), 'https://*.example');
    });

    test(`belongs to a key that is bound to all of them, over ${title}`, async (t) => {
      const site = await start(t, { rules: [page(both)] });
      const call = await open(t, site);
      const bound = async (...origins: readonly string[]): Promise<string> => {
        const v = { name: 'bound', scopes: ['design', 'read', 'render'], origins };
        return (await call('svc1.key.insert', v)).data.key;
      };
      const one = await bound('https://a.example');
      const all = await bound('https://a.example', 'https://b.example');
      const insert = async (apikey: string): Promise<string | undefined> =>
        (await site.call(`${rule}.insert`, page(both, '/b'), { apikey })).error?.code;
      assert.equal(await insert(one), 'forbidden');
      assert.equal(await insert(all), undefined);
      const read = async (apikey: string): Promise<number> =>
        (await site.call(`${rule}.list`, {}, { apikey })).data.rows.length;
      assert.deepEqual([await read(one), await read(all)], [0, 2]);
      const where = { origin: 'https://a.example', path: '/a' };
      const get = (apikey: string): Promise<Answer> => site.call(`${rule}.get`, where, { apikey });
      assert.equal((await get(one)).error?.code, 'not_found');
      assert.equal((await get(all)).data.origin, both);
    });
  }

  test('leads a breadcrumb, is in drafts, and comes back from an export', async (t) => {
    const enginedata = { target: '/s' };
    const crumb = { origin: both, path: 'summer', kind: 'resolve', enginedata };
    const site = await start(t, { rules: [crumb] });
    const resolve = async (origin: string): Promise<string | undefined> =>
      (await site.call(`${rule}.get_resolve`, { k: 'summer', origin })).data?.target;
    assert.equal(await resolve('https://a.example'), '/s');
    assert.equal(await resolve('https://b.example'), '/s');
    assert.equal(await resolve('https://c.example'), undefined);
    await site.call('svc1.draft.insert', { name: 'new' });
    await site.call(`${rule}.insert`, page(both, '/new'), { draft: 'new' });
    const where = { origin: 'https://b.example', path: '/new' };
    assert.equal((await site.call(`${rule}.get`, where)).error?.code, 'not_found');
    assert.equal((await site.call(`${rule}.get`, where, { draft: 'new' })).data.origin, both);
    const { data: report } = await site.call('svc1.draft.publish', { draft: 'new' });
    await site.call('svc1.draft.publish', { draft: 'new', confirm: report.digest });
    assert.equal((await site.call(`${rule}.get`, where)).data.origin, both);
    const ndjson = JSON.stringify(page(both, '/imported'));
    await site.call(`${rule}.import`, { ndjson });
    assert.equal(await statusAt(site, 'https://b.example', '/imported'), 200);
  });

  const refused = [
    '* https://a.example',
    'https://a.example, https://b.example',
    'https://a.example/x https://b.example',
    Array.from({ length: 17 }, (_, at) => `https://a${at}.example`).join(' '),
  ];
  for (const origin of refused) {
    test(`waits, and matches nothing: ${origin.slice(0, 40)}`, async (t) => {
      const site = await start(t);
      const { data } = await site.call(`${rule}.insert`, page(origin));
      assert.deepEqual([data.unknowns, data.problems[0].reason], [['origin'], 'bad_format']);
      assert.equal(await statusAt(site, 'https://a.example'), 404);
    });
  }
});
