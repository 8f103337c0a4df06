import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { suite, test } from 'node:test';
import type { AccessEntry } from '../../../src/core/report/access-entry.ts';
import { createAccessRules, redactedUrl } from '../../../src/modules/logs/access-rules.ts';
import { matchesPattern } from '../../../src/modules/headers/response-headers.ts';
import { startSite, type TestSite } from '../../harness.ts';

const names = new Set(['token', 'e-mail']);

const redactions: readonly (readonly [string, string])[] = [
  ['/a', '/a'],
  ['/a?token=secret', '/a?token=redacted'],
  ['/a?b=1&TOKEN=secret&c', '/a?b=1&TOKEN=redacted&c'],
  ['/a?%74oken=secret', '/a?%74oken=redacted'],
  ['/a?e%2Dmail=a@b.example&token', '/a?e%2Dmail=redacted&token'],
  ['/a?token=a=b', '/a?token=redacted'],
  ['/a?token=&x=token', '/a?token=redacted&x=token'],
  ['/a?tokens=1&%zz=2&xtoken=3', '/a?tokens=1&%zz=2&xtoken=3'],
  ['/a?next=/b?token=secret', '/a?next=/b?token=redacted'],
  ['/a?x;token=secret', '/a?x;token=redacted'],
  [
    'https://a.example/?token=secret#token=secret',
    'https://a.example/?token=redacted#token=redacted',
  ],
  ['https://a.example/b#token=secret', 'https://a.example/b#token=redacted'],
  ['/in?return_to=%2Fb%3Ftoken%3Dsecret', '/in?return_to=%2Fb%3Ftoken%3Dredacted'],
  [
    '/in?to=%2Fb%3Fto%3D%252Fc%253FTOKEN%253Dsecret&x=%2Fb%3Fa%3D1',
    '/in?to=%2Fb%3Fto%3D%252Fc%253FTOKEN%253Dredacted&x=%2Fb%3Fa%3D1',
  ],
];

test('query parameters are redacted by name', () => {
  for (const [given, shown] of redactions) assert.equal(redactedUrl(given, names), shown);
});

test('a long query is redacted in linear time', () => {
  const long = `/?${'token=x&'.repeat(30_000)}${'='.repeat(200_000)}`;
  assert.ok(!redactedUrl(long, names).includes('token=x'));
});

suite('[log.<name>]', () => {
  const entry = { target: '/', referer: '', status: 200 } as AccessEntry;
  const hasLine = (
    paths: Parameters<typeof createAccessRules>[0]['paths'],
    given: Partial<AccessEntry>,
    random = 0.5,
  ): boolean => {
    const settings = { redact: [], fields: [], line: undefined, paths };
    const parts = { matches: matchesPattern, random: () => random };
    return createAccessRules(settings, parts)?.apply({ ...entry, ...given }) !== undefined;
  };

  test('leaves out the paths that are off', () => {
    const off = [{ name: 'a', path: ['/health', '/as*.js'], access: false, sample: 1 }];
    for (const target of ['/health', '/health?a', '/%68ealth', '/assets/a.js']) {
      assert.equal(hasLine(off, { target }), false, target);
    }
    for (const target of ['/', '/healthy', '/?/health', '/%ff', 'http://a.example/health']) {
      assert.equal(hasLine(off, { target }), true, target);
    }
  });

  test('samples, but always has the answers of a failing server', () => {
    const sampled = [{ name: 'a', path: ['*'], access: true, sample: 10 }];
    assert.equal(hasLine(sampled, {}, 0.09), true);
    assert.equal(hasLine(sampled, {}, 0.11), false);
    assert.equal(hasLine(sampled, { status: 404 }, 0.11), false);
    assert.equal(hasLine(sampled, { status: 502 }, 0.11), true);
  });

  test('of several that match, the first decides', () => {
    const on = { name: 'a', path: ['/a/b'], access: true, sample: 1 };
    const off = { name: 'b', path: ['/a/*'], access: false, sample: 1 };
    assert.equal(hasLine([on, off], { target: '/a/b' }), true);
    assert.equal(hasLine([off, on], { target: '/a/b' }), false);
  });
});

/** The request lines of the log of a site, as objects. */
function requestsOf(site: TestSite): readonly Record<string, unknown>[] {
  const lines = site.logged().split('\n');
  return lines
    .filter((line) => line.includes('"msg":"request"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('the log has the chosen fields, and no redacted or left out ones', async (t) => {
  const source = createServer((request, response) => {
    request.resume().on('end', () => response.end('from the source'));
  }).listen(0, '127.0.0.1');
  await once(source, 'listening');
  t.after(() => source.close());
  const { port } = source.address() as AddressInfo;
  const site = await startSite(t, {
    server: 'trust_proxy = 127.0.0.1',
    ini: `[log]
format = json
fields = path, query, protocol, bytes, bytes_in, user, rule, source, source_ms, referer, tls
redact = token
[log.quiet]
path = /quiet*
access = no
[auth]
user_header = X-User
[proxy.app]
path = /app/
source = http://127.0.0.1:${port}
`,
    rules: [{ path: '/page', content: 'x' }],
  });
  const headers = { 'X-User': 'ann "x"', Referer: 'https://a.example/?token=secret' };
  await (await fetch(`${site.url}/page?token=secret&a=1`, { headers })).text();
  await (await fetch(`${site.url}/quiet`)).text();
  const posted = await fetch(`${site.url}/app/form`, { method: 'POST', body: 'four' });
  assert.equal(await posted.text(), 'from the source');
  await (await fetch(`${site.url}/last`)).text();
  await site.untilLogged(/"path":"\/last"/);
  const requests = requestsOf(site);
  const [page, form, last] = ['/page', '/app/form', '/last'].map((path) =>
    requests.find((request) => request.path === path),
  );
  assert.ok(!requests.some(({ path }) => path === '/quiet'));
  assert.ok(!site.logged().includes('secret'));
  assert.match(String(page?.rule), /^[0-9a-f-]{36}$/);
  assert.deepEqual(page, {
    ...{ level: 30, msg: 'request', path: '/page', query: 'token=redacted&a=1' },
    ...{ protocol: 'HTTP/1.1', bytes: 1, bytes_in: 0, user: 'ann "x"', rule: page?.rule },
    ...{ source: `rule:${String(page?.rule)}`, referer: 'https://a.example/?token=redacted' },
  });
  assert.equal(form?.bytes_in, 4);
  assert.equal(typeof form.source_ms, 'number');
  assert.equal(last?.path, '/last');
});
