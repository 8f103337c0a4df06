import assert from 'node:assert/strict';
import http, { createServer } from 'node:http';
import { once } from 'node:events';
import { test } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';

const rule = 'svc1.userinterface';
const draft = 'spring';

interface Preview {
  readonly id: string;
  readonly url: string;
  readonly cookie: string;
}

/** Makes a preview, and opens its link. */
async function openPreview(site: TestSite, more: object = {}): Promise<Preview> {
  const { data } = await site.call('svc1.draft.preview', { draft, ...more });
  const opened = await fetch(data.url, { redirect: 'manual' });
  assert.equal(opened.status, 302);
  assert.equal(opened.headers.get('location'), '/');
  assert.equal(opened.headers.get('cache-control'), 'no-store');
  assert.equal(opened.headers.get('referrer-policy'), 'no-referrer');
  const [cookie = ''] = opened.headers.getSetCookie();
  assert.match(cookie, /; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
  return { id: data.id, url: data.url, cookie: cookie.split(';')[0] ?? '' };
}

test('the link of a preview leads to a page of the site, and to no other site', async (t) => {
  const site = await siteWithDraft(t);
  const { data } = await site.call('svc1.draft.preview', { draft });
  for (const [to, place] of [
    ['/a%20b?c=d', '/a%20b?c=d'],
    ['/x/../y', '/y'],
    ...['//evil.example', '/\\evil.example', 'https://evil.example', 'evil', '/a\r\n/b', ''].map(
      (one) => [one, one.startsWith('/a') ? '/a/b' : '/'] as const,
    ),
    ['/.//evil.example', '/'],
  ] as const) {
    const url = `${data.url as string}?to=${encodeURIComponent(to)}`;
    const opened = await fetch(url, { redirect: 'manual' });
    assert.equal(opened.headers.get('location'), place, to);
  }
});

async function seen(site: TestSite, path: string, cookie?: string): Promise<string> {
  const response = await fetch(site.url + path, {
    headers: cookie === undefined ? {} : { cookie },
  });
  if (cookie !== undefined) assert.equal(response.headers.get('cache-control'), 'no-store');
  return response.text();
}

async function siteWithDraft(
  t: Parameters<typeof startSite>[0],
  more = '',
  files: Readonly<Record<string, string>> = {},
): Promise<TestSite> {
  const rules = [
    { path: '/', kind: 'content', content: '<h1>live</h1>' },
    { path: 'sale', kind: 'resolve', enginedata: { target: '/live' } },
  ];
  const ini = `[fetch]\nallow_private = 127.0.0.0/8\n${more}`;
  const site = await startSite(t, { rules, ini, files });
  await site.call('svc1.draft.insert', { name: draft });
  const { data } = await site.call(`${rule}.list`, {});
  for (const row of data.rows as readonly { id: string; path: string }[]) {
    const fields =
      row.path === '/' ? { content: '<h1>drafted</h1>' } : { enginedata: { target: '/drafted' } };
    await site.call(`${rule}.edit`, { id: row.id, ...fields }, { draft });
  }
  return site;
}

test('a preview shows the draft with a bar, and visitors see the live site', async (t) => {
  const site = await siteWithDraft(t);
  const live = await seen(site, '/');
  const { cookie } = await openPreview(site);
  for (let time = 0; time < 3; time += 1) {
    assert.equal(await seen(site, '/'), live);
    const shown = await seen(site, '/', cookie);
    assert.match(shown, /^<h1>drafted<\/h1><aside [^>]*>Draft spring: not live\./);
    assert.match(shown, /href="\/svc1\/preview\/end"/);
  }
  const link = `${site.url}/svc1/userinterface.link.htm?k=sale`;
  const led = async (headers: Record<string, string>) =>
    (await fetch(link, { redirect: 'manual', headers })).headers.get('location');
  assert.deepEqual([await led({}), await led({ cookie })], ['/live', '/drafted']);
  const render = `${site.url}/svc1/userinterface/get?_v.origin=${site.url}&_v.path=/`;
  assert.match(await (await fetch(render, { headers: { cookie } })).text(), /drafted/);
  assert.match(await (await fetch(render)).text(), /live/);
  const { data: visits } = await site.call('svc1.breadcrumb.visits', { k: 'sale' });
  assert.doesNotMatch(JSON.stringify(visits), /drafted/);
});

test('the access log does not have the link of a preview', async (t) => {
  const site = await siteWithDraft(t);
  const { url } = await openPreview(site);
  await site.untilLogged(/ 302 GET \S+\/svc1\/preview\/… /);
  assert.ok(!site.logged().includes(url.slice(-20)));
});

test('a preview ends by time, by revocation, and with its draft', async (t) => {
  const site = await siteWithDraft(t);
  const first = await openPreview(site);
  const second = await openPreview(site);
  const read = await site.call('svc1.draft.read', { draft });
  assert.deepEqual(
    read.data.previews.map((one: { id: string }) => one.id),
    [first.id, second.id],
  );
  assert.doesNotMatch(JSON.stringify(read.data), /hash/);
  await site.call('svc1.draft.revoke', { draft, id: first.id });
  assert.match(await (await fetch(site.url, { headers: { cookie: first.cookie } })).text(), /live/);
  assert.equal((await fetch(first.url, { redirect: 'manual' })).status, 404);
  assert.match(await seen(site, '/', second.cookie), /drafted/);
  await site.call('svc1.draft.invalidate', { draft });
  assert.match(
    await (await fetch(site.url, { headers: { cookie: second.cookie } })).text(),
    /live/,
  );
  const guessed = `${second.url.slice(0, -4)}AAAA`;
  assert.equal((await fetch(guessed, { redirect: 'manual' })).status, 404);
  const left = await fetch(`${site.url}/svc1/preview/end`, { redirect: 'manual' });
  assert.match(left.headers.getSetCookie()[0] ?? '', /^waymark_draft=; Path=\/; Max-Age=0;/);
});

/** Fields by which proxies and delivery networks store what has no-store. */
const storing = [
  ...['cdn-cache-control', 'cloudflare-cdn-cache-control', 'surrogate-control'],
  ...['x-accel-expires', 'edge-control'],
];

test('no source gets the token, and a page of a preview writes nothing', async (t) => {
  const site = await siteWithDraft(t);
  const cookies: (string | undefined)[] = [];
  const source = createServer((request, response) => {
    cookies.push(request.headers.cookie);
    response.setHeader('content-type', 'text/html');
    for (const name of storing) response.setHeader(name, 'max-age=600');
    response.end('<p>far</p>');
  });
  source.listen(0, '127.0.0.1');
  await once(source, 'listening');
  t.after(() => source.close());
  const { port } = source.address() as { port: number };
  const enginedata = { source: `http://127.0.0.1:${port}/*`, pass: ['cookie'] };
  const far = { path: '/far/*', kind: 'content.fetch', enginedata };
  await site.call(`${rule}.insert`, far, { draft });
  const { cookie } = await openPreview(site);
  assert.match(await seen(site, '/far/a', `${cookie}; theme=dark`), /^<p>far<\/p><aside/);
  assert.match(await seen(site, '/far/a', cookie), /^<p>far/);
  assert.deepEqual(cookies, ['theme=dark', undefined]);
  const { headers } = await fetch(`${site.url}/far/a`, { headers: { cookie } });
  const content = `${site.url}/svc1/userinterface/get_content?_v.path=/far/a`;
  const asked = `${content}&_v.origin=${encodeURIComponent(site.url)}`;
  const drafted = await fetch(asked, { headers: { cookie } });
  assert.equal(drafted.status, 200);
  for (const name of storing) {
    assert.equal(headers.get(name), null, name);
    assert.equal(drafted.headers.get(name), null, name);
  }
  const table = { name: 'notes', schema: { properties: {} }, insert: ['anonymous'] };
  await site.call('svc1.table.insert', table);
  const written = await fetch(`${site.url}/svc1/record/insert`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json' },
    body: JSON.stringify({ v: { table: 'notes', text: 'x' } }),
  });
  assert.equal(written.status, 403);
});

