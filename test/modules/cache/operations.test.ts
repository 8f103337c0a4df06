import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { startSite, type TestSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';

interface Shop {
  readonly site: TestSite;
  /** Requests a path; resolves to its text. */
  readonly ask: (path: string) => Promise<string>;
  /** The ids of the two rules, `/a/*` and `/b/*`. */
  readonly rules: readonly string[];
}

/** A site with two fetched rules; the source counts its responses, which are fresh for an hour. */
async function startShop(t: TestContext): Promise<Shop> {
  let count = 0;
  const { origin } = await httpSource(t, (_, response) => {
    count += 1;
    response.writeHead(200, { 'Cache-Control': 'max-age=3600', 'Content-Type': 'text/plain' });
    response.end(`answer ${count}`);
  });
  const site = await startSite(t, { ini: '[fetch]\nallow_private = 127.0.0.0/8\n' });
  const rules: string[] = [];
  for (const path of ['/a/*', '/b/*']) {
    const enginedata = { source: `${origin}/*` };
    const v = { path, kind: 'content.fetch', enginedata };
    const { data } = await site.call('svc1.userinterface.insert', v);
    rules.push(data.id as string);
  }
  return { site, rules, ask: async (path) => (await fetch(`${site.url}${path}`)).text() };
}

/** Resolves when this number of responses is stored, which is shortly after they were sent. */
async function kept(site: TestSite, answers: number): Promise<void> {
  while ((await site.call('svc1.cache.status', {})).data.answers < answers) await nextTurn();
}

suite('svc1.cache.purge', () => {
  type Purge = (shop: Shop) => object;
  const purges: readonly (readonly [string, Purge, readonly number[]])[] = [
    ['a URL', ({ site }) => ({ url: `${site.url}/a/x` }), [4, 2, 3]],
    ['a path', () => ({ url: '/a/x' }), [4, 2, 3]],
    ['a path as a person writes it', () => ({ url: '/a/%78' }), [4, 2, 3]],
    ['what begins so', () => ({ prefix: '/a/' }), [4, 5, 3]],
    ['a rule', ({ rules }) => ({ rule: rules[1] }), [1, 2, 4]],
    ['everything', () => ({ all: true }), [4, 5, 6]],
    ['a URL of which nothing is kept', () => ({ url: '/a/' }), [1, 2, 3]],
    ['another origin', () => ({ prefix: 'http://b.example/' }), [1, 2, 3]],
  ];
  for (const [what, purge, answers] of purges) {
    test(`removes ${what}`, async (t) => {
      const shop = await startShop(t);
      const paths = ['/a/x', '/a/y?z=1', '/b/x'];
      for (const path of paths) await shop.ask(path);
      await kept(shop.site, paths.length);
      const { data } = await shop.site.call('svc1.cache.purge', purge(shop));
      const texts = [];
      for (const path of paths) texts.push(await shop.ask(path));
      assert.deepEqual(
        texts,
        answers.map((count) => `answer ${count}`),
      );
      assert.deepEqual(data, { urls: answers.filter((count) => count > 3).length });
    });
  }

  const refused = [
    {},
    { url: '/a', prefix: '/b' },
    { all: false },
    { url: 'a' },
    { url: '/a/../b' },
  ];
  for (const v of refused) {
    test(`refuses ${JSON.stringify(v)}`, async (t) => {
      const { site } = await startShop(t);
      const { error } = await site.call('svc1.cache.purge', v);
      assert.equal(error?.code, 'invalid');
    });
  }

  test('needs the scope design', async (t) => {
    const { site } = await startShop(t);
    const { data } = await site.call('svc1.key.insert', { name: 'ci', scopes: ['read'] });
    const as = { apikey: data.key as string };
    assert.equal((await site.call('svc1.cache.purge', { all: true }, as)).status, 403);
    assert.equal((await site.call('svc1.cache.list', {}, as)).status, 200);
    assert.equal((await site.call('svc1.cache.list', {}, { apikey: undefined })).status, 401);
  });
});

test('svc1.cache.list shows stored responses, page by page', async (t) => {
  const { site, ask, rules } = await startShop(t);
  for (const path of ['/a/x', '/a/y', '/b/x']) await ask(path);
  await kept(site, 3);
  const first = await site.call('svc1.cache.list', { limit: 2 });
  const urls = (rows: readonly { url: string }[]): readonly string[] => rows.map(({ url }) => url);
  assert.deepEqual(urls(first.data.rows), [`${site.url}/a/x`, `${site.url}/a/y`]);
  const { age_seconds: age, fresh_seconds: fresh, ...row } = first.data.rows[0];
  assert.deepEqual(row, {
    url: `${site.url}/a/x`,
    rule: rules[0],
    status: 200,
    contenttype: 'text/plain',
    bytes: 8,
    vary: [],
  });
  assert.ok(age <= 5 && fresh >= 3590);
  const second = await site.call('svc1.cache.list', { limit: 2, after: first.data.next });
  assert.deepEqual(urls(second.data.rows), [`${site.url}/b/x`]);
  assert.equal(second.data.next, null);
  const ofRule = await site.call('svc1.cache.list', { rule: rules[1] });
  assert.deepEqual(urls(ofRule.data.rows), [`${site.url}/b/x`]);
  const ofPrefix = await site.call('svc1.cache.list', { prefix: '/a/y' });
  assert.deepEqual(urls(ofPrefix.data.rows), [`${site.url}/a/y`]);
  const { data } = await site.call('svc1.cache.status', {});
  assert.deepEqual([data.answers, data.urls, data.bytes_max], [3, 3, 256 * 2 ** 20]);
  assert.ok(data.bytes > 24);
});

test('the access log, explain and the metrics report the use of the cache', async (t) => {
  const { site, ask, rules } = await startShop(t);
  const explain = async (): Promise<readonly [number | null, string]> => {
    const { data } = await site.call('svc1.userinterface.explain', { path: '/a/x' });
    return [data.status, data.notes.join(' ')];
  };
  const [unknown, before] = await explain();
  assert.equal(unknown, null);
  assert.match(before, /The cache has no response/);
  await ask('/a/x');
  await kept(site, 1);
  await ask('/a/x');
  const [status, after] = await explain();
  assert.equal(status, 200);
  assert.match(after, /^The cache has a response, \d s old and fresh for 3[56]\d\d s more\.$/);
  const logged = site.logged();
  assert.match(logged, new RegExp(`rule:${rules[0] ?? ''} \\(miss\\)`));
  assert.match(logged, new RegExp(`rule:${rules[0] ?? ''} \\(hit\\)`));
  const metrics = await (await fetch(`${site.url}/svc1/metrics`)).text();
  assert.match(metrics, /^waymark_cache_requests_total\{outcome="hit"\} 1$/m);
  assert.match(metrics, /^waymark_cache_requests_total\{outcome="miss"\} 1$/m);
  assert.match(metrics, /^waymark_cache_answers 1$/m);
});
