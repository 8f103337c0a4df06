import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { suite, test, type TestContext } from 'node:test';
import { buffer } from 'node:stream/consumers';
import { WebSocket, WebSocketServer } from 'ws';
import { startSite, type TestSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { readConfig } from '../../ini.ts';

/** A request as an application got it. */
interface Got {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An application that answers with what it got. */
function application(t: TestContext, name = 'app') {
  return httpSource(t, (request: IncomingMessage, response: ServerResponse) => {
    const answer = async (): Promise<void> => {
      const { method, url, headers } = request;
      const got: Got = { method, url, headers, body: (await buffer(request)).toString() };
      response.writeHead(200, {
        'content-type': 'application/json',
        'set-cookie': ['session=1; Path=/; HttpOnly', 'other=2'],
        'x-name': name,
      });
      response.end(JSON.stringify(got));
    };
    answer().catch(() => response.destroy());
  });
}

async function ask(url: string, init: RequestInit = {}): Promise<Got> {
  return (await (await fetch(url, init)).json()) as Got;
}

suite('[proxy.<name>]', () => {
  test('passes everything on that an application expects', async (t) => {
    const { origin } = await application(t);
    const site = await startSite(t, { ini: `[proxy.app]\nsource = ${origin}\n` });
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'OPTIONS']) {
      const body = method === 'GET' ? null : 'text';
      const got = await ask(`${site.url}/a%2Fb//c?x=1&y`, {
        ...{ method, body },
        headers: { authorization: 'Basic YTpi', cookie: 'session=1', 'content-type': 'text/x' },
      });
      assert.deepEqual([got.method, got.url, got.body], [method, '/a%2Fb//c?x=1&y', body ?? '']);
      assert.equal(got.headers.host, new URL(site.url).host);
      assert.equal(got.headers.authorization, 'Basic YTpi');
      assert.equal(got.headers.cookie, 'session=1');
      assert.equal(got.headers['x-forwarded-proto'], 'http');
    }
    const reply = await fetch(`${site.url}/`);
    assert.deepEqual(reply.headers.getSetCookie(), ['session=1; Path=/; HttpOnly', 'other=2']);
    assert.equal((await fetch(`${site.url}/svc1/health`)).headers.get('x-name'), null);
  });

  test('answers its own path without the last slash, too', async (t) => {
    const { origin } = await application(t);
    const ini = (path: string, source: string) => `path = ${path}\nsource = ${source}\n`;
    const site = await startSite(t, {
      ini:
        `[proxy.api]\n${ini('/api', origin)}[proxy.v1]\n${ini('/v1/', `${origin}/app/`)}` +
        `[proxy.root]\n${ini('/r/', `${origin}/`)}[proxy.rest]\n${ini('/', `${origin}/rest/`)}`,
    });
    const forms = [
      ['/api', '/api'],
      ['/api?x=1', '/api?x=1'],
      ['/api/', '/api/'],
      ['/api/a', '/api/a'],
      ['/apis', '/rest/apis'],
      ['/v1', '/app'],
      ['/v1/', '/app/'],
      ['/r', '/'],
      ['/', '/rest/'],
    ] as const;
    for (const [path, url] of forms) {
      assert.equal((await ask(`${site.url}${path}`, { method: 'POST' })).url, url, path);
    }
    const { data } = await site.call('svc1.userinterface.explain', { path: '/v1' });
    assert.match(data.says, /is answered by the proxy v1/);
  });

  test('passes websockets and events on', async (t) => {
    const { origin, server } = await httpSource(t, (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n');
    });
    const sockets = new WebSocketServer({ server });
    t.after(() => {
      sockets.close();
    });
    sockets.on('connection', (socket, { url }) => {
      socket.on('message', (text) => {
        socket.send(`${url} ${(text as Buffer).toString()}`);
      });
    });
    const site = await startSite(t, { ini: `[proxy.app]\npath = /app/\nsource = ${origin}\n` });
    const socket = new WebSocket(`${site.url.replace('http', 'ws')}/app/live?a=1`);
    t.after(() => {
      socket.terminate();
    });
    await once(socket, 'open');
    socket.send('hello');
    const [text] = (await once(socket, 'message')) as [Buffer];
    assert.equal(text.toString(), '/app/live?a=1 hello');
    for (const client of sockets.clients) client.terminate();
    const controller = new AbortController();
    const events = await fetch(`${site.url}/app/events`, { signal: controller.signal });
    const { value } = (await events.body?.getReader().read()) ?? {};
    assert.equal(Buffer.from(value ?? []).toString(), 'data: one\n\n');
    controller.abort();
  });

  test('replaces its path by that of the source, if that has one', async (t) => {
    const { origin } = await application(t);
    const site = await startSite(t, {
      ini:
        `[proxy.same]\npath = /same/\nsource = ${origin}\n` +
        `[proxy.bare]\npath = /bare/\nsource = ${origin}/\n` +
        `[proxy.below]\npath = /below/\nsource = ${origin}/v2/api\n`,
    });
    for (const [path, wanted] of [
      ['/same/a%2Fb', '/same/a%2Fb'],
      ['/bare/a%2Fb', '/a%2Fb'],
      ['/bare/', '/'],
      ['/below/a?x', '/v2/api/a?x'],
    ] as const) {
      assert.equal((await ask(site.url + path)).url, wanted, path);
    }
  });

  test('comes after files and stored pages; the longest path of proxies and rules wins', async (t) => {
    const [app, api, other] = [
      await application(t, 'app'),
      await application(t, 'api'),
      await application(t, 'rule'),
    ];
    const site = await startSite(t, {
      ini:
        '[fetch]\nallow_private = 127.0.0.0/8\n[disk.site]\nroot = site\n' +
        `[proxy.app]\nsource = ${app.origin}\n[proxy.api]\npath = /api/\nsource = ${api.origin}\n`,
      files: { 'site/file.txt': 'file', 'site/api/file.txt': 'file' },
      rules: [
        { path: '/page', kind: 'content', content: 'page' },
        { path: '/api/page', kind: 'content', content: 'page' },
        ...['/api/deep/*', '/same/*'].map((path) => ({
          ...{ path, kind: 'content.fetch' },
          enginedata: { source: `${other.origin}/*` },
        })),
      ],
    });
    for (const [path, wanted, explained] of [
      ['/file.txt', null, 'the mount site'],
      ['/api/file.txt', null, 'the mount site'],
      ['/page', null, 'the page rule'],
      ['/api/page', null, 'the page rule'],
      ['/x', 'app', 'the proxy app'],
      ['/api/x', 'api', 'the proxy api'],
      ['/api/deep/x', 'rule', 'the page rule'],
      ['/same/x', 'rule', 'the page rule'],
    ] as const) {
      assert.equal((await fetch(site.url + path)).headers.get('x-name'), wanted, path);
      const { data } = await site.call('svc1.userinterface.explain', { path });
      assert.match(data.says, new RegExp(`is answered by ${explained}`), path);
    }
    const { data } = await site.call('svc1.userinterface.explain', { path: '/api/x' });
    assert.deepEqual(data.winner, { source: 'content.fetch', proxy: 'api', status: null });
    const timing = await fetch(`${site.url}/x`, { headers: { apikey: site.adminKey } });
    assert.match(timing.headers.get('server-timing') ?? '', /desc="proxy:app"/);
  });

  test('may be in a private network, which page rules stay out of', async (t) => {
    const { origin } = await application(t);
    const site = await startSite(t, {
      ini: `[proxy.app]\npath = /app/\nsource = ${origin}\n`,
      rules: [{ path: '/rule/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } }],
    });
    for (let turn = 0; turn < 2; turn += 1) {
      assert.equal((await fetch(`${site.url}/app/a`)).status, 200);
      assert.equal((await fetch(`${site.url}/rule/a`)).status, 502);
    }
  });

  test('sets Host and fields, with variables that a client cannot break out of', async (t) => {
    const { origin } = await application(t);
    const site = await startSite(t, {
      ini:
        `[proxy.source]\npath = /source/\nhost = source\nsource = ${origin}\n` +
        `[proxy.named]\npath = /named/\nhost = app.example:81\nsource = ${origin}\n` +
        '[proxy.named.request_headers]\n' +
        'X-Real-IP = ${client.ip}\nX-Host = ${host}\nX-Path = ${method} ${path}?${query}\n' +
        'X-From = "<${request.header.X-Own}>"\nUser-Agent =\nX-Literal = $${host}\nX-None = ${user}\n',
    });
    assert.equal((await ask(`${site.url}/source/a`)).headers.host, new URL(origin).host);
    const headers = { 'x-own': 'a\u00e9b', 'x-real-ip': '6.6.6.6', 'x-none': 'me' };
    const got = await ask(`${site.url}/named/%0Aa?b=%0D%0Ac`.replace('%0A', '%20'), { headers });
    assert.equal(got.headers.host, 'app.example:81');
    assert.equal(got.headers['x-real-ip'], '127.0.0.1');
    assert.equal(got.headers['x-host'], 'localhost');
    assert.equal(got.headers['x-path'], 'GET /named/%20a?b=%0D%0Ac');
    assert.equal(got.headers['x-from'], '<a\u00e9b>');
    assert.equal(got.headers['x-literal'], '${host}');
    for (const name of ['user-agent', 'x-none']) assert.equal(got.headers[name], undefined, name);
  });

  test('limits time, content and caching in its own way', async (t) => {
    let answers = 0;
    const { origin } = await httpSource(t, ({ url }, response) => {
      answers += 1;
      if (url?.endsWith('/slow') === true) return;
      response.writeHead(200, { 'cache-control': 'max-age=60' }).end('ok');
    });
    const proxy = (name: string, more: string) =>
      `[proxy.${name}]\npath = /${name}/\nsource = ${origin}\n${more}\n`;
    const site = await startSite(t, {
      ini: proxy('cached', 'timeout = 50ms\nmax_body = 10') + proxy('fresh', 'cache = no'),
    });
    assert.equal((await fetch(`${site.url}/cached/slow`)).status, 504);
    const long = await fetch(`${site.url}/cached/a`, { method: 'POST', body: 'x'.repeat(11) });
    assert.equal(long.status, 413);
    answers = 0;
    for (const name of ['cached', 'fresh']) {
      for (let turn = 0; turn < 3; turn += 1) await (await fetch(`${site.url}/${name}/b`)).text();
    }
    assert.equal(answers, 1 + 3);
  });

  test('does not wait for broken content, also if a field needs a token first', async (t) => {
    const { origin } = await application(t);
    const keys = await httpSource(t, (_, response) => response.end('{"keys":[]}'));
    const site = await startSite(t, {
      ini:
        `[auth]\njwt_jwks = ${keys.origin}/keys\nallow_private = 127.0.0.0/8\n` +
        `[proxy.app]\nsource = ${origin}\n[proxy.app.request_headers]\nX-User = \${user}\n`,
    });
    const head = 'POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n';
    const token = `Authorization: Bearer ${['{"alg":"RS256","kid":"a"}', '{"sub":"me"}', 'x']
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.')}\r\n`;
    for (const field of ['', token]) {
      const answer = await site.raw(`${head}${field}\r\n3\r\nabcd\r\n0\r\n\r\n`);
      assert.match(answer, field === '' ? /^HTTP\/1\.1 400 / : /^(?:HTTP\/1\.1 400 |$)/);
    }
  });

  test('changes with a reload', async (t) => {
    const [one, two] = [await application(t, 'one'), await application(t, 'two')];
    const site = await startSite(t, { ini: `[proxy.app]\nsource = ${one.origin}\n` });
    assert.equal((await fetch(site.url)).headers.get('x-name'), 'one');
    await edit(site, (ini) => ini.replace(one.origin, two.origin));
    assert.equal((await fetch(site.url)).headers.get('x-name'), 'two');
    await edit(site, (ini) => ini.replace(/\[proxy\.app\]\nsource = .*\n/, ''));
    assert.equal((await fetch(site.url)).status, 404);
  });
});

async function edit(site: TestSite, change: (ini: string) => string): Promise<void> {
  await writeFile(site.iniFile, change(await readFile(site.iniFile, 'utf8')));
  site.waymark.reload(await readConfig({ file: site.iniFile, env: {}, cores: 2, hostName: '' }));
}

suite('a rule of content.fetch with "as": "application"', () => {
  test('passes on what a proxy passes on, at its own path', async (t) => {
    const { origin } = await application(t);
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
      rules: [
        {
          path: '/app/*',
          kind: 'content.fetch',
          enginedata: { as: 'application', source: origin },
        },
      ],
    });
    const got = await ask(`${site.url}/app/a%2Fb?x`, {
      ...{ method: 'PUT', body: 'text' },
      headers: { authorization: 'Basic YTpi', cookie: 'a=b' },
    });
    assert.deepEqual([got.method, got.url, got.body], ['PUT', '/app/a%2Fb?x', 'text']);
    assert.equal(got.headers.host, new URL(site.url).host);
    assert.deepEqual([got.headers.authorization, got.headers.cookie], ['Basic YTpi', 'a=b']);
    assert.equal((await fetch(`${site.url}/other`)).status, 404);
  });
});
