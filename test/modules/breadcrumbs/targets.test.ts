import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { destinationOf, locationOf } from '../../../src/modules/breadcrumbs/breadcrumb.ts';
import { isTarget } from '../../../src/modules/rules/rule.ts';
import { type TestSite, startSite } from '../../harness.ts';
import { transports } from '../status/transports.ts';

const ui = 'svc1.userinterface';

const crumb = (path: string, target: string, more: object = {}) => ({
  ...{ path, kind: 'resolve', enginedata: { target } },
  ...more,
});

/** Where a rule leads a visit of a path, which is also its key. */
const rows: readonly (readonly [
  path: string,
  target: string,
  visited: string,
  query: string,
  location: string,
])[] = [
  ['/was/*', '/now/{splat}', '/was/a/b', '', '/now/a/b'],
  [
    '/was/*',
    'https://good.example/{splat}?from={path}',
    '/was/a',
    '',
    'https://good.example/a?from=%2Fwas%2Fa',
  ],
  ['/full/*', 'https://good.example{path}', '/full/a', '', 'https://good.example/full/a'],
  ['/find', '/search?q={query.q}&all=1', '/find', 'q=a%26b&z=1', '/search?q=a%26b&all=1'],
  ['/shop', '/items/{query.sku}', '/shop', 'sku=12%2F3', '/items/12%2F3'],
  ['/none', '/items/{query.sku}', '/none', '', '/items/'],
  ['/raw', '/to?{query}', '/raw', 'a=1&b=2', '/to?a=1&b=2'],
  ['/tail*', '/to/{splat}/*', '/tailx', '', '/to/x/x'],
  ['/brace', '/a/{none}', '/brace', '', '/a/%7Bnone%7D'],
];

