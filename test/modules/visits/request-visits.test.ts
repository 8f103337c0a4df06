import assert from 'node:assert/strict';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, after, suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { isbot } from 'isbot';
import { visitNamesMax } from '../../../src/core/log/limits.ts';
import type { AccessEntry } from '../../../src/core/report/access-entry.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import {
  RequestVisits,
  requestsCountedMax,
  sampledRequests,
} from '../../../src/modules/visits/request-visits.ts';
import {
  VisitDatabase,
  pageNamesMax,
  pagesPerDayMax,
  prepareVisitDatabase,
} from '../../../src/modules/visits/visit-database.ts';
import { temporaryFolder } from '../../folder.ts';
import { type TestSite, startSite } from '../../harness.ts';

const browser = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:143.0) Gecko/20100101 Firefox/143.0';
const phone =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 ' +
  '(KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1';
const googlebot = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)';
const html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

const choices = {
  path: [
    ...['/', '/about.html', '/style.css', '/stored', '/stored?q=1', '/moved', '/news', '/news/1'],
    ...['/none', '/internal/a', '/limited', '/slow', '/broken', '/svc1/server/status', '/a%2'],
  ],
  method: [...Array.from({ length: 8 }, () => 'GET'), 'HEAD', 'POST'],
  'user-agent': [browser, phone, googlebot, 'curl/8.5.0', ''],
  accept: [html, html, '*/*', 'image/avif,image/webp', ''],
  'accept-language': ['de-CH,de;q=0.9,en;q=0.8', 'fr', 'x1-y', ''],
  referer: ['', 'https://search.example/?q=a', 'http://localhost/other', 'android-app://x', 'no'],
  'sec-purpose': ['', '', '', 'prefetch'],
  'x-country': ['CH', 'DE', 'XX', ''],
  'if-none-match': ['', '*'],
} as const;

/** Repeatable choices (a linear congruential generator). */
function chooser(seed: number): <T>(values: readonly T[]) => T {
  let state = seed;
  return (values) => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return values[Math.floor((state / 2 ** 32) * values.length)] as never;
  };
}

type Line = Readonly<Record<string, string | number | undefined>>;

type Counts = Map<string, number>;

function counted(names: readonly string[]): object[] {
  const counts: Counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .map(([name, visits]) => ({ name, visits }))
    .toSorted((one, other) => other.visits - one.visits || (one.name < other.name ? -1 : 1));
}

