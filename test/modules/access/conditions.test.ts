import assert from 'node:assert/strict';
import type { OutgoingHttpHeaders } from 'node:http';
import { suite, test, type TestContext } from 'node:test';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { ask } from '../files/disk-rig.ts';
import { mmdb } from '../visitors/mmdb.ts';
import { basic, scryptLine } from './passwords.ts';

const server = 'trust_proxy = 127.0.0.0/8';
const around = `
[auth]
user_header = X-User
roles_header = X-Roles
[geo]
country_header = X-Country
`;
const files = { 'users.txt': scryptLine('ann', 'secret') };
const rules = [
  { path: '/page', kind: 'content', content: 'page' },
  { path: '/sign-in', kind: 'content', content: 'sign in here' },
  { path: '//double/page', kind: 'content', content: 'double' },
];

/** A site with one rule, and what it answers to requests. */
async function siteWith(t: TestContext, lines: string) {
  const ini = `[access.it]\n${lines}\n${around}`;
  const site = await startSite(t, { ini, files, rules, server });
  const statusOf = async (headers: OutgoingHttpHeaders = {}): Promise<number> =>
    (await ask(site.url, '/page', { headers })).status;
  return { site, statusOf };
}

const from = (address: string) => ({ 'x-forwarded-for': address });
const password = { authorization: basic('ann', 'secret') };
const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

