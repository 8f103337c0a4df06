import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { startSite, readTestConfig } from '../../harness.ts';
import { fetchPlan, parseSource } from '../../../src/modules/proxy/fetch-plan.ts';
import { fetchRule } from './fetch-rig.ts';

/** An application on a unix socket that says what it was asked, and echoes over websockets. */
async function onSocket(t: TestContext, name = 'app') {
  const path = join(await temporaryFolder(t), `${name}.sock`);
  const seen: IncomingMessage[] = [];
  const server = http.createServer((request, response) => {
    seen.push(request);
    const { url, headers } = request;
    response.end([name, url, headers.host, headers['x-forwarded-host']].join(' '));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => {
    socket.on('message', (data: Buffer) => {
      socket.send(`${name} ${data.toString()}`);
    });
  });
  await once(server.listen(path), 'listening');
  t.after(() => {
    sockets.close();
    server.close();
    server.closeAllConnections();
  });
  return { path, seen };
}

async function textOf(url: string): Promise<string> {
  return (await fetch(url)).text();
}

suite('a proxy with a source on a unix socket', () => {
  test('passes on requests and websockets, with the host that it has to', async (t) => {
    const { path } = await onSocket(t);
    const ini = `[proxy.app]
source = unix:${path}
[proxy.base]
path = /base/
source = unix:${path}:/other/
host = source
[proxy.named]
path = /named/
source = unix:${path}
host = app.example.com`;
    const site = await startSite(t, { ini });
    const { host } = new URL(site.url);
    assert.equal(await textOf(`${site.url}/a?b=c`), `app /a?b=c ${host} ${host}`);
    assert.equal(await textOf(`${site.url}/base/a`), `app /other/a localhost ${host}`);
    assert.equal(await textOf(`${site.url}/named/a`), `app /named/a app.example.com ${host}`);
    const socket = new WebSocket(`${site.url.replace('http', 'ws')}/live`);
    await once(socket, 'open');
    socket.send('hello');
    const [message] = (await once(socket, 'message')) as [Buffer];
    assert.equal(message.toString(), 'app hello');
    socket.close();
    await once(socket, 'close');
  });

  test('balances them, checks their health, and names each by its path', async (t) => {
    const [one, other] = [await onSocket(t, 'one'), await onSocket(t, 'other')];
    const gone = join(await temporaryFolder(t), 'gone.sock');
    const ini = `[proxy.app]
balance = turn
health = /health
source[] = unix:${one.path}
source[] = unix:${other.path}
source[] = unix:${gone}`;
    const site = await startSite(t, { ini });
    const names = new Set<string>();
    for (let count = 0; count < 6; count += 1) {
      names.add((await textOf(`${site.url}/a`)).split(' ')[0] ?? '');
    }
    assert.deepEqual(names, new Set(['one', 'other']));
    assert.ok(one.seen.some(({ url }) => url === '/health'));
    const metrics = await textOf(`${site.url}/svc1/metrics`);
    assert.ok(metrics.includes(`unix:${one.path}`), metrics);
  });

  test('answers 502 while nothing listens', async (t) => {
    const path = join(await temporaryFolder(t), 'gone.sock');
    const site = await startSite(t, { ini: `[proxy.app]\nsource = unix:${path}` });
    assert.equal((await fetch(site.url)).status, 502);
  });
});

test('a page rule reaches the sockets that the ini file permits, and no other one', async (t) => {
  const [allowed, other] = [await onSocket(t, 'allowed'), await onSocket(t, 'other')];
  const rule = (path: string, source: string) => ({
    ...{ path, kind: 'content.fetch', enginedata: { source } },
  });
  const site = await startSite(t, {
    ini: `[fetch]\nallow_private = unix:${allowed.path}\n`,
    rules: [
      rule('/allowed/*', `unix:${allowed.path}:/base/*`),
      rule('/other/*', `unix:${other.path}:/*`),
      rule('/spelled/*', `unix:${allowed.path.replace('/', '//')}:/*`),
    ],
  });
  const { host } = new URL(site.url);
  assert.equal(await textOf(`${site.url}/allowed/a?b`), `allowed /base/a?b localhost ${host}`);
  for (const path of ['/other/a', '/spelled/a']) {
    assert.equal((await fetch(site.url + path)).status, 502, path);
  }
  assert.equal(other.seen.length, 0);
});

test('forward of an access rule asks a server on a unix socket', async (t) => {
  const asked: (string | undefined)[] = [];
  const path = join(await temporaryFolder(t), 'auth.sock');
  const server = http.createServer((request, response) => {
    asked.push(request.url, request.headers.host, request.headers['x-forwarded-uri'] as string);
    response.writeHead(request.headers['x-key'] === 'k' ? 200 : 403).end();
  });
  await once(server.listen(path), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const site = await startSite(t, {
    files: { 'public/a.txt': 'file' },
    ini: `[disk.site]\nroot = public\n[access.all]\npath = /*\nforward = unix:${path}:/check?a=b`,
  });
  assert.equal((await fetch(`${site.url}/a.txt`)).status, 403);
  assert.equal((await fetch(`${site.url}/a.txt`, { headers: { 'X-Key': 'k' } })).status, 200);
  assert.deepEqual(asked.slice(0, 3), ['/check?a=b', 'localhost', '/a.txt']);
});

suite('the text of a unix socket', () => {
  const problems: Readonly<Record<string, RegExp>> = {
    '[proxy.a]\nsource = http://unix:/run/app.sock': /server\.ini:2: .*`unix:\/run\/app\.sock`/,
    '[proxy.a]\nsource = https://unix:/run/app.sock:/base/': /`unix:\/run\/app\.sock:\/base\/`/,
    '[proxy.a]\nsource = unix:run/app.sock': /write the path of a socket/,
    '[proxy.a]\nsource = unix:/run/app.sock:/a?b': /write the path of a socket/,
    [`[proxy.a]\nsource = unix:/${'x'.repeat(107)}`]: /write the path of a socket/,
    '[proxy.a]\nsource = http://a\nmirror = http://unix:/run/m.sock': /`unix:\/run\/m\.sock`/,
    '[access.a]\npath = /*\nforward = http://unix:/run/a.sock:/check':
      /`unix:\/run\/a\.sock:\/check`/,
    '[fetch]\nallow_private = http://unix:/run/a.sock': /`unix:\/run\/a\.sock`/,
  };
  for (const [ini, message] of Object.entries(problems)) {
    test(`is named with its line and the cure: ${ini.slice(0, 60)}`, async (t) => {
      const folder = await temporaryFolder(t);
      await writeFiles(folder, { 'server.ini': ini });
      await assert.rejects(readTestConfig(join(folder, 'server.ini')), { message });
    });
  }

  test('is a host where it has a port', () => {
    assert.equal(parseSource('http://unix:3000/*')?.server, 'http://unix:3000');
    assert.equal(parseSource('http://unix:/run/app.sock:/*'), undefined);
  });

  const sources: Readonly<Record<string, readonly [server: string, path: string] | undefined>> = {
    'unix:/run/app.sock': ['unix:/run/app.sock', '/shop/'],
    'unix:/run/app.sock:/': ['unix:/run/app.sock', '/'],
    'unix:/run/app.sock:/base': ['unix:/run/app.sock', '/base/'],
    'unix:/run/../app.sock': undefined,
    'unix:/run//app.sock': undefined,
    'unix:/run/': undefined,
    'unix:app.sock': undefined,
  };
  for (const [source, place] of Object.entries(sources)) {
    test(`means a server and a path of an application: ${source}`, () => {
      const rule = fetchRule({ as: 'application', source });
      if (place === undefined) assert.throws(() => fetchPlan(rule), { code: 'bad_gateway' });
      else {
        const [planned] = fetchPlan(rule).sources;
        assert.deepEqual([planned?.server, planned?.path], place);
      }
    });
  }
});