async function sourceServer(): Promise<string> {
  const server = createServer((asked, answer) => {
    if (asked.url?.startsWith('/broken') === true) answer.statusCode = 500;
    answer.setHeader('Cache-Control', 'max-age=60');
    answer.setHeader('Content-Type', 'text/html');
    answer.end('<p>news</p>');
  });
  after(() => server.close());
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function started(): Promise<TestSite> {
  const source = await sourceServer();
  return startSite(
    { after },
    {
      server: 'trust_proxy = 127.0.0.0/8',
      ini:
        '[log]\nformat = json\nfields = method path host status ms source cache user_agent ' +
        'referer accept accept_language purpose reason\n[geo]\ncountry_header = X-Country\n' +
        '[disk.site]\nroot = site\n[access.staff]\npath = /internal/\ndeny = 127.0.0.0/8\n' +
        `[rate.few]\npath = /limited\nrate = 5/h\n[proxy.news]\npath = /news\nsource = ${source}\n` +
        `[proxy.broken]\npath = /broken\nsource = ${source}\n[fetch]\nallow_private = 127.0.0.0/8`,
      files: { 'site/index.html': 'index', 'site/about.html': 'about', 'site/style.css': 'p{}' },
      rules: [
        { path: '/stored', kind: 'content', content: 'stored', contenttype: 'text/html' },
        { path: '/limited', kind: 'content', content: 'limited', contenttype: 'text/html' },
        { path: '/moved', kind: 'resolve', enginedata: { target: '/about.html' } },
      ],
    },
  );
}

async function send(site: TestSite, agent: Agent, choose: ReturnType<typeof chooser>) {
  const { path, method, ...fields } = choices;
  const chosen = Object.entries(fields).map(([name, values]) => [name, choose<string>(values)]);
  const headers = Object.fromEntries(chosen.filter(([, value]) => value !== '')) as Record<
    string,
    string
  >;
  await new Promise<void>((answered, failed) => {
    const options = { agent, headers, method: choose<string>(method), path: choose<string>(path) };
    request(site.url, options, (answer) => answer.resume().on('end', answered))
      .on('error', failed)
      .end();
  });
}

/** The visits among lines of the access log, by the words of docs/how-to/visits.md. */
function visitsIn(lines: readonly Line[]): { readonly people: Line[]; readonly robots: Line[] } {
  const shown = lines.filter((line) => {
    const { method, status, source, purpose = '' } = line;
    const isShown = status === 304 || (Number(status) >= 200 && Number(status) < 300);
    return method === 'GET' && isShown && source !== 'svc1' && purpose === '';
  });
  const isRobot = ({ user_agent: agent = '' }: Line): boolean => isbot(String(agent));
  const wantsHtml = ({ accept = '' }: Line): boolean => String(accept).includes('text/html');
  const wantsAny = ({ accept = '' }: Line): boolean => accept === '' || accept === '*/*';
  return {
    people: shown.filter((line) => !isRobot(line) && wantsHtml(line)),
    robots: shown.filter((line) => isRobot(line) && (wantsHtml(line) || wantsAny(line))),
  };
}

function languageOf({ accept_language: field = '' }: Line): string {
  if (field === '') return '(none)';
  return /^(?:de|fr)/.exec(String(field))?.[0] ?? '(unknown)';
}

function hostOf({ referer = '' }: Line): string {
  const names = new Map([
    ['', '(none)'],
    ['https://search.example/?q=a', 'search.example'],
    ['http://localhost/other', '(this site)'],
  ]);
  return names.get(String(referer)) ?? '(unknown)';
}

function kindOf({ source = '', cache }: Line): string {
  if (cache === 'hit') return 'cache';
  if (String(source).startsWith('proxy:')) return 'proxied';
  return String(source).startsWith('disk:') ? 'disk' : 'stored';
}

suite('the summary of visits', () => {
  test('has the numbers of the access log', async () => {
    const site = await started();
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const choose = chooser(1);
    const requests = 400;
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let at = 0; at < requests / 4; at += 1) await send(site, agent, choose);
      }),
    );
    agent.destroy();
    // An answer has its line at its end; the last one may be written after its client has it.
    while (site.logged().split('"msg":"request"').length <= requests) await setImmediate();
    const lines = site
      .logged()
      .split('\n')
      .filter((line) => line.includes('"msg":"request"'))
      .map((line) => JSON.parse(line) as Line);
    assert.equal(lines.length, requests);
    const { data, error } = await site.call('svc1.visit.summary', {});
    assert.equal(error, undefined);

    const { people, robots } = visitsIn(lines);
    assert.ok(people.length > 20 && robots.length > 20, `${people.length} ${robots.length}`);
    assert.deepEqual([data.visits, data.robots], [people.length, robots.length]);
    assert.deepEqual(data.days.at(-1), {
      day: data.until,
      visits: people.length,
      robots: robots.length,
    });
    assert.deepEqual(
      data.pages
        .map(({ path, visits }: { path: string; visits: number }) => ({ name: path, visits }))
        .filter(({ visits }: { visits: number }) => visits > 0)
        .toSorted((one: { name: string }, other: { name: string }) =>
          one.name < other.name ? -1 : 1,
        ),
      counted(people.map(({ path }) => String(path))).toSorted((one, other) =>
        JSON.stringify(one) < JSON.stringify(other) ? -1 : 1,
      ),
    );
    assert.deepEqual(data.sources, counted(people.map(kindOf)));
    assert.deepEqual(data.languages, counted(people.map(languageOf)));
    assert.deepEqual(data.hosts, counted(people.map(hostOf)));
    const device = ({ user_agent: agentName = '' }: Line): string =>
      agentName === phone ? 'mobile' : agentName === browser ? 'desktop' : '(unknown)';
    assert.deepEqual(data.devices, counted(people.map(device)));

    const { requests: all } = data;
    assert.equal(all.answers, requests);
    assert.deepEqual(
      Object.entries(all.statuses)
        .map(([name, visits]) => ({ name, visits }))
        .toSorted((one, other) => Number(other.visits) - Number(one.visits)),
      counted(lines.map(({ status }) => `${String(status).slice(0, 1)}xx`)),
    );
    const found = all.sources as { source: string; answers: number; failed: number }[];
    assert.deepEqual(
      found.map(({ source, answers }) => ({ name: source, visits: answers })),
      counted(lines.map(({ source }) => String(source))),
    );
    for (const { source, failed } of found) {
      const lost = lines.filter((line) => line.source === source && Number(line.status) >= 500);
      assert.equal(failed, lost.length, source);
    }
    const refused = lines.filter(({ status }) => [401, 403, 429].includes(Number(status)));
    assert.deepEqual(
      all.refused.map(
        (one: { source: string; status: number; reason: string; answers: number }) => ({
          name: `${one.source} ${one.status} ${one.reason}`,
          visits: one.answers,
        }),
      ),
      counted(refused.map((one) => `${one.source} ${one.status} ${one.reason}`)),
    );
    const reasons = all.refused.map(({ source, reason }: Line) => `${source} ${reason}`);
    assert.ok(reasons.includes('access:staff deny'), reasons.join());
    assert.ok(reasons.includes('rate:few rate_limited'), reasons.join());
    assert.ok(reasons.includes('none unauthenticated'), reasons.join());
  });
});

