import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { Agent, request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { readTestConfig, startSite, type TestSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { socketSource } from '../../core/server/h1/socket-source.ts';
import { connectHttp2 } from '../../core/server/h2/client.ts';
import { startTlsSite } from '../../core/server/tls/tls-rig.ts';
import { ask, eventually } from '../files/disk-rig.ts';
import { basic, bcryptLine, scryptLine } from './passwords.ts';

const passwords = [scryptLine('ann', 'secret'), bcryptLine('bob', 'hidden')].join('\n');
const files = {
  'site/internal/a.txt': 'a file',
  'site/open.txt': 'open',
  'site/internal/open/b.txt': 'excepted',
  'site/errors/401.html': '<p>own page',
  'users.txt': passwords,
};
const rules = [
  { path: '/internal/page', kind: 'content', content: 'a page' },
  { path: '/internal/to', kind: 'resolve', enginedata: { target: '/secret-target' } },
  { path: '/internal/html', kind: 'resolve', enginedata: { html: 'a breadcrumb' } },
  { path: '/over', kind: 'resolve', enginedata: { target: 'key:/internal/html' } },
  { path: '/generic', kind: 'content', engine: 'html', enginedata: { page: '/internal/page' } },
  {
    ...{ path: '/rendered', kind: 'content', engine: 'template' },
    enginedata: {
      page: '/internal/frame.html',
      render: 'server',
      template: '{{ "from" }} a template',
    },
  },
  {
    ...{ path: '/internal/frame.html', kind: 'content', contenttype: 'text/html' },
    content: '<!doctype html><title>t</title><main data-engine>frame</main>',
  },
];
const ann = { authorization: basic('ann', 'secret') };

/** A site with all kinds of sources below /internal/. */
function iniOf(origin: string, socket: string, more = ''): string {
  return `
[disk.site]
root = site
[proxy.app]
path = /internal/app/
source = ${origin}
[proxy.live]
path = /internal/live/
source = ${socket}
[redirect.old]
path = /internal/old
to = /elsewhere
[headers.all]
Cache-Control = "public, max-age=600"
[access.internal]
path = /internal/*
except = /internal/open/*
password_file = users.txt
${more}
`;
}

const places = [
  ['/internal/a.txt', 'a file'],
  ['/internal/page', 'a page'],
  ['/internal/html', 'a breadcrumb'],
  ['/internal/to', 'secret-target'],
  ['/internal/app/x', 'from the application'],
  ['/internal/old', 'elsewhere'],
  ['/internal/none', 'no page here'],
  ['/over', 'a breadcrumb'],
  ['/generic', 'a page'],
  ['/rendered', 'from a template'],
] as const;

/** The application and the websockets behind a site; counts what reaches them. */
async function sources(t: TestContext) {
  const requests: string[] = [];
  const app = await httpSource(t, (request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''}`.trim());
    response.setHeader('cache-control', 'public, max-age=600, s-maxage=900');
    request.resume().once('end', () => response.end('from the application'));
  });
  const live = await socketSource(t, (opened) => {
    requests.push('websocket');
    opened.send('from the websocket');
  });
  return { requests, origin: app.origin, live };
}

suite('[access.<name>] with passwords', () => {
  test('asks for all kinds of answers, also cached and prepared ones', async (t) => {
    const { origin, live, requests } = await sources(t);
    const site = await startSite(t, { ini: iniOf(origin, live), files, rules });
    for (let turn = 0; turn < 3; turn += 1) {
      for (const [path, text] of places) {
        const others = path.startsWith('/internal/') ? ['POST', 'OPTIONS', 'DELETE'] : [];
        for (const method of ['GET', 'HEAD', ...others]) {
          const count = requests.length;
          const refused = await ask(site.url, path, { method });
          assert.equal(refused.status, 401, `${method} ${path}`);
          assert.equal(
            refused.fields['www-authenticate'],
            'Basic realm="internal", charset="UTF-8"',
          );
          assert.match(refused.fields['cache-control'] ?? '', /no-store/);
          assert.ok(!refused.text.includes(text), path);
          assert.equal(requests.length, count, 'no source is asked');
        }
        const seen = await ask(site.url, path, { headers: ann });
        assert.notEqual(seen.status, 401, path);
        assert.match(`${seen.text} ${seen.fields.location ?? ''}`, new RegExp(text), path);
        assert.match(seen.fields['cache-control'] ?? '', /^private|^no-store/, path);
        const wrong = { authorization: basic('ann', 'wrong') };
        if (path === '/internal/page' || path === '/internal/a.txt') {
          assert.equal((await ask(site.url, path, { headers: wrong })).status, 401);
        }
      }
    }
    assert.ok(
      requests.every((one) => !one.includes('Basic')),
      'no source gets the password',
    );
    assert.equal(
      requests.filter((one) => one === 'GET /internal/app/x').length,
      1,
      'its answer is cached',
    );
    for (const path of ['/open.txt', '/internal/open/b.txt']) {
      const open = await ask(site.url, path);
      assert.equal(open.status, 200, path);
      assert.equal(open.fields['cache-control'], 'public, max-age=600');
    }
    const bob = { authorization: basic('bob', 'hidden') };
    assert.equal((await ask(site.url, '/internal/a.txt', { headers: bob })).text, 'a file');
  });

  test('asks under every spelling that an application could take for the same path', async (t) => {
    const { origin, live, requests } = await sources(t);
    const ini = `${iniOf(origin, live)}[proxy.all]\nsource = ${origin}\n`;
    const site = await startSite(t, { ini, files, rules });
    for (const path of [
      ...['/internal', '/internal/', '/INTERNAL/app/x', '//internal/app/x', '/internal//app/x'],
      ...['/internal%2Fapp/x', '/%69nternal/app/x', '/internal;v=1/app/x', '/internal%5Capp/x'],
      ...['/%2Finternal/app', '/internal%252Fapp', '/internal/open%2F/x', '/internal/open//x'],
      ...[
        '/internal/OPEN/b.txt',
        '/internal/open;x/b.txt',
        '/ｉnternal/x'.replace('ｉ', '%EF%BD%89'),
      ],
    ]) {
      const { status } = await ask(site.url, path);
      assert.equal(status, 401, path);
    }
    assert.deepEqual(requests, []);
    assert.equal((await ask(site.url, '/internals')).status, 200);
  });

  test('asks for websockets, and for what operations answer', async (t) => {
    const { origin, live, requests } = await sources(t);
    const site = await startSite(t, { ini: iniOf(origin, live), files, rules });
    const url = `${site.url.replace('http', 'ws')}/internal/live/`;
    const refused = new WebSocket(url);
    const [, answer] = (await once(refused, 'unexpected-response')) as [
      unknown,
      { statusCode: number; destroy(): void },
    ];
    assert.equal(answer.statusCode, 401);
    answer.destroy();
    assert.deepEqual(requests, []);
    const opened = new WebSocket(url, { headers: ann });
    t.after(() => {
      opened.terminate();
    });
    const [message] = (await once(opened, 'message')) as [Buffer];
    assert.equal(message.toString(), 'from the websocket');

    for (const [name, v] of operations(site)) {
      const denied = await site.call(name, v, { apikey: undefined });
      assert.equal(denied.error?.code, 'unauthenticated', name + JSON.stringify(v));
      const allowed = await site.call(name, v, { apikey: undefined, headers: ann });
      assert.equal(allowed.error, undefined, name + JSON.stringify(v));
      const headers = { ...ann, origin: 'https://evil.example' };
      const foreign = await site.call(name, v, { apikey: undefined, headers });
      assert.equal(foreign.error?.code, 'forbidden', name);
      // A page of one host of this server asks for another one, with what its browser knows.
      const other = { ...v, origin: 'http://other.example' };
      const ofHost = await site.call(name, other, { apikey: undefined, headers: ann });
      assert.equal(ofHost.error?.code, 'forbidden', name);
      const reader = await site.call(name, other, { headers: ann });
      assert.equal(reader.error, undefined, name);
    }
    const socket = await site.socket();
    const [get, v] = operations(site)[0];
    assert.equal((await socket.call(get, v)).error?.code, 'unauthenticated');
    // What a page follows: whether, and when, a rule for its place has changed.
    const follow = 'svc1.userinterface.follow';
    for (const path of ['/internal/page', '/internal/none']) {
      const place = { origin: site.url, path };
      assert.equal((await socket.call(follow, place)).error?.code, 'unauthenticated', path);
      const past = await socket.call(follow, { ...place, from_seq: 1 });
      assert.equal(past.error?.code, 'unauthenticated', path);
    }
    const other = { origin: site.url, path: '/open.txt' };
    assert.equal((await socket.call(follow, other)).error, undefined);
    for (const k of ['/internal/to', '/over']) {
      const link = `/svc1/userinterface/link.htm?k=${k}`;
      assert.equal((await ask(site.url, link)).status, 401, k);
      assert.notEqual((await ask(site.url, link, { headers: ann })).status, 401, k);
      assert.equal((await ask(site.url, link)).status, 401, k);
    }
  });

  test('holds for HTTP/2, and for the content of a request', async (t) => {
    const { origin, live, requests } = await sources(t);
    const site = await startTlsSite(t, { ini: iniOf(origin, live), files, rules });
    const client = await connectHttp2(t, site);
    for (const [path] of places) {
      assert.equal((await client.ask(path)).status, 401, path);
      assert.notEqual((await client.ask(path, ann)).status, 401, path);
    }
    requests.length = 0;
    const post = { ':method': 'POST', ...ann };
    assert.equal((await client.ask('/internal/app/y', post, 'x'.repeat(200_000))).status, 200);
    const slow = await startSite(t, {
      ...{ ini: iniOf(origin, live), files, rules },
    });
    const sent = { method: 'POST', body: 'y'.repeat(200_000) };
    const refused = await fetch(`${slow.url}/internal/app/y`, sent);
    assert.equal(refused.status, 401);
    const passed = await fetch(`${slow.url}/internal/app/y`, { ...sent, headers: ann });
    assert.equal(await passed.text(), 'from the application');
    assert.deepEqual(requests, ['POST /internal/app/y', 'POST /internal/app/y']);
  });

  test('survives a client that breaks off, or breaks its content, while a password is checked', async (t) => {
    const { origin, live, requests } = await sources(t);
    const site = await startSite(t, { ini: iniOf(origin, live), files, rules });
    const head = (name: string, secret: string) =>
      `POST /internal/app/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(name, secret)}\r\n`;
    const chunked = 'Transfer-Encoding: chunked\r\n\r\n';
    for (const [text, wanted] of [
      [`${head('bob', 'hidden')}${chunked}5\r\nabcde\r\nZZ\r\n`, /^HTTP\/1\.1 (?:4|5)/],
      [`${head('ann', 'secret')}${chunked}xyz\r\n`, /^HTTP\/1\.1 400/],
    ] as const) {
      assert.match(await site.raw(text), wanted);
    }
    for (const name of ['one', 'two']) {
      const socket = connect(site.port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write(`${head(name, 'wrong')}Content-Length: 100000\r\n\r\nhalf`);
      socket.destroy();
      await once(socket, 'close');
    }
    assert.ok(!requests.includes('POST /internal/app/x') || requests.length === 1);
    assert.equal((await ask(site.url, '/internal/page', { headers: ann })).status, 200);
  });

  test('reads the file again, and lets nobody in by a broken line or without the file', async (t) => {
    const users = `${scryptLine('ann', 'secret')}\nnobody\ncarl:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=\n`;
    const ini = '[access.a]\npath = /page\npassword_file = users.txt\n';
    const site = await startSite(t, {
      ...{ ini, files: { 'users.txt': users } },
      rules: [{ path: '/page', kind: 'content', content: 'page' }],
    });
    await site.untilLogged(/password file: line 3 is not a name, a colon and a hash/);
    assert.match(site.logged(), /password file: line 2 /);
    const statusOf = async (name: string, password: string): Promise<number> => {
      const headers = { authorization: basic(name, password) };
      return (await ask(site.url, '/page', { headers })).status;
    };
    assert.equal(await statusOf('ann', 'secret'), 200);
    assert.equal(await statusOf('nobody', ''), 401);
    const file = join(site.folder, 'users.txt');
    await writeFile(file, scryptLine('ann', 'another'));
    await eventually(
      () => statusOf('ann', 'secret'),
      (status) => status === 401,
    );
    assert.equal(await statusOf('ann', 'another'), 200);
    await rm(file);
    await eventually(
      () => statusOf('ann', 'another'),
      (status) => status === 401,
    );
    assert.match(site.logged(), /nobody gets in by it/);
    await writeFile(file, scryptLine('ann', 'another'));
    await eventually(
      () => statusOf('ann', 'another'),
      (status) => status === 200,
    );
  });

  test('is reloaded without a cut, also for prepared answers', async (t) => {
    const rule = '[access.a]\npath = /page\npassword_file = users.txt\n';
    const site = await startSite(t, {
      ...{ files, ini: '' },
      rules: [{ path: '/page', kind: 'content', content: 'page' }],
    });
    const open = await readFile(site.iniFile, 'utf8');
    const client = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => {
      client.destroy();
    });
    const get = async (headers = {}): Promise<number> => {
      const sent = request(`${site.url}/page`, { agent: client, headers }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      response.resume();
      await once(response, 'end');
      return response.statusCode ?? 0;
    };
    const reload = async (text: string): Promise<void> => {
      await writeFile(site.iniFile, text);
      site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
    };
    for (let turn = 0; turn < 3; turn += 1) {
      await reload(open);
      assert.deepEqual([await get(), await get(), await get(ann)], [200, 200, 200]);
      await reload(`${open}\n${rule}`);
      assert.deepEqual([await get(), await get(ann), await get(ann)], [401, 200, 200]);
      await reload(`${open}\n${rule}allow = 10.0.0.0/8\n`);
      assert.deepEqual([await get(), await get(ann)], [403, 403]);
    }
  });

  test('limits wrong passwords by address and by name', async (t) => {
    const ini = '[access.a]\npassword_file = users.txt\n';
    const site = await startSite(t, {
      ...{ ini, files, server: 'trust_proxy = 127.0.0.0/8' },
      rules: [{ path: '/page', kind: 'content', content: 'page' }],
    });
    const from = (address: string, name: string, password: string) =>
      ask(site.url, '/page', {
        headers: { 'x-forwarded-for': address, authorization: basic(name, password) },
      });
    assert.equal((await from('192.0.2.1', 'ann', 'secret')).status, 200);
    const tries = Array.from({ length: 12 }, (_, at) => from('192.0.2.2', `x${at}`, 'wrong'));
    const statuses = (await Promise.all(tries)).map(({ status }) => status).sort();
    assert.deepEqual(statuses, [...Array<number>(10).fill(401), 429, 429]);
    const limited = await from('192.0.2.2', 'bob', 'hidden');
    assert.equal(limited.status, 429);
    // Ten at once, then one in six seconds.
    assert.match(limited.fields['retry-after'] ?? '', /^[1-6]$/);
    for (let address = 10; address < 16; address += 1) {
      for (let at = 0; at < 9; at += 1) await from(`192.0.2.${address}`, 'ann', `wrong ${at}`);
    }
    assert.equal((await from('192.0.2.20', 'ann', 'secret')).status, 200, 'remembered');
    const further = Array.from({ length: 20 }, (_, at) =>
      from(`192.0.2.${30 + at}`, 'ann', 'wrong'),
    );
    assert.ok((await Promise.all(further)).some(({ status }) => status === 429));
    assert.equal((await from('192.0.2.1', 'ann', 'wrong')).status, 401, 'a known address');
    assert.equal((await from('192.0.2.3', 'bob', 'hidden')).status, 200, 'another name');
    await site.untilLogged(/wrong_passwords/);
  });

  test('names the rule that refuses, not the one before it that lets in', async (t) => {
    const ini =
      '[disk.site]\nroot = site\n[access.home]\nallow = 127.0.0.0/8\n' +
      '[access.staff]\npath = /internal/\nallow = 192.0.2.1/32\n';
    const site = await startSite(t, { ini, files });
    assert.equal((await ask(site.url, '/internal/a.txt')).status, 403);
    await site.untilLogged(/ 403 GET .* access:staff /);
    const { data } = await site.call('svc1.userinterface.explain', {
      path: '/internal/a.txt',
      ip: '127.0.0.1',
    });
    assert.deepEqual(
      data.access.map(({ says }: { readonly says: string }) => says),
      [
        '[access.home] (satisfy = all) lets the visitor in by `allow`.',
        '[access.staff] (satisfy = all) refuses the visitor by `allow`.',
      ],
    );
  });

  test('shows the own error page, and is explained', async (t) => {
    const ini =
      '[disk.site]\nroot = site\nerrors = errors\n[access.a]\npath = /internal/*\npassword_file = users.txt\n';
    const site = await startSite(t, { ini, files });
    const headers = { accept: 'text/html' };
    const refused = await ask(site.url, '/internal/a.txt', { headers });
    assert.deepEqual([refused.status, refused.text], [401, '<p>own page']);
    assert.match(refused.fields['www-authenticate'] ?? '', /^Basic realm="a"/);
    const { fields } = await ask(site.url, '/internal/a.txt', {
      headers: { apikey: site.adminKey },
    });
    assert.match(String(fields['server-timing']), /access:a/);
    const { data } = await site.call('svc1.userinterface.explain', { path: '/internal/a.txt' });
    assert.match(data.says, /answered by the mount site, with 200, for those whom a lets in\./);
    assert.deepEqual(data.access, [
      {
        ...{ rule: 'a', passes: null },
        says: '[access.a] (satisfy = all) lets in those whom `password_file` lets in.',
      },
    ]);
  });
});

/** Operations that show a page, with an input about a protected place. */
function operations(site: TestSite) {
  const where = { origin: site.url, path: '/internal/page' };
  return [
    ['svc1.userinterface.get', where],
    ['svc1.userinterface.get_render', where],
    ['svc1.userinterface.get_resolve', { k: '/internal/to' }],
    ['svc1.userinterface.get_resolve', { k: '/over' }],
  ] as const;
}
