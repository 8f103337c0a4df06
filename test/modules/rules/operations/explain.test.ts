import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { startSite } from '../../../harness.ts';
import { httpSource } from '../../../core/outbound/sources.ts';
import { ask } from '../../files/disk-rig.ts';
import { askings, assertTrue, ruleSets } from '../../../core/pipeline/explain-rig.ts';
import { transports } from '../../status/transports.ts';

const rule = 'svc1.userinterface';
const origin = 'http://shop.example';
const ini = `
[disk.site]
root = site
fallback = app.html
[disk.docs]
path = /docs/
root = docs
listing = yes
[disk.shop]
origin = ${origin}
root = shop
[fetch]
allow_private = 127.0.0.0/8
[log]
explain = yes
`;
const files = {
  'site/a': 'a file',
  'site/b/index.html': 'an index',
  'site/app.html': 'the app',
  'docs/a': 'a document',
  'docs/b/c/a': 'another',
  'shop/x/index.html': 'of the shop alone',
};

for (const [transport, open] of Object.entries(transports)) {
  suite(`explain, over ${transport}`, () => {
    test('names fields of the winning rule that have no effect', async (t) => {
      const site = await startSite(t, { ini: '' });
      const call = await open(site);
      const fields = { path: '/x', kind: 'resolve', enginedata: { target: 'shop.example' } };
      await site.call(`${rule}.insert`, fields);
      const { data } = await call(`${rule}.explain`, { origin: site.url, path: '/x' });
      assert.deepEqual((data as { notes?: unknown }).notes, [
        'This breadcrumb has no target yet.',
        'Not valid, and kept in _unknowns_: enginedata.',
      ]);
    });

    test('predicts the answer of the server to any request', async (t) => {
      const source = await httpSource(t, (request, response) => {
        request.resume();
        response.end('from afar');
      });
      const samples = fc.sample(ruleSets(source.origin), { numRuns: 3, seed: 20 });
      const asked = fc.sample(askings, { numRuns: 60, seed: 21 });
      // Without the rule for all paths and without files, other sources answer more requests.
      const plain = ini.replace('fallback = app.html', '');
      const inis = [ini, plain, plain.replace('root = site', 'root = empty')];
      for (const [at, rules] of samples.entries()) {
        const site = await startSite(t, {
          ini: inis[at] ?? ini,
          files: { ...files, 'empty/y': '' },
          rules,
        });
        const call = await open(site);
        for (const { path, method = 'GET', origin: from = origin, lang } of asked) {
          const v = { origin: from, path, method, ...(lang !== undefined && { lang }) };
          const { data } = await call(`${rule}.explain`, v);
          const seen = await ask(site.url, path, {
            method,
            headers: {
              host: new URL(from).host,
              ...(lang !== undefined && { 'accept-language': lang }),
            },
          });
          const timing = String(seen.fields['server-timing']);
          const [, served = 'none'] = /^waymark;desc="(.*)"$/.exec(timing) ?? [];
          assertTrue(data, { status: seen.status, source: served });
        }
      }
    });

    test('accepts a URL or a path, and repeats it in canonical form', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const cases: readonly (readonly [v: object, request: object])[] = [
        [{ url: 'HTTP://Shop.Example:80' }, { origin, path: '/', query: '' }],
        [
          { url: `${origin}/é a?ö=1#x`, query: '?y' },
          { path: '/é a', query: '%C3%B6=1&y' },
        ],
        [{ url: '/a%20b' }, { origin: site.url, path: '/a b', query: '' }],
        [
          { path: '/a?x', query: 'y' },
          { origin: site.url, path: '/a', query: 'x&y' },
        ],
        [
          { path: '/a', origin: `${origin}/`, method: 'post' },
          { origin, method: 'POST' },
        ],
        [
          { path: '/a', lang: 'de, en;q=0.5' },
          { method: 'GET', lang: 'de, en;q=0.5' },
        ],
        [
          { k: 'spring', origin, query: 'x=1' },
          { k: 'spring', origin, query: 'x=1' },
        ],
        [{ url: '/svc1/userinterface.link.htm?x=1&k=a+b' }, { k: 'a b', query: 'x=1' }],
      ];
      for (const [v, request] of cases) {
        const { data, error } = await call(`${rule}.explain`, v);
        assert.equal(error, undefined);
        assert.deepEqual({ ...data.request, ...request }, data.request);
        assert.deepEqual([data.winner, data.status], [null, 404]);
      }
      const { data } = await call(`${rule}.explain`, { url: `${origin}/é` });
      const asked = `GET ${origin}/%C3%A9, if it reaches this server,`;
      assert.equal(data.says, `${asked} is answered by no source: the status is 404.`);
    });

    test('says in a sentence which source answers', async (t) => {
      const site = await startSite(t, { ini, files });
      const call = await open(site);
      const insert = async (v: object) => (await call(`${rule}.insert`, v)).data.id as string;
      const page = await insert({ path: '/page', kind: 'content', content: 'x' });
      const source = { source: 'http://far.example/' };
      const far = await insert({ path: '/far', kind: 'content.fetch', enginedata: source });
      const crumb = await insert({ path: 'k', kind: 'resolve', enginedata: { target: '/page' } });
      const at = (path: string) => `GET ${origin}${path}`;
      const cases: readonly (readonly [v: object, says: string])[] = [
        [{ path: '/a' }, `${at('/a')} is answered by the mount site, with 200.`],
        [{ path: '/page' }, `${at('/page')} is answered by the page rule ${page}, with 200.`],
        [
          { path: '/far' },
          `${at('/far')} is answered by the page rule ${far}, with the status of its source.`,
        ],
        [
          { path: '/none' },
          `${at('/none')} is answered by the fallback file of the mount site, with 200.`,
        ],
        [
          { k: 'k' },
          `The breadcrumb k of ${origin} is answered by the page rule ${crumb}, with 302.`,
        ],
      ];
      for (const [v, says] of cases) {
        assert.equal((await call(`${rule}.explain`, { origin, ...v })).data.says, says);
      }
      const own = await call(`${rule}.explain`, { origin, path: '/svc1/health' });
      assert.match(own.data.says, /belongs to Waymark itself/);
      assert.deepEqual([own.data.winner, own.data.status, own.data.tried], [null, null, []]);
    });

    test('explains any moment of the past', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const page = { origin, path: '/a', kind: 'content', content: 'one' };
      const { data: first } = await call(`${rule}.insert`, page);
      await call(`${rule}.edit`, { id: first.id, path: '/b', httpresponse: 410 });
      const then = { url: `${origin}/a`, as_of: first.seq };
      const { data } = await call(`${rule}.explain`, then);
      assert.deepEqual(data.winner, { source: 'stored', id: first.id, status: 200 });
      assert.deepEqual(data.notes, [
        `Page rules and time are those of ${first.seq}; the rest is as it is now.`,
      ]);
      const now = await call(`${rule}.explain`, { url: `${origin}/b`, as_of: null });
      assert.deepEqual([now.data.status, now.data.notes], [410, []]);
      assert.equal((await call(`${rule}.explain`, { url: `${origin}/a` })).data.winner, null);
    });

    test('refuses input that requests no page, and names the field', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const cases: readonly (readonly [v: object, field: string])[] = [
        [{}, 'url'],
        [{ url: 'ftp://shop.example/' }, 'url'],
        [{ url: `${origin}/a/../b` }, 'url'],
        [{ url: 'http://user@shop.example/' }, 'url'],
        [{ url: '/a', path: '/a' }, 'path'],
        [{ url: '/a', origin }, 'origin'],
        [{ k: 'spring', url: '/a' }, 'url'],
        [{ k: '\n' }, 'k'],
        [{ path: 'a' }, 'path'],
        [{ path: '/a', origin: '*' }, 'origin'],
        [{ path: '/a', query: 'a b' }, 'query'],
        [{ path: '/a', method: 'GET /' }, 'method'],
        [{ path: '/a', method: 'connect' }, 'method'],
        [{ path: '/a', lang: 'de\nx: y' }, 'lang'],
        [{ path: '/a', as_of: 'yesterday' }, 'as_of'],
      ];
      for (const [v, field] of cases) {
        const { error } = await call(`${rule}.explain`, v);
        assert.deepEqual([error?.code, error?.field], ['invalid', field], JSON.stringify(v));
      }
    });

    test('gives the reason why a visitor does not take a branch of a breadcrumb', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const when = [
        { if: { country: ['CH'], device: 'mobile' }, target: '/ch' },
        { if: { weekday: 1 }, target: '/monday' },
      ];
      const enginedata = { target: '/all', when };
      await call(`${rule}.insert`, { path: 'k', kind: 'resolve', enginedata });
      const visitor = { country: 'ch', device: 'ios', user: 'ann', role: 'x', ip: '192.0.2.1' };
      const { data } = await call(`${rule}.explain`, { k: 'k', ...visitor });
      assert.deepEqual([data.status, data.notes], [302, ['It leads to /ch.']]);
      assert.deepEqual(data.request, { k: 'k', origin: site.url, query: '', ...visitor });
      const { data: other } = await call(`${rule}.explain`, {
        k: 'k',
        ...visitor,
        device: 'linux',
      });
      assert.deepEqual(other.tried[0].candidates[0].branches, [
        {
          branch: 'when[0]',
          lost: {
            code: 'device',
            says: "It applies to the devices mobile; the visitor's device is linux, desktop.",
          },
        },
        {
          branch: 'when[1]',
          lost: {
            code: 'invalid',
            says: 'It is never taken: Waymark cannot read when[1].if.weekday.',
          },
        },
        { branch: 'default' },
      ]);
    });
  });
}

