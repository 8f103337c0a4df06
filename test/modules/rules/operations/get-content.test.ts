import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import type { Cleaning } from '../../../folder.ts';
import { openSocket, startSite, type TestSite } from '../../../harness.ts';
import { httpSource } from '../../../core/outbound/sources.ts';

const data = { word: 'Hello' };
const branch = (condition: object, word: string) => ({
  if: condition,
  enginedata: { data: { word } },
});
const started = startSite(
  { after },
  {
    rules: [
      {
        path: '/greeting',
        kind: 'content',
        engine: 'template',
        enginedata: {
          when: [
            branch({ country: 'CH' }, 'Grüezi'),
            branch({ device: 'mobile' }, 'Hi'),
            branch({ user: '*' }, 'Welcome'),
            branch({ before: '2026-01-01' }, 'Long ago'),
          ],
          render: 'server',
          template: '<h1>{{ data.word }} {{ user.name }}</h1>',
          data,
        },
      },
      { path: '/two', kind: 'content', lang: 'en', content: '<h1>Hello</h1>' },
      { path: '/two', kind: 'content', lang: 'de', content: '<h1>Hallo</h1>' },
    ],
  },
);

async function shownOver(transport: string, v: object): Promise<string> {
  const site = await started;
  if (transport === 'websocket') {
    const socket = await site.socket(site.adminKey);
    const answer = await socket.call('svc1.userinterface.get_content', v);
    return answer.data.content as string;
  }
  const reply = await fetch(`${site.url}/svc1/userinterface/get_content`, {
    method: 'POST',
    headers: { apikey: site.adminKey, 'content-type': 'application/json' },
    body: JSON.stringify({ v }),
  });
  return reply.text();
}

