import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { suite, test, type TestContext } from 'node:test';
import { startSite } from '../../harness.ts';
import { httpSource } from '../outbound/sources.ts';

/** A server that answers every request with its method and target, for content.fetch to reach. */
async function startSource(t: TestContext): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'text/plain');
    response.end(`source says ${request.method ?? ''} ${request.url ?? ''}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return `http://127.0.0.1:${address.port}`;
}

const ini = '[fetch]\nallow_private = 127.0.0.0/8\n[disk.site]\nroot = site\n';

suite('the precedence', () => {
  test('is disk, stored page, fetched page, 404', async (t) => {
    const source = await startSource(t);
    const site = await startSite(t, {
      ini: `${ini}[log]\nexplain = yes\n`,
      files: { 'site/both.txt': 'from disk', 'site/index.html': 'home' },
      rules: [
        { path: '/both.txt', kind: 'content', content: 'from the store' },
        {
          path: '/stored.txt',
          kind: 'content',
          content: 'from the store',
          contenttype: 'text/plain',
        },
        { path: '/*', kind: 'content.fetch', enginedata: { source: `${source}/far/*` } },
        { origin: 'http://other.example', path: '/', kind: 'content', content: 'not asked for' },
      ],
    });
    const table = [
      ['/both.txt', 'from disk', /^waymark;desc="disk:site"$/],
      ['/stored.txt', 'from the store', /^waymark;desc="rule:[0-9a-f-]{36}"$/],
      ['/else?q=1', 'source says GET /far/else?q=1', /^waymark;desc="rule:[0-9a-f-]{36}"$/],
      ['/', 'home', /^waymark;desc="disk:site"$/],
    ] as const;
    for (const [path, content, timing] of table) {
      const reply = await fetch(site.url + path);
      assert.equal(await reply.text(), content, path);
      assert.match(reply.headers.get('server-timing') ?? '', timing, path);
    }
  });

  test('ends in a 404, as HTML for a browser and as text for a program', async (t) => {
    const site = await startSite(t, { ini: '' });
    const forPerson = await fetch(`${site.url}/none`, {
      headers: { accept: 'text/html,*/*;q=0.8' },
    });
    assert.equal(forPerson.status, 404);
    assert.match(await forPerson.text(), /<title>404 Not Found<\/title>/);
    const forProgram = await fetch(`${site.url}/none`);
    assert.match(forProgram.headers.get('content-type') ?? '', /^text\/plain/);
    assert.match(await forProgram.text(), /^404 Not Found\nThere is no page here\.\n/);
  });

  test('serves an edited page at once', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call('svc1.userinterface.insert', {
      path: '/news',
      kind: 'content',
      content: 'old',
    });
    const first = await fetch(`${site.url}/news`);
    assert.equal(await first.text(), 'old');
    await site.call('svc1.userinterface.edit', { id: data.id, content: 'new' });
    const etag = first.headers.get('etag') ?? '';
    const second = await fetch(`${site.url}/news`, { headers: { 'if-none-match': etag } });
    assert.equal(await second.text(), 'new');
    await site.call('svc1.userinterface.edit', { id: data.id, path: '/moved' });
    assert.equal((await fetch(`${site.url}/news`)).status, 404);
    assert.equal(await (await fetch(`${site.url}/moved`)).text(), 'new');
  });

  test('has the fallback of a mount at its end', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.app]\nroot = site\nfallback = index.html\n',
      files: { 'site/index.html': 'the app' },
      rules: [{ path: '/stored', kind: 'content', content: 'stored' }],
    });
    assert.equal(await (await fetch(`${site.url}/stored`)).text(), 'stored');
    const reply = await fetch(`${site.url}/any/where`);
    assert.equal(reply.status, 200);
    assert.equal(await reply.text(), 'the app');
  });
});