test('explain needs the scope read', async (t) => {
  const site = await startSite(t);
  const call = (apikey?: string) => site.call(`${rule}.explain`, { url: '/' }, { apikey });
  assert.equal((await call()).status, 401);
  for (const [scope, status] of [
    ['render', 403],
    ['design', 403],
    ['read', 200],
  ] as const) {
    const { data } = await site.call('svc1.key.insert', { name: scope, scopes: [scope] });
    assert.equal((await call(data.key)).status, status, scope);
  }
});

test('explain says if the ini file does not name the origin', async (t) => {
  const site = await startSite(t, {
    server: 'public_url = https://www.example.org',
    ini,
    files,
    rules: [
      { path: '/*', content: 'x' },
      { origin: 'https://own.example', path: '/own', content: 'x' },
    ],
  });
  const says = async (url: string) => {
    const { data } = await site.call(`${rule}.explain`, { url });
    return `${data.says} ${data.notes.join(' ')}`;
  };
  assert.match(
    await says('https://example.com/a'),
    /^GET https:\/\/example\.com\/a, if it reaches this server, is answered by .*The configuration does not name https:\/\/example\.com/,
  );
  for (const url of [
    `${site.url}/a`,
    '/a',
    'https://www.example.org/a',
    `${origin}/x/`,
    'https://own.example/own',
  ]) {
    assert.doesNotMatch(await says(url), /if it reaches|does not name/, url);
  }
});
