import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { suite, test } from 'node:test';
import { WebSocket } from 'ws';
import { readTestConfig, startSite } from '../../harness.ts';
import { newIssuer } from '../../modules/visitors/issuer.ts';
import { startReceiver } from '../../modules/webhooks/receiver.ts';
import { httpSource } from '../outbound/sources.ts';

const page = { path: '/a', kind: 'content', content: 'x' };
const contentPath = '/svc1/userinterface/get_content';

suite('claims of a caller about itself are not trusted', () => {
  test('get_content drops the header that names a user', async (t) => {
    const source = createServer((request, response) => {
      response.end(JSON.stringify(request.headers));
    }).listen(0, '127.0.0.1');
    await once(source, 'listening');
    t.after(() => source.close());
    const address = source.address();
    assert.ok(address !== null && typeof address === 'object');
    const enginedata = { source: `http://127.0.0.1:${address.port}/*` };
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n[auth]\nuser_header = X-User\n',
      rules: [{ path: '/echo/*', kind: 'content.fetch', enginedata }],
    });
    const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/echo/a`;
    const fields = '_v.headers.x-user=root&_v.headers.x_user=root&_v.headers.accept-language=de';
    const reply = await fetch(`${site.url}${contentPath}?${place}&${fields}`);
    const seen = (await reply.json()) as Record<string, string>;
    assert.deepEqual([seen['x-user'], seen.x_user], [undefined, undefined]);
    assert.equal(seen['accept-language'], 'de');
    const direct = await fetch(`${site.url}/echo/a`, { headers: { X_User: 'root' } });
    assert.equal(((await direct.json()) as Record<string, string>).x_user, undefined);
  });

  test('content fetched for one user is not served to others', async (t) => {
    const source = createServer(({ headers }, response) => {
      response.setHeader('Cache-Control', 'max-age=3600').end(JSON.stringify(headers));
    }).listen(0, '127.0.0.1');
    await once(source, 'listening');
    t.after(() => source.close());
    const address = source.address();
    assert.ok(address !== null && typeof address === 'object');
    const site = await startSite(t, {
      server: 'trust_proxy = 127.0.0.0/8\n',
      ini:
        '[fetch]\nallow_private = 127.0.0.0/8\n[geo]\ncountry_header = X_Country\n' +
        '[auth]\nuser_header = X-User\nroles_header = X-Roles\n',
      rules: [
        {
          path: '/echo/*',
          kind: 'content.fetch',
          enginedata: { source: `http://127.0.0.1:${address.port}/*`, pass: ['x_country'] },
        },
      ],
    });
    const seenBy = async (headers: Record<string, string>) =>
      (await (await fetch(`${site.url}/echo/a`, { headers })).json()) as Record<string, string>;
    assert.equal((await seenBy({ 'X-User': 'ann' }))['x-user'], 'ann');
    assert.equal((await seenBy({ 'X-User': 'bob' }))['x-user'], 'bob');
    assert.equal((await seenBy({ 'X-Roles': 'editor' }))['x-roles'], 'editor');
    assert.equal((await seenBy({ X_Country: 'AT' })).x_country, 'AT');
    const nobody = await seenBy({});
    assert.deepEqual(
      [nobody['x-user'], nobody['x-roles'], nobody.x_country],
      [undefined, undefined, undefined],
    );
  });

  test('another spelling of a header of the proxy is not passed on', async (t) => {
    const source = createServer((request, response) => {
      response.end(JSON.stringify(request.headers));
    }).listen(0, '127.0.0.1');
    await once(source, 'listening');
    t.after(() => source.close());
    const address = source.address();
    assert.ok(address !== null && typeof address === 'object');
    const enginedata = {
      source: `http://127.0.0.1:${address.port}/*`,
      pass: ['x_user', 'x.user', 'x_country', 'x-country'],
    };
    const seenBy = async (server: string, headers: Record<string, string>) => {
      const site = await startSite(t, {
        server,
        ini:
          '[fetch]\nallow_private = 127.0.0.0/8\n[auth]\nuser_header = X-User\n' +
          '[geo]\ncountry_header = X_Country\n',
        rules: [{ path: '/echo/*', kind: 'content.fetch', enginedata }],
      });
      const reply = await fetch(`${site.url}/echo/a`, { headers });
      const seen = (await reply.json()) as Record<string, string>;
      return ['x-user', 'x_user', 'x.user', 'x_country', 'x-country'].map((name) => seen[name]);
    };
    const [x_user, x_country] = ['root', 'XX'];
    const forged = { x_user, 'x.user': 'root', 'x-country': 'XX' };
    assert.deepEqual(
      await seenBy('trust_proxy = 127.0.0.0/8\n', { ...forged, 'x-user': 'ann', X_Country: 'AT' }),
      ['ann', undefined, undefined, 'AT', undefined],
    );
    assert.deepEqual(await seenBy('', { ...forged, 'x-user': 'root', x_country }), [
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('a page rule that leads back to the server is no trusted proxy', async (t) => {
    const site = await startSite(t, {
      server: 'trust_proxy = 127.0.0.0/8\n',
      ini:
        '[fetch]\nallow_private = 127.0.0.0/8\n[auth]\nuser_header = X-User\n' +
        '[access.members]\npath = /mine\nusers = yes\n' +
        '[access.machine]\npath = /machine\nallow = 127.0.0.0/8\n',
      rules: [
        { path: '/mine', kind: 'content', content: 'secret' },
        { path: '/machine', kind: 'content', content: 'secret' },
      ],
    });
    const enginedata = { source: `${site.url}/*`, headers: { 'X-User': 'victim' } };
    const back = { path: '/back/*', kind: 'content.fetch', enginedata };
    assert.equal((await site.call('svc1.userinterface.insert', back)).error, undefined);
    const shown = async (path: string, headers = {}) => {
      const reply = await fetch(site.url + path, { headers });
      return (await reply.text()).includes('secret');
    };
    assert.equal(await shown('/mine', { 'X-User': 'ann' }), true, 'by the proxy');
    assert.equal(await shown('/machine'), true, 'from this machine');
    assert.equal(await shown('/back/mine'), false);
    assert.equal(await shown('/back/machine'), false);
  });

  test('whatever leads back to the server is a stranger there, not this machine', async (t) => {
    const asked: string[] = [];
    const { origin } = await httpSource(t, ({ url = '', headers }, response) => {
      asked.push(url);
      response.end(String(headers['x-user']));
    });
    const issuer = await newIssuer('one');
    const guarded = (own: string) => `
[webhook]
allow_private = 127.0.0.0/8
[auth]
user_header = X-User
jwt_jwks = ${own}/machine/keys
allow_private = 127.0.0.0/8
[proxy.machine]
path = /machine/
source = ${origin}/
[access.machine]
path = /machine/*
allow = 127.0.0.0/8
[proxy.back]
path = /back/
source = ${own}/machine/
[access.asked]
path = /asked/*
forward = ${own}/machine/asked
[access.people]
path = /people/*
users = yes
`;
    const server = 'trust_proxy = 127.0.0.0/8\n';
    const site = await startSite(t, { server, ini: guarded('http://127.0.0.1:1') });
    await writeFile(
      site.iniFile,
      (await readFile(site.iniFile, 'utf8')).replaceAll('http://127.0.0.1:1/', `${site.url}/`),
    );
    site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
    const get = async (path: string, headers = {}) =>
      (await fetch(site.url + path, { headers })).status;
    assert.equal(await get('/machine/direct'), 200);
    // Another server may have a proxy of the same name.
    assert.equal(await get('/machine/direct', { via: '1.1 waymark-proxy-machine' }), 200);
    assert.equal(await get('/back/proxied'), 403);
    assert.equal(await get('/asked/forwarded'), 403);
    await get('/people/', { authorization: `Bearer ${await issuer.sign({ claims: {} })}` });
    const hook = {
      ...{ event: ['sale.completed'], url: `${site.url}/machine/hook` },
      headers: { 'X-User': 'root', Via: '1.1 other' },
    };
    assert.equal((await site.call('svc1.webhook.insert', hook)).error, undefined);
    await site.call('svc1.event.insert', { type: 'sale.completed', data: { id: 'S' } });
    await site.untilLogged(/ 403 POST [^\n]*\/machine\/hook /);
    assert.deepEqual(asked, ['/direct', '/direct']);
  });

  test('a visitor cannot hide an address by a Via that it makes up', async (t) => {
    const app = await httpSource(t, ({ headers }, response) => {
      response.end(headers['x-forwarded-for']);
    });
    const site = await startSite(t, {
      ini: `[proxy.app]\npath = /app/\nsource = ${app.origin}\n`,
      rules: [{ path: '/r', kind: 'resolve', enginedata: { target: '/a' } }],
    });
    // The ids of page rules are in answers for everybody.
    const resolved = await fetch(`${site.url}/svc1/userinterface/get_resolve?_v.k=/r`);
    const { data } = (await resolved.json()) as { readonly data: { readonly id: string } };
    const names = [`waymark-${data.id}`, 'waymark-proxy-app', 'waymark-a, 1.1 '.repeat(1_000)];
    for (const name of names) {
      const reply = await fetch(`${site.url}/app/`, { headers: { via: `1.1 ${name}x` } });
      const known = await fetch(`${site.url}/app/`, { headers: { via: `1.1 ${name.trim()}` } });
      assert.deepEqual([await reply.text(), await known.text()], ['127.0.0.1', '127.0.0.1']);
    }
  });

  test('a hook says nothing about a client', async (t) => {
    const receiver = await startReceiver(t);
    const site = await startSite(t, {
      ini: '[webhook]\nallow_private = 127.0.0.0/8\n[auth]\nuser_header = X-User\n',
    });
    const headers = {
      'X-User': 'root',
      'X-Forwarded-For': '192.0.2.1',
      Forwarded: 'for=x',
      A: 'b',
    };
    const hook = { event: ['sale.completed'], url: receiver.url, headers };
    assert.equal((await site.call('svc1.webhook.insert', hook)).error, undefined);
    await site.call('svc1.event.insert', { type: 'sale.completed', data: { id: 'S' } });
    const [got] = await receiver.until(1);
    const names = ['x-user', 'x-forwarded-for', 'forwarded', 'a'];
    assert.deepEqual(
      names.map((name) => got?.headers[name]),
      [undefined, undefined, undefined, 'b'],
    );
  });

  test('get_content sandboxes a page of another origin, not one of its own', async (t) => {
    const site = await startSite(t, { rules: [page] });
    const policy = async (origin: string) => {
      const place = `_v.origin=${encodeURIComponent(origin)}&_v.path=/a`;
      const reply = await fetch(`${site.url}${contentPath}?${place}`);
      assert.equal(await reply.text(), 'x');
      return reply.headers.get('content-security-policy');
    };
    assert.equal(await policy('http://other.example'), 'sandbox');
    assert.equal(await policy(site.url), null);
  });

  test('get_content drops cookies and origin-wide headers of a page of another origin', async (t) => {
    const { origin } = await httpSource(t, (_, response) => {
      response.writeHead(200, {
        'Set-Cookie': 'jwt=x; Path=/',
        'Clear-Site-Data': '"*"',
        'Service-Worker-Allowed': '/',
        'Content-Type': 'text/javascript',
      });
      response.end('x');
    });
    const enginedata = { source: `${origin}/*` };
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
      rules: [
        { origin: 'http://other.example', path: '/*', kind: 'content.fetch', enginedata },
        { origin: '*', path: '/src/*', kind: 'content.fetch', enginedata },
      ],
    });
    const show = (from: string, path: string, headers = {}) => {
      const place = `_v.origin=${encodeURIComponent(from)}&_v.path=${path}`;
      return fetch(`${site.url}${contentPath}?${place}`, { headers });
    };
    const other = await show('http://other.example', '/a');
    assert.equal(await other.text(), 'x');
    for (const name of ['Set-Cookie', 'Clear-Site-Data', 'Service-Worker-Allowed']) {
      assert.equal(other.headers.get(name), null, name);
    }
    const own = await show(site.url, '/src/a');
    assert.deepEqual(own.headers.getSetCookie(), ['jwt=x; Path=/src/']);
    const worker = await show(site.url, '/src/a', { 'Service-Worker': 'script' });
    assert.equal(worker.status, 403);
    const direct = await fetch(`${site.url}/src/a`, { headers: { 'Service-Worker': 'script' } });
    assert.equal(direct.status, 200);
  });

  test('a page of an origin that is not listed cannot open a websocket', async (t) => {
    const site = await startSite(t, { ini: '[auth]\ncors_origins = https://shop.example\n' });
    const opens = async (origin: string) => {
      const socket = new WebSocket(`${site.url.replace('http', 'ws')}/svc1/ws`, { origin });
      t.after(() => {
        socket.terminate();
      });
      return new Promise<boolean>((resolve) => {
        socket.once('open', () => {
          resolve(true);
        });
        socket.once('error', () => {
          resolve(false);
        });
      });
    };
    assert.equal(await opens('https://evil.example'), false);
    assert.equal(await opens('https://shop.example'), true);
    assert.equal(await opens(site.url), true);
  });
});

test('the content of an unauthorised request is not read', async (t) => {
  const site = await startSite(t);
  // The content never arrives: a response shows that the server did not wait for it.
  const answer = await site.raw(
    'POST /svc1/userinterface/insert HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n' +
      'Connection: close\r\n\r\n',
  );
  assert.match(answer, /^HTTP\/1\.1 401 /);
});

test('a key in a URL does not appear in the log', async (t) => {
  const site = await startSite(t);
  await fetch(`${site.url}/none?apikey=${site.adminKey}`);
  assert.match(site.logged(), /none\?apikey=wmk_/);
  assert.ok(!site.logged().includes(site.adminKey));
});