suite('the conditions of [access.<name>]', () => {
  for (const [lines, ...cases] of [
    [
      'allow = 10.0.0.0/8, 2001:db8::/32',
      [from('10.1.2.3'), 200],
      [from('2001:db8::7'), 200],
      [from('11.1.2.3'), 403],
      [{}, 403],
    ],
    ['deny = 10.0.0.0/8', [from('10.1.2.3'), 403], [from('11.1.2.3'), 200]],
    [
      'allow = 10.0.0.0/8\ndeny = 10.9.0.0/16\npassword_file = users.txt\nsatisfy = any',
      [from('10.1.2.3'), 200],
      [from('10.9.2.3'), 403],
      [{ ...from('10.9.2.3'), ...password }, 403],
      [{ ...from('11.1.2.3'), ...password }, 200],
      [from('11.1.2.3'), 401],
    ],
    [
      'allow = 10.0.0.0/8\npassword_file = users.txt',
      [from('10.1.2.3'), 401],
      [{ ...from('10.1.2.3'), ...password }, 200],
      [{ ...from('11.1.2.3'), ...password }, 403],
    ],
    ['countries = DE, at', [{ 'x-country': 'AT' }, 200], [{ 'x-country': 'FR' }, 403], [{}, 403]],
    [
      'deny_countries = FR\nallow = 10.0.0.0/8\nsatisfy = any',
      [{ 'x-country': 'AT' }, 200],
      [{ 'x-country': 'FR' }, 403],
      [from('203.0.113.7'), 403],
      [from('10.1.2.3'), 200],
    ],
    [
      'deny_countries = FR',
      [{ 'x-country': 'AT' }, 200],
      [{ 'x-country': 'fr' }, 403],
      [{ ...from('10.1.2.3'), 'x-country': 'FR' }, 403],
      // A client has no country in a private network, or if the proxy says so.
      [{}, 200],
      [from('192.168.1.2'), 200],
      [from('fd00::2'), 200],
      [{ ...from('203.0.113.7'), 'x-country': 'XX' }, 200],
      // Otherwise it may have any.
      [from('203.0.113.7'), 403],
      [{ ...from('203.0.113.7'), 'x-country': 'France' }, 403],
      [from('2001:db8::7'), 403],
    ],
    [
      'deny_countries = FR, XX',
      [{ 'x-country': 'AT' }, 200],
      [{ 'x-country': 'XX' }, 403],
      [{}, 403],
      [from('203.0.113.7'), 403],
    ],
    [
      'countries = DE, XX',
      [{ 'x-country': 'DE' }, 200],
      [{ 'x-country': 'FR' }, 403],
      [{ ...from('203.0.113.7'), 'x-country': 'XX' }, 200],
      [{}, 200],
      [from('203.0.113.7'), 403],
    ],
    ['users = yes', [{ 'x-user': 'bob' }, 200], [{}, 401]],
    ['users = ann, carl', [{ 'x-user': 'carl' }, 200], [{ 'x-user': 'bob' }, 403], [{}, 401]],
    [
      'roles = staff',
      [{ 'x-user': 'bob', 'x-roles': 'a, staff' }, 200],
      [{ 'x-user': 'bob', 'x-roles': 'a' }, 403],
      [{ 'x-roles': 'staff' }, 401],
    ],
    [
      'users = ann\nroles = staff\nsatisfy = any',
      [{ 'x-user': 'bob', 'x-roles': 'staff' }, 200],
      [{ 'x-user': 'ann' }, 200],
      [{ 'x-user': 'bob' }, 403],
    ],
  ] as readonly (readonly [string, ...(readonly [OutgoingHttpHeaders, number])[]])[]) {
    test(lines.replaceAll('\n', '; '), async (t) => {
      const { statusOf } = await siteWith(t, lines);
      for (const turn of [1, 2]) {
        for (const [headers, status] of cases) {
          assert.equal(await statusOf(headers), status, `${turn}: ${JSON.stringify(headers)}`);
        }
      }
    });
  }

  test('a country is that of the database, and without one nobody from outside is let in', async (t) => {
    const ini = '[geo]\ndatabase = geo.mmdb\n[access.a]\ndeny_countries = FR\n';
    const database = mmdb({ '192.0.2.0/24': { country: { iso_code: 'FR' } } }, { ipVersion: 4 });
    for (const [content, statuses] of [
      [database, [403, 200, 200, 403]],
      [Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1'), [403, 403, 200, 403]],
    ] as const) {
      const site = await startSite(t, { ini, files: { 'geo.mmdb': content }, rules, server });
      const seen: number[] = [];
      for (const address of ['192.0.2.7', '203.0.113.7', '10.1.2.3', '2001:db8::7']) {
        seen.push((await ask(site.url, '/page', { headers: from(address) })).status);
      }
      assert.deepEqual(seen, statuses);
    }
  });

  test('all sections that match must be satisfied', async (t) => {
    const ini = `[access.a]\nallow = 10.0.0.0/8\n[access.b]\npath = /page\nusers = ann\n${around}`;
    const site = await startSite(t, { ini, files, rules, server });
    for (const [headers, status] of [
      [from('10.1.2.3'), 401],
      [{ 'x-user': 'ann' }, 403],
      [{ ...from('10.1.2.3'), 'x-user': 'ann' }, 200],
    ] as const) {
      assert.equal((await ask(site.url, '/page', { headers })).status, status);
    }
    const { data } = await site.call('svc1.userinterface.explain', {
      ...{ path: '/page', ip: '10.1.2.3', user: 'bob' },
    });
    assert.match(data.says, /is refused by the access rule b, with 403\./);
    assert.deepEqual(
      data.access.map(({ rule, passes }: { rule: string; passes: boolean }) => [rule, passes]),
      [
        ['a', true],
        ['b', false],
      ],
    );
    // A preview as another user opens nothing.
    const place = { origin: site.url, path: '/page', user: 'ann', ip: '10.1.2.3' };
    const preview = await site.call('svc1.userinterface.get_content', place);
    assert.equal(preview.error?.code ?? preview.status, 'forbidden');
  });

  test('a person is led to the login page with a way back that never leaves the site', async (t) => {
    const { site } = await siteWith(t, 'users = yes\nlogin = /sign-in');
    for (const [path, location] of [
      ['/page?a=1&b=/x', '/sign-in?return_to=%2Fpage%3Fa%3D1%26b%3D%2Fx'],
      ['//evil.example/x', '/sign-in?return_to=%2Fevil.example%2Fx'],
      ['///evil.example', '/sign-in?return_to=%2Fevil.example'],
      ['/%5Cevil.example', '/sign-in?return_to=%2F%255Cevil.example'],
      ['/page%0d%0aX:y', undefined],
    ] as const) {
      const { status, fields } = await ask(site.url, path, { headers: browser });
      assert.deepEqual([status, fields.location], [location ? 302 : 400, location], path);
    }
    for (const [headers, method] of [
      [{}, 'GET'],
      [browser, 'POST'],
      [{ ...browser, 'sec-fetch-mode': 'cors' }, 'GET'],
    ] as const) {
      const refused = await ask(site.url, '/page', { headers, method });
      assert.deepEqual([refused.status, refused.fields['www-authenticate']], [401, 'Bearer']);
    }
    assert.equal((await ask(site.url, '/sign-in', { headers: browser })).text, 'sign in here');
    const known = { ...browser, 'x-user': 'bob' };
    assert.equal((await ask(site.url, '/page', { headers: known })).text, 'page');
  });

  test('a rule for an origin holds for its host, whatever the scheme and port', async (t) => {
    const ini = '[access.a]\norigin = https://staff.example\nallow = 10.0.0.0/8\n';
    const site = await startSite(t, { ini, rules });
    for (const [host, status] of [
      ['staff.example', 403],
      ['staff.example:99', 403],
      ['STAFF.example.', 403],
      ['other.example', 200],
    ] as const) {
      assert.equal((await ask(site.url, '/page', { headers: { host } })).status, status, host);
    }
    const place = { origin: 'http://staff.example', path: '/page' };
    const { error } = await site.call('svc1.userinterface.get_content', place);
    assert.equal(error?.code, 'forbidden');
  });

  test('two pages to sign in do not lead to each other', async (t) => {
    const ini = `[access.a]\nusers = yes\nlogin = /sign-in\n[access.b]\nroles = x\nlogin = /page\n${around}`;
    const site = await startSite(t, { ini, rules, server });
    for (const path of ['/sign-in', '/page']) {
      assert.equal((await ask(site.url, path, { headers: browser })).status, 200, path);
    }
  });

  test('is refused without a condition, or with one that can never hold', async (t) => {
    for (const [lines, wanted] of [
      ['[rate.a]\n', /\[rate\.a\] has no `rate`: add one, such as `rate = 100\/m`/],
      ['[rate.a]\nrate = 100\n', /`100`: write a number of requests in a second, minute, hour/],
      ['[rate.a]\nrate = 1/m\nby = ip\n', /write `address`, `user`, `key`, or a field such as/],
      ['[rate.a]\nrate = 1/m\nby = user\n', /`by = user` needs `issuer` in \[login\], or/],
      ['[access.a]\npath = /x\n', /\[access\.a\] has no condition/],
      [
        '[access.a]\nusers = yes\n',
        /`users` needs `issuer` in \[login\], or `user_header` or `jwt_jwks` in/,
      ],
      ['[access.a]\ncountries = DE\n', /`countries` needs `database` or `country_header`/],
      ['[access.a]\ncountries = Germany\n', /write the two letters of a country/],
      ['[access.a]\nallow = 10.0.0.0/8\ncopy = X-A\n', /`copy` needs `forward`/],
      ['[access.a]\nallow = 10.0.0.0/8\nlogin = /x\n', /`login` needs a condition/],
      ['[access.a]\nforward = http://u@x/\n', /write the URL of a server/],
      ['[access.a]\nforward = http://x/\ncopy = Host\n', /the server sets that field itself/],
      ['[access.a]\npassword_file = none.txt\n', /`password_file` = `none.txt` does not exist/],
      ['[acces.a]\nallow = 10.0.0.0/8\n', /did you mean `\[access\.a\]`/],
      ['[access.a]\nsatisfy = some\n', /write `all` or `any`/],
      ['[disk.a]\nroot = site\n[access.a]\npassword_file = site/x\n', /contains a password file/],
    ] as const) {
      await assert.rejects(
        startSite(t, { ini: lines, files: { ...files, 'site/x': '' } }),
        wanted,
        lines,
      );
    }
  });
});

suite('satisfy = any', () => {
  test('keeps the password of a client whom its address lets in', async (t) => {
    const seen: unknown[] = [];
    const app = await httpSource(t, ({ headers }, response) => {
      seen.push(headers.authorization);
      response.end();
    });
    const ini = `
[proxy.app]
source = ${app.origin}
[access.it]
satisfy = any
allow = 127.0.0.1
password_file = users.txt
`;
    const site = await startSite(t, { ini, files: { 'users.txt': scryptLine('ann', 'secret') } });
    const own = basic('of the application', 'other');
    for (const authorization of [basic('ann', 'secret'), basic('ann', 'typo'), own, 'Bearer x']) {
      assert.equal((await ask(site.url, '/a', { headers: { authorization } })).status, 200);
    }
    assert.deepEqual(seen, [undefined, undefined, own, 'Bearer x']);
  });
});

suite('forward', () => {
  test('asks another server, copies fields of its answer, and shows its refusals', async (t) => {
    const asked: OutgoingHttpHeaders[] = [];
    const decider = await httpSource(t, (request, response) => {
      asked.push(request.headers);
      const { cookie = '' } = request.headers;
      if (cookie === 'no') response.writeHead(403, { 'x-why': 'no' }).end('not you');
      else if (cookie === 'broken') response.writeHead(500).end('broken');
      else if (cookie === 'gone') request.socket.destroy();
      else if (cookie === '') response.writeHead(302, { location: 'https://id.example/' }).end();
      else response.writeHead(200, { 'remote-user': cookie, 'x-other': 'x' }).end('fine');
    });
    const app = await httpSource(t, (request, response) => {
      const { 'remote-user': user = '', 'x-other': other = '' } = request.headers;
      const spoofed = request.headers.remote_user ?? '';
      response.setHeader('cache-control', 'public, max-age=60');
      response.end(`user ${String(user)}, other ${String(other)}${String(spoofed)}`);
    });
    const ini = `
[proxy.app]
source = ${app.origin}
[access.it]
path = /internal/*
forward = ${decider.origin}/authz?rule=1
copy = Remote-User
`;
    const site = await startSite(t, { ini });
    const get = (cookie: string, path = '/internal/a?b', more: OutgoingHttpHeaders = {}) =>
      ask(site.url, path, { headers: { ...(cookie && { cookie }), ...more } });
    for (const user of ['ada', 'bob', 'ada']) {
      const spoofed = { 'remote-user': 'root', remote_user: 'root', 'x-forwarded-for': '1.2.3.4' };
      const seen = await get(user, '/internal/a?b', spoofed);
      assert.deepEqual([seen.status, seen.text], [200, `user ${user}, other `]);
    }
    const [first = {}] = asked;
    assert.deepEqual(
      ['method', 'proto', 'host', 'uri', 'for'].map((name) => first[`x-forwarded-${name}`]),
      ['GET', 'http', `localhost:${site.port}`, '/internal/a?b', '127.0.0.1'],
    );
    assert.equal(first['remote-user'], undefined);
    const refused = await get('no');
    assert.deepEqual([refused.status, refused.text], [403, 'not you']);
    assert.deepEqual(
      [refused.fields['x-why'], refused.fields['cache-control']],
      ['no', 'no-store'],
    );
    const away = await get('');
    assert.deepEqual([away.status, away.fields.location], [302, 'https://id.example/']);
    for (const cookie of ['broken', 'gone']) assert.equal((await get(cookie)).status, 503, cookie);
    const open = await get('ada', '/open', { 'remote-user': 'root' });
    assert.equal(open.text, 'user , other ', 'no request brings the field along');
    const link = await ask(site.url, '/svc1/userinterface/get?origin=x&path=/internal/a');
    assert.notEqual(link.status, 200);
  });

  test('gets no field of a client that proxies make', async (t) => {
    const seen: (readonly string[])[] = [];
    const decider = await httpSource(t, (request, response) => {
      seen.push(Object.keys(request.headers));
      response.end();
    });
    const ini = `[disk.site]\nroot = site\n[access.it]\nforward = ${decider.origin}/\n`;
    const site = await startSite(t, { ini, files: { 'site/a.txt': 'a' } });
    const made = [
      ...['Forwarded', 'X-Original-URL', 'X-Original-Method', 'X-Original-URI', 'X-Original-Host'],
      ...['X-Original-Forwarded-For', 'X-Rewrite-URL', 'X-Real-IP', 'X-Client-IP', 'Client-IP'],
      ...['X-Forwarded-User', 'X-Forwarded-Groups', 'X-Forwarded-Prefix', 'X-Forwarded-Port'],
      ...['X-Forwarded-Server', 'X-Forwarded-Ssl', 'X-Forwarded-Client-Cert', 'X-Forwarded'],
      ...['X-Auth-Request-User', 'X-Envoy-External-Address', 'X-Cluster-Client-IP'],
      ...['CF-Connecting-IP', 'True-Client-IP', 'Fastly-Client-IP', 'X-Remote-User'],
      ...['X-HTTP-Method-Override', 'X-Method-Override', 'X-Scheme', 'X-Host', 'Remote-Addr'],
    ];
    const kept = { 'x-client-id': 'a', 'x-requested-with': 'b', cookie: 'c', accept: 'd' };
    const headers = { ...Object.fromEntries(made.map((name) => [name, 'spoofed'])), ...kept };
    assert.equal((await ask(site.url, '/a.txt', { headers })).status, 200);
    const own = ['method', 'proto', 'host', 'uri', 'for'].map((name) => `x-forwarded-${name}`);
    const names = new Set(seen[0]);
    assert.deepEqual(
      made.map((name) => name.toLowerCase()).filter((name) => names.has(name)),
      [],
    );
    for (const name of [...Object.keys(kept), ...own]) assert.ok(names.has(name), name);
  });

  test('keeps its fields from clients that name them in Connection or in trailers', async (t) => {
    const seen: unknown[] = [];
    const decider = await httpSource(t, (_, response) => {
      response.setHeader('remote-user', 'guest').end();
    });
    const app = await httpSource(t, (request, response) => {
      request.resume().once('end', () => {
        seen.push([request.headers['remote-user'], request.rawTrailers]);
        response.end();
      });
    });
    const ini = `
[proxy.app]
source = ${app.origin}
[access.it]
path = /internal/*
forward = ${decider.origin}/
copy = Remote-User
`;
    const site = await startSite(t, { ini });
    for (const path of ['/internal/a', '/open']) {
      for (const connection of ['close, Remote-User', 'REMOTE-USER,close', 'close, Remote_User']) {
        await site.raw(
          `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: ${connection}\r\n` +
            'Trailer: Remote-User, X-Other\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n' +
            'Remote-User: root\r\nX-Other: kept\r\nRemote_User: root\r\n\r\n',
        );
        const user = path === '/open' ? undefined : 'guest';
        assert.deepEqual(seen.pop(), [user, ['X-Other', 'kept']], `${path} ${connection}`);
      }
    }
  });

  test('refuses when the other server never answers', async (t) => {
    const decider = await httpSource(t, () => undefined);
    const ini = `[access.it]\nforward = ${decider.origin}\n`;
    const site = await startSite(t, { ini, rules });
    const before = performance.now();
    assert.equal((await ask(site.url, '/page')).status, 503);
    assert.ok(performance.now() - before < 8_000);
    assert.match(site.logged(), /The server that decides about this page does not answer/);
  });
});
