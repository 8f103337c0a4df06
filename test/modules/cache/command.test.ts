import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { runHere } from '../../cli/here.ts';

/** A site with `/far/x` and `/far/y` in its cache, and `waymark cache` for it. */
async function startKept(t: TestContext) {
  const { origin } = await httpSource(t, (_, response) => {
    response.writeHead(200, { 'Cache-Control': 'max-age=3600', Vary: 'Accept' }).end('kept');
  });
  const site = await startSite(t, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    rules: [{ path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } }],
  });
  for (const name of ['x', 'y']) await (await fetch(`${site.url}/far/${name}`)).text();
  // The cache stores a response a moment after it was sent.
  while ((await site.call('svc1.cache.status', {})).data.answers < 2) await nextTurn();
  const env = { WAYMARK_URL: site.url, WAYMARK_APIKEY: site.adminKey };
  const cache = (...words: readonly string[]) => runHere(['cache', ...words], { env });
  return { site, cache };
}

suite('waymark cache', () => {
  test('lists cached responses, and prints their number and size', async (t) => {
    const { site, cache } = await startKept(t);
    const { out, code } = await cache('list');
    assert.equal(code, 0);
    const [heading = '', ...rows] = out.trim().split('\n');
    assert.match(heading, /^STATUS +BYTES +AGE +FRESH +URL$/);
    assert.match(rows[0] ?? '', new RegExp(`^200 .*${site.url}/far/x \\(varies by accept\\)$`));
    assert.equal(rows.length, 2);
    assert.equal((await cache('list', '--prefix', '/far/y')).out.trim().split('\n').length, 2);
    assert.match((await cache('status')).out, /^answers 2\nurls 2\nbytes \d+\nbytes_max \d+\n$/);
  });

  test('purges a URL, a prefix, and everything', async (t) => {
    const { site, cache } = await startKept(t);
    const one = await cache('purge', `${site.url}/far/x`);
    assert.deepEqual([one.out, one.code], ['1\n', 0]);
    assert.match(one.err, /1 URL/);
    assert.equal((await cache('purge', '--prefix', '/nothing/')).out, '0\n');
    assert.equal((await cache('purge', '--all')).out, '1\n');
    assert.equal((await cache('list')).out.trim().split('\n').length, 1);
    const json = JSON.parse((await cache('purge', '--all', '--json')).out) as { data: object };
    assert.deepEqual(json.data, { urls: 0 });
  });

  for (const words of [['purge'], ['purge', '/a', '--all'], ['list', '/a'], ['fly']]) {
    test(`refuses the words ${words.join(' ')}`, async () => {
      const { code } = await runHere(['cache', ...words, '--url', 'http://127.0.0.1:1']);
      assert.equal(code, 2);
    });
  }
});