suite('get_content for another visitor', () => {
  const cases: readonly (readonly [path: string, visitor: object, shown: string])[] = [
    ['/greeting', { country: 'CH' }, 'Grüezi '],
    ['/greeting', { country: 'DE', device: 'mobile' }, 'Hi '],
    ['/greeting', { user: 'Ada' }, 'Welcome Ada'],
    ['/greeting', { at: '2025-06-01T12:00:00Z' }, 'Long ago '],
    ['/greeting', { lang: 'de' }, 'Hello '],
    ['/two', { lang: 'de' }, 'Hallo'],
    ['/two', { lang: 'en' }, 'Hello'],
    ['/two', { country: 'CH', headers: { 'accept-language': 'de' } }, 'Hallo'],
  ];
  for (const transport of ['HTTP', 'websocket']) {
    for (const [path, visitor, shown] of cases) {
      test(`shows ${path} to ${JSON.stringify(visitor)} over ${transport}`, async () => {
        const { url } = await started;
        const body = await shownOver(transport, { origin: url, path, ...visitor });
        assert.ok(body.includes(`<h1>${shown}</h1>`), body);
      });
    }
  }

  test('needs the scope read, and an impossible visitor is refused', async () => {
    const site = await started;
    const { data: key } = await site.call('svc1.key.insert', { name: 'x', scopes: ['render'] });
    const place = { origin: site.url, path: '/greeting' };
    const refused = async (apikey: string | undefined, visitor: object) => {
      const v = { ...place, ...visitor };
      const { error } = await site.call('svc1.userinterface.get_content', v, { apikey });
      return [error?.code, error?.field];
    };
    const user = { user: 'Ada' };
    assert.deepEqual(await refused(undefined, user), ['unauthenticated', 'user']);
    assert.deepEqual(await refused(key.key as string, user), ['forbidden', 'user']);
    assert.deepEqual(await refused(site.adminKey, { country: 'XYZ' }), ['invalid', 'country']);
    assert.deepEqual(await refused(site.adminKey, { role: 'staff' }), ['invalid', 'role']);
  });

  test('is for no cache, nor is the past', async () => {
    const site = await started;
    const caching = async (more: string) => {
      const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/two${more}`;
      const headers = { apikey: site.adminKey };
      const reply = await fetch(`${site.url}/svc1/userinterface/get_content?${place}`, { headers });
      assert.equal(reply.status, 200);
      return reply.headers.get('cache-control');
    };
    const own = await caching('');
    assert.notEqual(own, 'no-store');
    assert.equal(await caching('&_v.country=CH'), 'no-store');
    assert.equal(await caching('&_v.as_of=3'), 'no-store');
  });
});

const html = { accept: 'text/html' };

/** A site whose own 404 page, pages, file and generic page a visitor and get_content ask for. */
function startPlain(t: Cleaning) {
  const generic = { kind: 'content', engine: 'html', enginedata: { html: '<p>shown</p>' } };
  return startSite(t, {
    ini: '[disk.site]\nroot = site\nerrors = errors\n',
    files: {
      'site/errors/404.html': '<h1>Our 404</h1>',
      'site/file.txt': '0123456789',
    },
    rules: [
      { path: '/two', kind: 'content', lang: 'en', content: '<h1>Hello</h1>' },
      { path: '/two', kind: 'content', lang: 'de', content: '<h1>Hallo</h1>' },
      { path: '/shown', ...generic },
    ],
  });
}

const plainSite = startPlain({ after });
const plainUrl = ({ url }: TestSite, path: string) =>
  `${url}/svc1/userinterface/get_content?_v.origin=${encodeURIComponent(url)}&_v.path=${path}`;

async function seenOf(reply: Response) {
  const fields = ['content-type', 'content-range', 'content-language', 'etag'];
  const shown = fields.map((name) => [name, reply.headers.get(name)]);
  return [reply.status, ...shown, await reply.text()];
}

suite('get_content as a visitor would get it', () => {
  for (const [path, headers] of [
    ['/nowhere', html],
    ['/two', html],
    ['/two', { 'accept-language': 'de' }],
    ['/two', { 'accept-language': 'en-GB, de;q=0.5' }],
    ['/file.txt', { range: 'bytes=2-4' }],
    ['/file.txt', { range: 'bytes=90-' }],
    ['/file.txt', { range: 'bytes=2-4', 'if-range': '"other"' }],
    ['/file.txt', { 'if-match': '"other"' }],
    ['/shown', html],
  ] as const) {
    test(`answers ${path} with ${JSON.stringify(headers)} by a plain URL`, async () => {
      const site = await plainSite;
      const visited = await seenOf(await fetch(site.url + path, { headers }));
      const own = await seenOf(await fetch(plainUrl(site, path), { headers }));
      // The number of a failure is its own.
      const numbered = /[0-9a-f]{8}-[0-9a-f-]{27}/g;
      assert.deepEqual(
        JSON.parse(JSON.stringify(own).replaceAll(numbered, 'id')),
        JSON.parse(JSON.stringify(visited).replaceAll(numbered, 'id')),
      );
    });
  }

  for (const path of ['/two', '/file.txt', '/shown']) {
    test(`is 304 for ${path} that the caller has, by a plain URL and over the websocket`, async () => {
      const site = await plainSite;
      const first = await fetch(plainUrl(site, path), { headers: html });
      await first.arrayBuffer();
      const etag = first.headers.get('etag') ?? '';
      assert.match(etag, /"/);
      const known = { ...html, 'if-none-match': etag };
      const again = await fetch(plainUrl(site, path), { headers: known });
      assert.deepEqual([again.status, await again.text()], [304, '']);
      const socket = await site.socket(site.adminKey);
      const v = { origin: site.url, path, headers: known };
      const { data } = await socket.call('svc1.userinterface.get_content', v);
      assert.deepEqual([data.status, data.content], [304, '']);
      // The caller's own field decides, also about one in v.
      const other = `${plainUrl(site, path)}&_v.headers.if-none-match=${encodeURIComponent('"x"')}`;
      assert.equal((await fetch(other, { headers: known })).status, 200);
    });
  }

  test('is the 404 page of the site over the websocket and by POST, or a text for who wants one', async () => {
    const site = await plainSite;
    const socket = await site.socket(site.adminKey);
    const place = { origin: site.url, path: '/nowhere' };
    const get = async (v: object) =>
      (await socket.call('svc1.userinterface.get_content', { ...place, ...v })).data;
    const page = await get({});
    assert.deepEqual(
      [page.status, page.content, page.source, page.headers['cache-control']],
      [404, '<h1>Our 404</h1>', 'disk:site', 'no-store'],
    );
    assert.match((await get({ headers: { accept: 'text/plain' } })).content, /^404 Not Found\n/);
    const post = await fetch(`${site.url}/svc1/userinterface/get_content`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ v: place }),
    });
    assert.deepEqual([post.status, await post.text()], [404, '<h1>Our 404</h1>']);
    const { data: key } = await site.call('svc1.key.insert', {
      ...{ name: 'bound', scopes: ['read', 'render'], paths: ['/blog/'] },
    });
    const asked = { ...place, path: '/blog/none' };
    const bound = await fetch(`${site.url}/svc1/userinterface/get_content`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', apikey: key.key as string },
      body: JSON.stringify({ v: asked }),
    });
    assert.deepEqual([bound.status, await bound.text()], [404, '<h1>Our 404</h1>']);
  });

  test('is without conditions for a POST, and without the language of the caller for another visitor', async () => {
    const site = await plainSite;
    const first = await fetch(plainUrl(site, '/two'));
    await first.arrayBuffer();
    const post = await fetch(`${site.url}/svc1/userinterface/get_content`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'if-none-match': first.headers.get('etag') ?? '',
        range: 'bytes=0-1',
      },
      body: JSON.stringify({ v: { origin: site.url, path: '/two' } }),
    });
    assert.equal(post.status, 200);
    assert.match(await post.text(), /^<h1>/);
    const headers = { apikey: site.adminKey, 'accept-language': 'en' };
    const described = await fetch(`${plainUrl(site, '/two')}&_v.lang=de`, { headers });
    assert.equal(await described.text(), '<h1>Hallo</h1>');
  });

  test('a breadcrumb that leads nowhere shows the same page to a browser', async () => {
    const site = await plainSite;
    const link = `${site.url}/svc1/userinterface.link.htm?k=none`;
    const page = await fetch(link, { headers: html });
    assert.deepEqual([page.status, await page.text()], [404, '<h1>Our 404</h1>']);
    assert.match(await (await fetch(link)).text(), /"code":"not_found"/);
  });
});

suite('get_content for a page of another origin', () => {
  const from = 'https://evil.example';
  const read = (site: TestSite, headers: Readonly<Record<string, string>>) =>
    site.call(
      'svc1.userinterface.get_content',
      { origin: site.url, path: '/app/a' },
      { apikey: undefined, headers },
    );
  const start = async (t: Cleaning, cors: string) => {
    const app = await httpSource(t, (_, response) => response.end('for the network'));
    const proxy = `[proxy.app]\npath = /app/\nsource = ${app.origin}\n`;
    return startSite(t, {
      server: 'trust_proxy = 127.0.0.1',
      ini: `${proxy}[auth]\ncors_origins = ${cors}\n`,
    });
  };

  test('shows nothing of a private network, unless the ini file names that origin', async (t) => {
    const site = await start(t, '*');
    const via = (address: string, origin = from) =>
      read(site, { origin, 'x-forwarded-for': address });
    for (const address of ['10.1.2.3', '127.0.0.1', '192.168.1.9', 'fd00::7', '100.64.0.9']) {
      assert.equal((await via(address)).error?.code, 'forbidden', address);
      assert.equal((await via(address, 'null')).error?.code, 'forbidden', address);
      assert.equal((await via(address, site.url)).status, 200, address);
    }
    for (const address of ['8.8.8.8', '2600::7']) assert.equal((await via(address)).status, 200);
    assert.equal((await read(site, {})).status, 200);
    const named = await start(t, `*, ${from}`);
    assert.equal((await read(named, { origin: from })).status, 200);
  });

  test('shows nothing of it over the websocket either', async (t) => {
    const site = await start(t, '*');
    const url = `${site.url.replace('http', 'ws')}/svc1/ws`;
    const v = { origin: site.url, path: '/app/a' };
    for (const [origin, code] of [
      [from, 'forbidden'],
      [site.url, undefined],
    ] as const) {
      const socket = await openSocket(t, url, undefined, { origin });
      assert.equal((await socket.call('svc1.userinterface.get_content', v)).error?.code, code);
    }
  });
});