// CONTRACT §16: "Targets of `resolve` rules and redirects know `{splat}`, `{path}`, `{query}`,
// `{query.NAME}`, `{host}`, encoded so that no value changes the target's origin".
suite('the variables of a target', () => {
  for (const [name, open] of Object.entries(transports)) {
    for (const [path, target, visited, query, location] of rows) {
      test(`${path} → ${target} for ${visited}?${query}, over ${name}`, async (t) => {
        const site = await startSite(t, { rules: [crumb(path, target)] });
        const call = await open(site);
        const { data } = await call(`${ui}.get_resolve`, { k: visited, query });
        assert.equal(data.target, location);
        const asked = query === '' ? '' : `&${query}`;
        const link = `/svc1/userinterface.link.htm?k=${encodeURIComponent(visited)}${asked}`;
        assert.equal(await locationAt(site, link), location);
        const visit = query === '' ? visited : `${visited}?${query}`;
        assert.equal(await locationAt(site, visit), location);
        const { data: explained } = await call(`${ui}.explain`, { k: visited, query });
        assert.ok(explained.notes.includes(`It leads to ${location}.`), String(explained.notes));
      });
    }
  }

  test('{host} is the host that the visitor has asked, whatever the origin of the input', async (t) => {
    const site = await startSite(t, { rules: [crumb('/up', 'https://{host}/up?v={query.v}')] });
    const { host } = new URL(site.url);
    assert.equal(await locationAt(site, '/up'), `https://${host}/up?v=`);
    const foreign = '&_v.origin=https%3A%2F%2Fevil.example';
    const link = `/svc1/userinterface.link.htm?k=/up${foreign}`;
    assert.ok((await locationAt(site, link))?.startsWith(`https://${host}/up?`));
    const v = { k: '/up', origin: 'https://shop.example' };
    const { data } = await site.call(`${ui}.get_resolve`, v);
    assert.equal(data.target, 'https://shop.example/up?v=');
  });

  for (const target of [
    'https://good.example{splat}/',
    'https://{splat}/',
    'https://{query.h}/',
    '{path}',
    'https://a@{host}/',
    'https://{host}:81/',
  ]) {
    test(`cannot make a host: ${target} waits`, async (t) => {
      const site = await startSite(t);
      const { data } = await site.call(`${ui}.insert`, crumb('/open/*', target));
      assert.deepEqual(data.unknowns, ['enginedata']);
      assert.equal((await fetch(`${site.url}/open/x`, { redirect: 'manual' })).status, 404);
    });
  }

  test('never change the origin, nor lead out of the path of the target', () => {
    const names = [
      '{splat}',
      '{path}',
      '{query}',
      '{query.a}',
      '{host}',
      '*',
      '/',
      '?',
      '#',
      'x',
      '..',
      '%2e',
      ':',
    ];
    const templates = fc
      .array(fc.constantFrom(...names), { maxLength: 6 })
      .map((parts) => parts.join(''));
    const values = fc.oneof(
      fc.webPath(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('//evil.example', '../..', '..%2f', '\\evil', '@evil', '.evil'),
    );
    const queries = fc.oneof(
      fc.webQueryParameters(),
      fc.constantFrom('a=//evil.example', 'a=../../x', 'a=@evil', '/..'),
    );
    fc.assert(
      fc.property(templates, values, values, queries, (template, path, capture, query) => {
        for (const start of ['https://good.example', 'https://good.example/base/', '/base/', '/']) {
          const text = start + template;
          // Otherwise a part of the template belongs to the host.
          const beginsPath = /^(?:[/?#]|\{path\}|$)/.test(template) || start.endsWith('/');
          if (!beginsPath || !isTarget(text)) continue;
          const rule = { path: '/was/*', httpresponse: 301 };
          const destination = destinationOf(
            { target: text, html: undefined, status: undefined },
            rule,
          );
          assert.ok(destination.kind === 'redirect');
          const visit = { path: `/${path}`, query, host: 'asked.example', capture };
          const location = locationOf(destination.target, visit, true);
          if (location === undefined) continue;
          const url = new URL(location, 'https://own.example');
          const own = start.startsWith('/') ? 'https://own.example' : 'https://good.example';
          assert.equal(url.origin, own, location);
          assert.match(location, /^[\x21-\x7e]+$/);
        }
      }),
    );
  });
});

// §4.2: "A final target for the key: HTML, a 302 redirect, or any other valid HTTP response."
suite('a key below a wildcard', () => {
  const rules = [
    crumb('/was/*', '/now/*'),
    crumb('/was/here', '/exact'),
    crumb('/was/deep/*', '/deeper/*'),
    crumb('short', 'key:/was/x'),
    crumb('short*', '/never/*'),
  ];
  for (const [name, open] of Object.entries(transports)) {
    for (const [k, location] of [
      ['/was/x', '/now/x'],
      ['/was/', '/now/'],
      ['/was/here', '/exact'],
      ['/was/deep/y', '/deeper/y'],
      ['short', '/now/x'],
    ] as const) {
      test(`${k} leads where a visit leads, over ${name}`, async (t) => {
        const site = await startSite(t, { rules });
        const call = await open(site);
        assert.equal((await call(`${ui}.get_resolve`, { k })).data.target, location);
        assert.equal(await locationAt(site, `/svc1/userinterface.link.htm?k=${k}`), location);
        if (k.startsWith('/')) assert.equal(await locationAt(site, k), location);
      });
    }
  }

  test('that is no path has no wildcard', async (t) => {
    const site = await startSite(t, { rules });
    const answer = await site.call(`${ui}.get_resolve`, { k: 'shorter' });
    assert.equal(answer.error?.code, 'not_found');
  });
});

// CONTRACT §16: "Rules of every kind get `headers` (response fields)."
test('the headers of a resolve rule hold at link.htm as at its path', async (t) => {
  const headers = { 'X-Way': '${path} by ${method}', 'Referrer-Policy': 'no-referrer' };
  const site = await startSite(t, {
    rules: [crumb('/moved', '/new', { headers }), crumb('short', '/new', { headers })],
  });
  for (const [where, way] of [
    ['/moved', '/moved by GET'],
    ['/svc1/userinterface.link.htm?k=/moved', '/moved by GET'],
    ['/svc1/userinterface.link.htm?k=short', 'short by GET'],
  ] as const) {
    const reply = await fetch(site.url + where, { redirect: 'manual' });
    assert.deepEqual(
      [
        reply.headers.get('location'),
        reply.headers.get('x-way'),
        reply.headers.get('referrer-policy'),
      ],
      ['/new', way, 'no-referrer'],
      where,
    );
  }
});

async function locationAt(site: TestSite, where: string): Promise<string | null> {
  const reply = await fetch(site.url + where, { redirect: 'manual' });
  return reply.headers.get('location');
}
