import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, suite, test } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';
import { readConfig } from '../../ini.ts';

const phone =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 ' +
  '(KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1';
const desktop = 'Mozilla/5.0 (X11; Linux x64; rv:140.0) Gecko/20100101 Firefox/140.0';

const started = startSite(
  { after },
  {
    server: 'trust_proxy = 127.0.0.0/8',
    ini: '[geo]\ncountry_header = X-Country\n[stats]\nretention = 30d',
    rules: [
      {
        path: 'spring',
        kind: 'resolve',
        enginedata: { when: [{ if: { device: 'mobile' }, target: '/m' }], target: '/d' },
      },
      { path: 'via', kind: 'resolve', enginedata: { target: 'key:spring' } },
      { path: '/go/*', kind: 'resolve', enginedata: { target: '/to/*' } },
      { path: 'empty', kind: 'resolve', enginedata: {} },
    ],
  },
);

type Sent = Readonly<Record<string, string>>;

async function follow(site: TestSite, path: string, headers: Sent = {}, method = 'GET') {
  const sent = { 'user-agent': desktop, ...headers };
  return fetch(`${site.url}${path}`, { headers: sent, redirect: 'manual', method });
}

async function visitsOf(site: TestSite, k: string) {
  const { data, error } = await site.call('svc1.breadcrumb.visits', { k });
  assert.equal(error, undefined);
  return data;
}

const link = '/svc1/userinterface.link.htm?k=';

suite('the visits of breadcrumbs', () => {
  test('are counted by branch, country, device and referring host; robots apart', async () => {
    const site = await started;
    await follow(site, `${link}spring`, {
      ...{ 'user-agent': phone, 'x-country': 'CH' },
      referer: 'https://news.example/a/story?reader=7',
    });
    await follow(site, `${link}spring`, { 'x-country': 'DE', referer: 'nonsense' });
    await follow(site, `${link}spring`);
    await follow(site, `${link}spring`, { 'user-agent': 'Googlebot/2.1' });
    const data = await visitsOf(site, 'spring');
    assert.equal(data.visits, 3);
    assert.equal(data.robots, 1);
    assert.equal(data.retention_days, 30);
    assert.equal(data.days.length, 30);
    assert.deepEqual(data.days.at(-1), {
      day: data.until,
      visits: 3,
      robots: 1,
      branches: { 'when[0]': 1, default: 2 },
    });
    assert.deepEqual(data.branches, [
      { name: 'default', visits: 2 },
      { name: 'when[0]', visits: 1 },
    ]);
    assert.deepEqual(data.countries, [
      { name: '(unknown)', visits: 1 },
      { name: 'CH', visits: 1 },
      { name: 'DE', visits: 1 },
    ]);
    assert.deepEqual(data.devices, [
      { name: 'desktop', visits: 2 },
      { name: 'mobile', visits: 1 },
    ]);
    assert.deepEqual(data.hosts, [
      { name: '(none)', visits: 1 },
      { name: '(unknown)', visits: 1 },
      { name: 'news.example', visits: 1 },
    ]);
  });

  test('are those of a path as well, and of each key on the way', async () => {
    const site = await started;
    const before = await visitsOf(site, 'spring');
    await follow(site, '/go/a');
    await follow(site, '/go/b');
    await follow(site, `${link}via`);
    assert.equal((await visitsOf(site, '/go/*')).visits, 2);
    assert.equal((await visitsOf(site, 'via')).visits, 1);
    assert.equal((await visitsOf(site, 'spring')).visits, Number(before.visits) + 1);
  });

  test('are no HEAD, no prefetch, no failure and no read by an operation', async () => {
    const site = await started;
    const before = await site.call('svc1.breadcrumb.visits', {});
    await follow(site, `${link}spring`, {}, 'HEAD');
    await follow(site, '/go/a', {}, 'HEAD');
    await follow(site, `${link}spring`, { 'sec-purpose': 'prefetch;prerender' });
    await follow(site, `${link}spring`, { purpose: 'prefetch' });
    assert.equal((await follow(site, `${link}empty`)).status, 404);
    await site.call('svc1.userinterface.get_resolve', { k: 'spring' });
    await site.call('svc1.userinterface.explain', { k: 'spring' });
    const place = { origin: site.url, path: '/go/a' };
    await site.call('svc1.userinterface.get_content', place);
    const socket = await site.socket();
    await socket.call('svc1.userinterface.link.htm', { k: 'spring' });
    const { data } = await site.call('svc1.breadcrumb.visits', {});
    assert.deepEqual(data, before.data);
  });

  test('of all breadcrumbs name the most visited first', async () => {
    const site = await started;
    const { data } = await site.call('svc1.breadcrumb.visits', { limit: 2 });
    assert.equal(data.keys.length, 2);
    const [first, second] = data.keys;
    assert.equal(first.k, 'spring');
    assert.equal(first.origin, '*');
    assert.ok(first.visits >= second.visits);
    assert.equal('branches' in data.days[0], false);
    const elsewhere = await site.call('svc1.breadcrumb.visits', { origin: 'http://x.example' });
    assert.equal(elsewhere.data.visits, 0);
  });

  test('are refused for days that do not exist or are too many', async () => {
    const site = await started;
    for (const [v, field] of [
      [{ from: '2026-02-30' }, 'from'],
      [{ from: '2026-03-02', until: '2026-03-01' }, 'from'],
      [{ from: '1990-01-01' }, 'from'],
      [{ until: 'yesterday' }, 'until'],
    ] as const) {
      const { error } = await site.call('svc1.breadcrumb.visits', v);
      assert.equal(error?.code, 'invalid', JSON.stringify(v));
      assert.equal(error.field?.replace(/^v\./, ''), field);
    }
    const { error } = await site.call('svc1.breadcrumb.visits', {}, { apikey: undefined });
    assert.equal(error?.code, 'unauthenticated');
  });

  test('are in /metrics', async () => {
    const site = await started;
    const text = await (await fetch(`${site.url}/svc1/metrics`)).text();
    assert.match(text, /^waymark_breadcrumb_visits_total [1-9]/m);
    assert.match(text, /^waymark_breadcrumb_robot_visits_total 1$/m);
  });

  test('are neither counted nor kept with retention = no', async (t) => {
    const rules = [{ path: 'k', kind: 'resolve', enginedata: { target: '/' } }];
    const site = await startSite(t, { rules });
    await follow(site, `${link}k`);
    assert.equal((await visitsOf(site, 'k')).visits, 1);
    const ini = await readFile(site.iniFile, 'utf8');
    await writeFile(site.iniFile, `${ini}\n[stats]\nretention = no\n`);
    const options = { env: {}, cores: 2, hostName: 'test' };
    site.waymark.reload(await readConfig({ file: site.iniFile, ...options }));
    await follow(site, `${link}k`);
    const off = await visitsOf(site, 'k');
    assert.equal(off.visits, 0);
    assert.equal(off.retention_days, 0);
  });
});