const dayMs = 86_400_000;

async function counter(t: TestContext, retentionMs = 30 * dayMs, folder?: string) {
  const data = folder ?? (await temporaryFolder(t));
  await prepareVisitDatabase(data);
  const database = new VisitDatabase(data);
  const state = { nowMs: 20_000 * dayMs };
  const visits = new RequestVisits(database, {
    ...{ retentionMs, log: silentLog },
    now: () => state.nowMs,
  });
  t.after(async () => {
    await visits.close();
    await database.close();
  });
  return { data, database, visits, state };
}

const entry: AccessEntry = {
  ...{ address: '192.0.2.1', method: 'GET', target: '/', host: 'one.example', httpVersion: '1.1' },
  ...{ userAgent: browser, referer: '', accept: html, acceptLanguage: 'de', purpose: '' },
  ...{ status: 200, bytes: 1, durationMs: 1, source: 'disk:site', keyId: undefined, cut: false },
};

const origin = 'https://one.example';

async function rowsOf<T>(rows: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const one of rows) found.push(one);
  return found;
}

suite('the counts of requests', () => {
  test('are bounded for ever new paths, hosts, languages, browsers and origins', async (t) => {
    const { database, visits, state } = await counter(t);
    const { nowMs } = state;
    const span = { from: '1970-01-01', until: '2999-01-01' };
    const all = 4 * pagesPerDayMax;
    for (let at = 0; at < all; at += 1) {
      const more = {
        userAgent: `${browser} ${at}`,
        referer: `https://${at}.${'x'.repeat(60)}.example/`,
        acceptLanguage: String.fromCharCode(97 + (at % 26), 97 + ((at >> 5) % 26)),
      };
      const place = { origin: `https://${at % 300}.example`, path: `/${at}${'y'.repeat(8_000)}` };
      visits.add({ ...entry, ...more }, { place, country: undefined, nowMs });
      // A page that is really visited keeps its place.
      visits.add(entry, { place: { origin, path: '/' }, country: 'CH', nowMs });
      if (at % 500 === 0) await visits.flush();
    }
    await visits.flush();
    const pages = await rowsOf(database.pages.ofAll(span));
    assert.ok(pages.length <= pagesPerDayMax + 1, String(pages.length));
    assert.equal(
      pages.reduce((sum, { counts }) => sum + counts.visits, 0),
      2 * all,
    );
    assert.equal(pages.find(({ path }) => path === '/')?.counts.visits, all);
    for (const { path, counts } of pages) {
      assert.ok(path.length <= 512);
      for (const names of [counts.hosts, counts.languages, counts.devices, counts.countries]) {
        assert.ok(names.size <= pageNamesMax + 1);
        for (const name of names.keys()) assert.ok(name.length <= 64);
      }
    }
    const [site, ...others] = await rowsOf(database.site.ofAll(span));
    assert.equal(others.length, 0);
    assert.equal(site?.counts.visits, 2 * all);
    assert.ok(site.counts.hosts.size <= visitNamesMax + 1);
    assert.ok(site.counts.origins.size <= visitNamesMax + 1);
    assert.equal(site.counts.origins.get(origin), all);
  });

  test('of several processes and days are added up, also around midnight', async (t) => {
    const one = await counter(t);
    const other = await counter(t, 30 * dayMs, one.data);
    const place = { origin, path: '/' };
    const { nowMs } = one.state;
    const at = (ms: number) => ({ place, country: 'CH', nowMs: nowMs + ms });
    one.visits.add(entry, at(0));
    one.visits.add(entry, at(dayMs));
    one.visits.add(entry, at(-1));
    other.visits.add(entry, at(1));
    await Promise.all([one.visits.flush(), other.visits.flush()]);
    one.visits.add(entry, at(2));
    await one.visits.flush();
    const span = { from: '1970-01-01', until: '2999-01-01' };
    const days = [...one.visits.ofPage('/', undefined, span)];
    assert.deepEqual(
      days.map(({ counts }) => counts.visits),
      [1, 3, 1],
    );
  });

  test('of many are a sample, while statuses and refusals stay exact', async (t) => {
    const { visits, database, state } = await counter(t);
    const asked = { place: { origin, path: '/' }, country: 'CH', nowMs: state.nowMs };
    const more = 10 * sampledRequests;
    for (let at = 0; at < requestsCountedMax + more; at += 1) visits.add(entry, asked);
    const refused = { ...entry, status: 403, source: 'access:staff', reason: 'deny' };
    for (let at = 0; at < 20; at += 1) visits.add(refused, asked);
    await visits.flush();
    const [site] = await rowsOf(database.site.ofAll({ from: '1970', until: '2999' }));
    assert.equal(site?.counts.visits, requestsCountedMax + more);
    assert.equal(site.counts.statuses.get('2xx'), requestsCountedMax + more);
    assert.deepEqual([...site.counts.refused.values()], [20]);
    // After a write, each visit counts again.
    visits.add(entry, asked);
    await visits.flush();
    const [later] = await rowsOf(database.site.ofAll({ from: '1970', until: '2999' }));
    assert.equal(later?.counts.visits, requestsCountedMax + more + 1);
  });

  test('are not made with retention = no', async (t) => {
    const { visits, database, state } = await counter(t, 0);
    const place = { origin, path: '/' };
    visits.add(entry, { place, country: undefined, nowMs: state.nowMs });
    await visits.flush();
    assert.deepEqual(await rowsOf(database.site.ofAll({ from: '1970', until: '2999' })), []);
  });
});