test('a key that may not read the site makes no link', async (t) => {
  const site = await siteWithDraft(t);
  const { data } = await site.call('svc1.key.insert', { name: 'writer', scopes: ['draft'] });
  const refused = await site.call('svc1.draft.preview', { draft }, { apikey: data.key });
  assert.equal(refused.error?.code, 'forbidden');
});

/** Makes a key, and a call of it in the draft. */
async function author(site: TestSite, scopes: readonly string[]) {
  const { data } = await site.call('svc1.key.insert', { name: scopes.join(), scopes });
  const apikey = data.key as string;
  const write = async (v: object, name = 'insert') => {
    const answer = await site.call(`${rule}.${name}`, v, { apikey, draft });
    assert.equal(answer.error, undefined, answer.error?.message ?? '');
    return answer.data;
  };
  return { id: data.id as string, apikey, write };
}

const sandbox = 'sandbox allow-same-origin allow-popups allow-downloads';
const script = '<script>fetch("/stolen")</script>';

/** The answer to a browser that previews. */
function browse(site: TestSite, path: string, { cookie }: Preview, more: object = {}) {
  const headers = { cookie, 'sec-fetch-dest': 'document', ...more };
  return fetch(site.url + path, { headers, redirect: 'manual' });
}

test('a page runs scripts in a preview only if all authors of the draft may design', async (t) => {
  const site = await siteWithDraft(t);
  const designer = await author(site, ['read', 'design']);
  const drafter = await author(site, ['read', 'draft', 'publish']);
  await designer.write({ path: '/own', content: script });
  const preview = await openPreview(site);
  for (const path of ['/', '/own']) {
    const trusted = await browse(site, path, preview);
    assert.equal(trusted.headers.get('content-security-policy'), null, path);
  }
  const svg = { contenttype: 'image/svg+xml', content: '<svg/>' };
  const wide = {
    ...{ 'Clear-Site-Data': '"*"', 'Set-Cookie': 'session=fixed', 'X-Kind': 'drafted' },
    ...{ 'Content-Security-Policy': 'sandbox allow-scripts allow-same-origin' },
  };
  const evil = await drafter.write({ path: '/evil', content: script, headers: wide });
  await drafter.write({ path: '/evil.svg', ...svg });
  await drafter.write({ path: 'evil', kind: 'resolve', enginedata: { html: script } });
  // The pages of others get its scripts, too, such as /app.js.
  const key = `/svc1/userinterface.link.htm?k=evil`;
  for (const path of ['/', '/own', '/evil', '/evil.svg', key]) {
    const { headers, status } = await browse(site, path, preview);
    assert.equal(status, 200, path);
    assert.match(headers.get('content-security-policy') ?? '', new RegExp(`${sandbox}$`), path);
    for (const name of ['clear-site-data', 'set-cookie']) assert.equal(headers.get(name), null);
  }
  const shown = await browse(site, '/evil', preview);
  assert.equal(shown.headers.get('x-kind'), 'drafted');
  assert.match(await shown.text(), /not live\. Scripts and forms are off/);
  const live = await fetch(site.url);
  assert.equal(live.headers.get('content-security-policy'), null);

  await drafter.write({ id: evil.id, content: 'plain' }, 'edit');
  await site.call('svc1.key.revoke', { id: designer.id });
  const later = await browse(site, '/own', preview);
  assert.match(later.headers.get('content-security-policy') ?? '', /sandbox/);
});

