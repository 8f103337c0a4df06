import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';

/** The samples of a metrics text, by name with labels. */
function samplesOf(text: string): ReadonlyMap<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split('\n').filter((one) => one !== '' && !one.startsWith('#'))) {
    const [, name = '', value = ''] =
      /^([a-z_]+(?:\{(?:[a-z]+="[^"\n]*",?)*\})?) (\S+)$/.exec(line) ?? [];
    assert.notEqual(name, '', `not a sample: ${line}`);
    assert.ok(!samples.has(name), `twice: ${line}`);
    assert.ok(!Number.isNaN(Number(value)), `not a number: ${line}`);
    samples.set(name, Number(value));
  }
  return samples;
}

async function read({ url }: TestSite, headers: Readonly<Record<string, string>> = {}) {
  const reply = await fetch(`${url}/svc1/metrics`, { headers });
  return { reply, text: await reply.text() };
}

suite('the metrics', () => {
  test('count responses by status class and kind of source', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\n[log]\naccess = no\n',
      files: { 'site/file.txt': 'x' },
      rules: [{ path: '/page', kind: 'content', content: 'x' }],
    });
    for (const path of ['/file.txt', '/file.txt', '/page', '/nothing', '/svc1/health']) {
      await (await fetch(site.url + path)).text();
    }
    const { reply, text } = await read(site);
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    const samples = samplesOf(text);
    const requests = (source: string, status: string) =>
      samples.get(`waymark_requests_total{status="${status}",source="${source}"}`);
    assert.equal(requests('disk', '2xx'), 2);
    assert.equal(requests('rule', '2xx'), 1);
    assert.equal(requests('none', '4xx'), 1);
    assert.equal(requests('svc1', '2xx'), 1);
    assert.equal(samples.get('waymark_request_duration_seconds_count{source="disk"}'), 2);
    assert.equal(samples.get('waymark_store_rules'), 1);
    assert.equal(samples.get('waymark_store_keys'), 1);
    assert.equal(samples.get('waymark_store_seq'), 2);
    assert.equal(samples.get('waymark_requests_in_flight'), 1);
    assert.ok((samples.get('waymark_connections') ?? 0) >= 1);
  });

  test('count websockets while they are open', async (t) => {
    const site = await startSite(t);
    const socket = await site.socket(site.adminKey);
    await socket.call('svc1.server.status', {});
    assert.equal(samplesOf((await read(site)).text).get('waymark_websockets'), 1);
  });

  test('answer GET only', async (t) => {
    const site = await startSite(t);
    const reply = await fetch(`${site.url}/svc1/metrics`, { method: 'POST' });
    assert.equal(reply.status, 405);
    const head = await fetch(`${site.url}/svc1/metrics`, { method: 'HEAD' });
    assert.equal(head.status, 200);
  });

  const proxied: readonly (readonly [string, string])[] = [
    ['x-forwarded-for', '203.0.113.7'],
    ['x-forwarded-for', '127.0.0.1'],
    ['x-real-ip', '203.0.113.7'],
    ['x-forwarded-host', 'shop.example'],
    ['forwarded', 'for=203.0.113.7'],
    ['via', '1.1 proxy'],
  ];
  for (const [name, value] of proxied) {
    for (const trust of ['', 'trust_proxy = 127.0.0.1']) {
      test(`need the scope read by way of a proxy: ${name}: ${value}, ${trust || 'none trusted'}`, async (t) => {
        const site = await startSite(t, { server: trust });
        const byProxy = { [name]: value };
        assert.equal((await read(site, byProxy)).reply.status, 401);
        const scoped = async (scopes: readonly string[]) => {
          const { data } = await site.call('svc1.key.insert', { name: 'k', scopes });
          const { key } = data as { key: string };
          return (await read(site, { ...byProxy, apikey: key })).reply.status;
        };
        assert.equal(await scoped(['read']), 200);
        assert.equal(await scoped(['design']), 403);
        assert.equal(await scoped(['admin']), 200);
        assert.equal((await read(site, { ...byProxy, apikey: 'wmk_wrong' })).reply.status, 401);
      });
    }
  }

  const asked: readonly (readonly [title: string, fields: Readonly<Record<string, string>>])[] = [
    ['a name that somebody else has pointed here', { Host: 'evil.example' }],
    ['a name below it', { Host: 'localhost.evil.example' }],
    ['a page of another origin', { Origin: 'http://evil.example' }],
    ['a page without an origin', { Origin: 'null' }],
    ['a page of another site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['a page of the same site', { 'Sec-Fetch-Site': 'same-site' }],
  ];
  test('need the scope read if a web page may have requested them', async (t) => {
    const site = await startSite(t, { server: 'public_url = http://shop.example' });
    const status = async (fields: Readonly<Record<string, string>>) => {
      const all = { Host: `localhost:${site.port}`, Connection: 'close', ...fields };
      const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
      const answer = await site.raw(`GET /svc1/metrics HTTP/1.1\r\n${lines.join('')}\r\n`);
      return /^HTTP\/1.1 (\d+)/.exec(answer)?.[1];
    };
    for (const [title, fields] of asked) {
      assert.equal(await status(fields), '401', title);
      assert.equal(await status({ ...fields, apikey: site.adminKey }), '200', title);
    }
    for (const fields of [
      {},
      { Host: '127.0.0.1' },
      { Host: '[::1]:80' },
      { Host: 'shop.example' },
      { Origin: `http://localhost:${site.port}`, 'Sec-Fetch-Site': 'same-origin' },
      { 'Sec-Fetch-Site': 'none' },
    ]) {
      assert.equal(await status(fields), '200', JSON.stringify(fields));
    }
  });
});