test('a key with bounds sees the pages inside them, and no sums of the server', async () => {
  const site = await startSite(
    { after },
    {
      ini: '[disk.site]\nroot = site',
      files: { 'site/blog/index.html': 'blog', 'site/index.html': 'index' },
    },
  );
  const headers = { accept: html, 'user-agent': browser };
  for (const path of ['/', '/', '/blog/']) await (await fetch(site.url + path, { headers })).text();
  const v = { name: 'blog', scopes: ['read'], paths: ['/blog/'] };
  const made = await site.call('svc1.key.insert', v);
  const apikey = made.data.key as string;
  const { data } = await site.call('svc1.visit.summary', {}, { apikey });
  assert.equal(data.visits, 1);
  assert.deepEqual(
    data.pages.map(({ path }: { path: string }) => path),
    ['/blog/'],
  );
  assert.equal(data.requests, undefined);
  assert.equal(data.origins, undefined);
  const outside = await site.call('svc1.visit.summary', { path: '/' }, { apikey });
  assert.deepEqual([outside.data.visits, outside.data.pages], [0, []]);
  const whole = await site.call('svc1.visit.summary', {});
  assert.equal(whole.data.visits, 3);
  assert.deepEqual(whole.data.requests.statuses['2xx'] > 3, true);
});