test('no field of [headers] lets a preview run the scripts of a drafter', async (t) => {
  const site = await siteWithDraft(t, '[headers.all]\nsecurity = strict\n');
  const drafter = await author(site, ['read', 'draft']);
  const content = '<script nonce="${nonce}">a()</script>';
  await drafter.write({ path: '/own', content });
  await drafter.write({ path: '/none', content, headers: { 'Content-Security-Policy': '' } });
  const preview = await openPreview(site);
  for (const path of ['/', '/own', '/none']) {
    const { headers, text } = await browse(site, path, preview).then(async (reply) => {
      return { headers: reply.headers, text: await reply.text() };
    });
    const policy = headers.get('content-security-policy') ?? '';
    assert.match(policy, new RegExp(`^default-src 'self'.*, ${sandbox}$`), path);
    assert.match(headers.get('cache-control') ?? '', /no-store/, path);
    assert.match(text, /not live\. Scripts and forms are off/, path);
  }
});

test('a draft of a drafter gets no credentials, and no worker', async (t) => {
  const site = await siteWithDraft(t);
  const drafter = await author(site, ['read', 'draft']);
  const sent: (readonly (string | undefined)[])[] = [];
  const source = createServer(({ headers: { cookie, authorization } }, response) => {
    sent.push([cookie, authorization]);
    response.end('far');
  });
  source.listen(0, '127.0.0.1');
  await once(source, 'listening');
  t.after(() => source.close());
  const { port } = source.address() as { port: number };
  const pass = ['cookie', 'authorization'];
  const enginedata = { source: `http://127.0.0.1:${port}/*`, pass };
  await drafter.write({ path: '/far/*', kind: 'content.fetch', enginedata });
  await drafter.write({ path: '/worker.js', contenttype: 'text/javascript', content: 'evil' });
  const preview = await openPreview(site);
  const own = { cookie: `${preview.cookie}; session=1`, authorization: 'Basic YTpi' };
  assert.equal(await (await browse(site, '/far/a', preview, own)).text(), 'far');
  assert.deepEqual(sent, [[undefined, undefined]]);
  assert.equal((await browse(site, '/worker.js', preview)).status, 200);
  const worker = { 'service-worker': 'script' };
  assert.equal((await browse(site, '/worker.js', preview, worker)).status, 404);
  // Another tab shows the live site: its scripts are no business of the draft.
  const kinds = ['script', 'worker', 'sharedworker', 'audioworklet', 'xslt', 'manifest', 'new', ''];
  for (const kind of kinds) {
    const asked = await browse(site, '/worker.js', preview, { 'sec-fetch-dest': kind });
    assert.equal(asked.status, 404, kind);
  }
  const image = await browse(site, '/worker.js', preview, { 'sec-fetch-dest': 'image' });
  assert.equal(image.status, 200);
});