suite('stored pages', () => {
  test('have their status, type and language, and answer preconditions and ranges', async (t) => {
    const site = await startSite(t, {
      rules: [
        { path: '/gone', kind: 'content', content: 'no more', httpresponse: 410 },
        { path: '/data', kind: 'content', content: '{}', contenttype: 'application/json' },
        {
          path: '/bytes',
          kind: 'content',
          content: { base64: 'AAEC/w==' },
          contenttype: 'image/x',
        },
        { path: '/hello', kind: 'content', content: 'Hello', lang: 'en' },
        { path: '/hello', kind: 'content', content: 'Hallo', lang: 'de' },
      ],
    });
    assert.equal((await fetch(`${site.url}/gone`)).status, 410);
    const data = await fetch(`${site.url}/data`);
    assert.equal(data.headers.get('content-type'), 'application/json');
    const bytes = await fetch(`${site.url}/bytes`, { headers: { range: 'bytes=1-2' } });
    assert.equal(bytes.status, 206);
    assert.deepEqual([...(await bytes.bytes())], [1, 2]);
    const german = await fetch(`${site.url}/hello`, {
      headers: { 'accept-language': 'de-AT, en;q=0.5' },
    });
    assert.equal(await german.text(), 'Hallo');
    assert.equal(german.headers.get('content-language'), 'de');
    assert.equal(german.headers.get('vary'), 'Accept-Language');
    const etag = german.headers.get('etag') ?? '';
    const known = await fetch(`${site.url}/hello`, {
      headers: { 'accept-language': 'de', 'if-none-match': etag },
    });
    assert.equal(known.status, 304);
    const head = await fetch(`${site.url}/hello`, {
      method: 'HEAD',
      headers: { 'accept-language': 'en' },
    });
    assert.equal(head.headers.get('content-length'), '5');
    assert.equal(await head.text(), '');
  });

  test('a generic page serves many URLs, each with its status', async (t) => {
    const generic = (path: string, more: object = {}) => ({
      path,
      kind: 'content',
      engine: 'html',
      enginedata: { html: `<p>${path}</p>`, page: '/product.html' },
      ...more,
    });
    const site = await startSite(t, {
      ini,
      files: { 'site/product.html': '<title>generic</title>' },
      rules: [
        generic('/lamps/tern'),
        generic('/lamps/heron'),
        generic('/lamps/extinct', { httpresponse: 410 }),
        { path: '/built-in', kind: 'insert-record', engine: 'html', enginedata: { html: 'x' } },
        generic('/circle', { enginedata: { html: 'x', page: '/circle' } }),
      ],
    });
    const tern = await fetch(`${site.url}/lamps/tern`);
    const heron = await fetch(`${site.url}/lamps/heron`);
    assert.equal(await tern.text(), '<title>generic</title>');
    assert.equal(await heron.text(), '<title>generic</title>');
    assert.equal(tern.headers.get('etag'), heron.headers.get('etag'));
    const extinct = await fetch(`${site.url}/lamps/extinct`, {
      headers: { 'if-none-match': heron.headers.get('etag') ?? '' },
    });
    assert.equal(extinct.status, 410);
    for (const path of ['/built-in', '/circle']) {
      assert.match(await (await fetch(site.url + path)).text(), /svc1\/engine\.js/, path);
    }
    const { data } = await site.call('svc1.userinterface.get_render', {
      origin: site.url,
      path: '/lamps/tern',
    });
    assert.equal(data.enginedata.html, '<p>/lamps/tern</p>');
  });

  test('a page that exists in several languages is chosen by Accept-Language, and has Vary', async (t) => {
    const { origin } = await httpSource(t, ({ url = '' }, response) => {
      response.writeHead(200, { 'Cache-Control': 'max-age=60', Vary: 'Origin' }).end(url);
    });
    const byLanguage = (path: string, rule: (lang: string) => object) =>
      ['de', 'fr'].map((lang) => ({ path, lang, ...rule(lang) }));
    const site = await startSite(t, {
      ini,
      files: { 'site/de.html': '/de.html', 'site/fr.html': '/fr.html' },
      rules: [
        ...byLanguage('/shown', (lang) => ({
          kind: 'content',
          engine: 'html',
          enginedata: { html: 'x', page: `/${lang}.html` },
        })),
        ...byLanguage('/fetched', (lang) => ({
          kind: 'content.fetch',
          enginedata: { source: `${origin}/${lang}.html` },
        })),
        ...byLanguage('/go', (lang) => ({
          kind: 'resolve',
          enginedata: { html: `/${lang}.html` },
        })),
      ],
    });
    const cases = [
      ['/shown', 'Accept-Language'],
      ['/fetched', 'Origin, Accept-Language'],
      ['/go', 'Accept, Accept-Language'],
    ] as const;
    for (const [path, vary] of cases) {
      for (const lang of ['de', 'fr', 'de']) {
        const page = await fetch(site.url + path, { headers: { 'accept-language': lang } });
        assert.equal(await page.text(), `/${lang}.html`, path);
        assert.equal(page.headers.get('vary'), vary, path);
      }
    }
  });

  test('breadcrumbs redirect by key and by path, and never to a URL from the request', async (t) => {
    const site = await startSite(t, {
      rules: [
        {
          path: 'spring',
          kind: 'resolve',
          enginedata: { target: '/offers/', forward_query: true },
        },
        {
          path: '/go',
          kind: 'resolve',
          enginedata: { target: 'https://other.example/x' },
          httpresponse: 301,
        },
        { path: 'text', kind: 'resolve', enginedata: { html: '<b>hi</b>' } },
        { path: 'bad', kind: 'resolve', enginedata: { target: 'javascript:alert(1)' } },
        { path: 'evil', kind: 'resolve', enginedata: { target: '//evil.example/' } },
      ],
    });
    const crumb = (query: string) =>
      fetch(`${site.url}/svc1/userinterface.link.htm?${query}`, { redirect: 'manual' });
    const spring = await crumb('k=spring&utm=a%0d%0aX:y');
    assert.equal(spring.status, 302);
    assert.equal(spring.headers.get('location'), '/offers/?utm=a%0D%0AX%3Ay');
    assert.equal(spring.headers.get('cache-control'), 'private, no-store');
    const go = await fetch(`${site.url}/go?x=//evil.example`, { redirect: 'manual' });
    assert.equal(go.status, 301);
    assert.equal(go.headers.get('location'), 'https://other.example/x');
    const text = await crumb('k=text');
    assert.equal(text.status, 200);
    assert.equal(await text.text(), '<b>hi</b>');
    for (const key of ['bad', 'evil', 'none']) {
      const reply = await crumb(`k=${key}`);
      assert.equal(reply.status, 404, key);
      assert.equal(reply.headers.get('location'), null, key);
    }
  });
});