test('a script of the live site gets nothing of a draft of a drafter', async (t) => {
  const site = await siteWithDraft(t);
  const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/part`;
  const urls = [
    '/part',
    ...['get', 'get_render', 'get_content'].map((one) => `/svc1/userinterface/${one}?${place}`),
    '/svc1/userinterface.link.htm?k=/short',
  ];
  const drafter = await author(site, ['read', 'draft']);
  const designer = await author(site, ['read', 'design']);
  const part = { path: '/part', content: 'drafted', enginedata: { html: 'drafted' } };
  await designer.write(part);
  await designer.write({ path: '/short', kind: 'resolve', enginedata: { html: 'drafted' } });
  const shown = async (url: string, to: string) => {
    const reply = await browse(site, url, preview, { 'sec-fetch-dest': to });
    return [reply.status, (await reply.text()).includes('drafted')];
  };
  const preview = await openPreview(site);
  for (const url of urls.slice(1)) assert.deepEqual(await shown(url, 'empty'), [200, true], url);
  await drafter.write({ path: '/other', content: 'x' });
  for (const url of urls) {
    for (const to of ['empty', 'script', 'json']) {
      assert.deepEqual(await shown(url, to), [404, false], `${to} ${url}`);
    }
  }
  // What the page of the preview itself loads.
  assert.deepEqual(await shown(urls.at(-1) ?? '', 'document'), [200, true]);
});

test('a browser without Sec-Fetch-Dest gets of such a draft what no script asks for', async (t) => {
  const site = await siteWithDraft(t);
  const drafter = await author(site, ['read', 'draft']);
  await drafter.write({ path: '/part', contenttype: 'text/javascript', content: 'drafted' });
  const { cookie } = await openPreview(site);
  const opens = { 'upgrade-insecure-requests': '1' };
  const html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  for (const [headers, status] of [
    [{ accept: html, ...opens }, 200],
    [{ accept: 'image/avif,image/webp,*/*;q=0.8' }, 200],
    [{ accept: 'text/css,*/*;q=0.1' }, 200],
    [{ accept: '*/*' }, 404],
    // A script of the live site that fetches a part of a page (htmx, Turbo).
    [{ accept: html }, 404],
    [{ accept: '*/*', ...opens }, 404],
    [{ accept: 'application/json' }, 404],
    [{}, 404],
  ] as const) {
    // Node's own fetch sends more fields.
    const asked = http.get(`${site.url}/part`, { agent: false, headers: { ...headers, cookie } });
    const [answer] = (await once(asked, 'response')) as [http.IncomingMessage];
    answer.resume();
    assert.equal(answer.statusCode, status, JSON.stringify(headers));
  }
});

test('no answer of a preview of a drafter runs scripts, errors included', async (t) => {
  const ini =
    '[disk.site]\nroot = site\nerrors = errors\n[access.in]\npath = /in/*\nallow = 192.0.2.1\n';
  const site = await siteWithDraft(t, ini, {
    'site/errors/4xx.html': '<script src="/a.js"></script>',
  });
  const drafter = await author(site, ['read', 'draft']);
  await drafter.write({ path: '/part', content: script });
  const preview = await openPreview(site);
  for (const [method, path, status] of [
    ['GET', '/none', 404],
    ['HEAD', '/none', 404],
    ['POST', '/part', 405],
    ['GET', '/in/a', 403],
  ] as const) {
    const headers = { cookie: preview.cookie, 'sec-fetch-dest': 'document' };
    const shown = await fetch(site.url + path, { method, headers });
    assert.equal(shown.status, status, path);
    const policy = shown.headers.get('content-security-policy') ?? '';
    assert.match(policy, new RegExp(`${sandbox}$`), `${method} ${path}`);
  }
});

test('what a page loads opens no preview', async (t) => {
  const site = await siteWithDraft(t);
  const { data } = await site.call('svc1.draft.preview', { draft });
  for (const to of ['image', 'style', 'empty', 'iframe', 'script', 'anything']) {
    const headers = { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': to };
    const asked = await fetch(data.url, { headers, redirect: 'manual' });
    assert.deepEqual([asked.status, asked.headers.getSetCookie()], [200, []], to);
  }
  const headers = { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'document' };
  const opened = await fetch(data.url, { headers, redirect: 'manual' });
  assert.equal(opened.headers.getSetCookie().length, 1);
  const old = { accept: 'image/avif,image/webp,*/*;q=0.8' };
  const pictured = await fetch(data.url, { headers: old, redirect: 'manual' });
  assert.deepEqual(pictured.headers.getSetCookie(), []);
  const looked = await fetch(data.url, { method: 'HEAD', redirect: 'manual' });
  assert.deepEqual(looked.headers.getSetCookie(), []);
});

test('a link that another site leads to asks first', async (t) => {
  const site = await siteWithDraft(t);
  const { data } = await site.call('svc1.draft.preview', { draft });
  const open = (method: string, headers: Record<string, string>) =>
    fetch(data.url, { method, headers, redirect: 'manual' });
  for (const from of ['cross-site', 'same-site', 'anything']) {
    const asked = await open('GET', { 'sec-fetch-site': from });
    assert.deepEqual([asked.status, asked.headers.getSetCookie()], [200, []]);
    assert.match(asked.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
    assert.equal(asked.headers.get('referrer-policy'), 'same-origin');
    assert.match(await asked.text(), /<b>spring<\/b>[^]*<form method="post">/);
    const forced = await open('POST', { 'sec-fetch-site': from, origin: site.url });
    assert.deepEqual([forced.status, forced.headers.getSetCookie()], [403, []]);
  }
  for (const headers of [{}, { origin: 'null' }, { origin: 'https://evil.example' }]) {
    assert.equal((await open('POST', headers as Record<string, string>)).status, 403);
  }
  for (const [method, headers, status] of [
    ['POST', { 'sec-fetch-site': 'same-origin' }, 303],
    ['POST', { origin: site.url }, 303],
    ['GET', { 'sec-fetch-site': 'same-origin' }, 302],
    ['GET', { 'sec-fetch-site': 'none' }, 302],
  ] as const) {
    const opened = await open(method, headers);
    assert.equal(opened.status, status);
    assert.match(opened.headers.getSetCookie()[0] ?? '', /^waymark_draft=\w/);
  }
  assert.equal((await open('PUT', {})).status, 405);
});

test('a link ends with the key that made it', async (t) => {
  const site = await siteWithDraft(t);
  const { id, apikey } = await author(site, ['read', 'draft']);
  const { data } = await site.call('svc1.draft.preview', { draft }, { apikey });
  const opened = await fetch(data.url, { redirect: 'manual' });
  const [cookie = ''] = opened.headers.getSetCookie();
  const headers = { cookie: cookie.split(';')[0] ?? '' };
  assert.match(await (await fetch(site.url, { headers })).text(), /drafted/);
  await site.call('svc1.key.revoke', { id });
  assert.equal((await fetch(data.url, { redirect: 'manual' })).status, 404);
  assert.match(await (await fetch(site.url, { headers })).text(), /live/);
});