suite('methods and headers', () => {
  test('pages allow GET and HEAD; a fetched page allows the methods of its rule', async (t) => {
    const source = await startSource(t);
    const site = await startSite(t, {
      ini,
      files: { 'site/page.txt': 'x' },
      rules: [
        {
          path: '/form/*',
          kind: 'content.fetch',
          enginedata: { source: `${source}/*`, methods: ['GET', 'POST'] },
        },
      ],
    });
    const post = (path: string) => fetch(site.url + path, { method: 'POST', body: 'a=1' });
    const refused = await post('/page.txt');
    assert.equal(refused.status, 405);
    assert.equal(refused.headers.get('allow'), 'GET, HEAD, OPTIONS');
    assert.equal((await post('/none')).status, 404);
    assert.equal(await (await post('/form/x')).text(), 'source says POST /x');
    const deleted = await fetch(`${site.url}/form/x`, { method: 'DELETE' });
    assert.equal(deleted.status, 405);
    const form = await fetch(`${site.url}/form/x`, { method: 'OPTIONS' });
    assert.equal(form.status, 204);
    for (const { headers } of [deleted, form]) {
      assert.equal(headers.get('allow'), 'GET, HEAD, POST, OPTIONS');
    }
    const options = await fetch(`${site.url}/page.txt`, { method: 'OPTIONS' });
    assert.equal(options.status, 204);
    assert.equal(options.headers.get('allow'), 'GET, HEAD, OPTIONS');
  });

  test('a status without content is sent without content', async (t) => {
    const rules = [204, 205, 304].flatMap((httpresponse) => [
      { path: `/generic/${httpresponse}`, kind: 'content', engine: 'html', httpresponse },
      { path: `/stored/${httpresponse}`, kind: 'content', content: 'x', httpresponse },
    ]);
    const site = await startSite(t, { rules });
    for (const { path, httpresponse } of rules) {
      const answer = await site.raw(
        `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      );
      const [head = '', content] = answer.split('\r\n\r\n');
      assert.match(head, new RegExp(`^HTTP/1.1 ${httpresponse} `));
      assert.equal(content, '', path);
      assert.doesNotMatch(head, /^content-type:/im, path);
      const [, length] = /^content-length: (.*)$/im.exec(head) ?? [];
      assert.equal(length, httpresponse === 205 ? '0' : undefined, path);
    }
  });

  test('Server-Timing names the source to callers with the scope read only', async (t) => {
    const site = await startSite(t, {
      rules: [
        { path: '/a', kind: 'content', content: 'x' },
        { path: '/nowhere', kind: 'resolve', enginedata: {} },
        { path: '/far', kind: 'content.fetch', enginedata: { source: 'http://127.0.0.1:1/' } },
      ],
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    });
    const timing = async (apikey?: string) => {
      const headers: Record<string, string> = apikey === undefined ? {} : { apikey };
      const replies = await Promise.all(
        ['/a', '/nowhere', '/far', '/none'].map((path) => fetch(site.url + path, { headers })),
      );
      assert.deepEqual(
        replies.map(({ status }) => status),
        [200, 404, 502, 404],
      );
      return replies.map((reply) => reply.headers.get('server-timing') ?? '');
    };
    assert.deepEqual(await timing(), ['', '', '', '']);
    assert.deepEqual(await timing('wmk_wrong'), ['', '', '', '']);
    const [page = '', nowhere = '', far = '', none] = await timing(site.adminKey);
    // Server-Timing also names a rule that fails.
    for (const rule of [page, nowhere, far]) assert.match(rule, /^waymark;desc="rule:/);
    assert.equal(new Set([page, nowhere, far]).size, 3);
    assert.equal(none, 'waymark;desc="none"');
  });
});

suite('operations over HTTP', () => {
  test('that read allow GET, those that write POST only', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/a', kind: 'content', content: 'x' }] });
    const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/a`;
    const got = await fetch(`${site.url}/svc1/userinterface/get?${place}`);
    const { data, r } = (await got.json()) as { data: { id: string }; r: string };
    assert.equal(r, 'svc1.userinterface.get');
    const again = await fetch(`${site.url}/svc1/userinterface/get?${place}`, {
      headers: { 'if-none-match': got.headers.get('etag') ?? '' },
    });
    assert.equal(again.status, 304);
    const headers = { apikey: site.adminKey };
    const history = await fetch(
      `${site.url}/svc1/userinterface/read?_v.id=${data.id}&_qk=history`,
      { headers },
    );
    const { data: page } = (await history.json()) as { data: { rows: unknown[] } };
    assert.equal(page.rows.length, 1);
    const insert = await fetch(`${site.url}/svc1/userinterface/insert?_v.path=/b`, { headers });
    assert.equal(insert.status, 405);
    assert.equal(insert.headers.get('allow'), 'POST, OPTIONS');
  });

  test('edit only if If-Match names the current version', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call('svc1.userinterface.insert', { path: '/a', content: 'x' });
    const edit = (etag: string) =>
      site.call(
        'svc1.userinterface.edit',
        { id: data.id, content: 'y' },
        { headers: { 'if-match': etag } },
      );
    assert.equal((await edit('"999"')).status, 412);
    assert.equal((await edit(`"${data.seq}"`)).status, 200);
    assert.equal((await edit(`"${data.seq}"`)).status, 412);
  });

  test('accept forms, and JSON that curl sends with the type of a form', async (t) => {
    const site = await startSite(t);
    const post = async (body: string, contentType: string) => {
      const reply = await fetch(`${site.url}/svc1/userinterface/insert`, {
        method: 'POST',
        headers: { apikey: site.adminKey, 'content-type': contentType },
        body,
      });
      return (await reply.json()) as { data?: Record<string, unknown>; error?: { code: string } };
    };
    const form = 'application/x-www-form-urlencoded';
    const fields =
      '_v.path=/f&_v.content=hi&_v.httpresponse=201&_v.enginedata.html=x&_v.engine=html';
    const { data } = await post(fields, form);
    assert.deepEqual(
      [data?.path, data?.httpresponse, data?.enginedata],
      ['/f', 201, { html: 'x' }],
    );
    assert.equal((await post('{"v":{"path":"/j","content":"hi"}}', form)).data?.path, '/j');
    for (const body of ['{"v":', '[1]', '{"v":[]}', '{"v":{},"vk":7}', '_v.a=1&_v.a.b=2']) {
      assert.equal((await post(body, form)).error?.code, 'invalid', body);
    }
  });

  test('return a page itself for get_content; over a websocket it is a packet', async (t) => {
    const site = await startSite(t, {
      ini,
      files: { 'site/a.txt': 'from disk', 'site/b.bin': Buffer.from([0xff, 0xfe, 0]) },
    });
    const reply = await fetch(
      `${site.url}/svc1/userinterface/get_content?_v.origin=${site.url}&_v.path=/a.txt`,
    );
    assert.equal(reply.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.equal(await reply.text(), 'from disk');
    const socket = await site.socket();
    const packet = async (path: string) =>
      (await socket.call('svc1.userinterface.get_content', { origin: site.url, path })).data;
    const text = await packet('/a.txt');
    assert.deepEqual(
      [text.status, text.contenttype, text.content, text.source],
      [200, 'text/plain; charset=utf-8', 'from disk', 'disk:site'],
    );
    assert.equal((await packet('/b.bin')).content_base64, '//4A');
  });

  test('of the scope render, and no others, are open to pages of other origins', async (t) => {
    const site = await startSite(t, { ini: '[auth]\ncors_origins = https://app.example\n' });
    const preflight = (path: string, origin: string) =>
      fetch(`${site.url}/svc1/${path}`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'GET' },
      });
    const allowed = async (path: string, origin: string) =>
      (await preflight(path, origin)).headers.get('access-control-allow-origin');
    assert.equal(
      await allowed('userinterface/get_render', 'https://app.example'),
      'https://app.example',
    );
    assert.equal(await allowed('userinterface/get_render', 'https://evil.example'), null);
    assert.equal(await allowed('userinterface/insert', 'https://app.example'), null);
  });

  test('stand beside health, engine script and engine documentation, also under a base', async (t) => {
    const site = await startSite(t, { server: 'base = /app\n' });
    const get = (path: string, accept = '*/*') =>
      fetch(`${site.url}${path}`, { headers: { accept } });
    assert.deepEqual(await (await get('/app/svc1/health')).json(), { status: 'ok' });
    const script = await get('/app/svc1/engine.js');
    assert.match(script.headers.get('content-type') ?? '', /^text\/javascript/);
    assert.match(await (await get('/app/svc1/engines/html')).text(), /<html/);
    const schema = await get('/app/svc1/engines/html', 'application/schema+json');
    assert.equal(((await schema.json()) as { type: string }).type, 'object');
    for (const path of ['/svc1/health', '/svc1/', '/app/svc1/engines/none', '/app/svc1/x/y']) {
      assert.equal((await get(path)).status, 404, path);
    }
    assert.equal((await get('/app/svc1/ws')).status, 400);
  });

  test('refuse a body over the limit before they read it', async (t) => {
    const site = await startSite(t);
    const answer = await site.raw(
      'POST /svc1/userinterface/insert HTTP/1.1\r\nHost: localhost\r\n' +
        `apikey: ${site.adminKey}\r\nContent-Length: 99999999\r\n\r\n{`,
    );
    assert.match(answer, /^HTTP\/1\.1 413 /);
  });
});
