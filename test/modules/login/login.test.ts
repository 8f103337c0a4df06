import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { Writable } from 'node:stream';
import { suite, test, type TestContext } from 'node:test';
import { startWaymark } from '../../../src/main.ts';
import { createLogs } from '../../../src/core/report/log.ts';
import { runHere } from '../../cli/here.ts';
import { readTestConfig, startSite, type TestSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { startTlsSite } from '../../core/server/tls/tls-rig.ts';
import { loginIni, startProvider, type TestProvider } from './provider.ts';
import { TestVisitor } from './visitor.ts';

const files = { 'site/staff/a.txt': 'for staff', 'site/open.txt': 'open' };
const rules = [
  {
    ...{ path: '/who', kind: 'resolve' },
    enginedata: { html: 'nobody', when: [{ if: { user: 'ann' }, html: 'it is ann' }] },
  },
];
const access = `
[disk.site]
root = site
[access.staff]
path = /staff/*
roles = staff
`;

/** A site where visitors sign in at a provider. */
async function siteWithLogin(
  t: TestContext,
  more = '',
  login = '',
): Promise<{ readonly site: TestSite; readonly provider: TestProvider }> {
  const provider = await startProvider(t);
  const ini = access + loginIni(provider, login) + more;
  return { provider, site: await startSite(t, { ini, files, rules }) };
}

/** Starts the server of a stopped site again. */
async function restart(t: TestContext, { iniFile }: TestSite) {
  const config = await readTestConfig(iniFile);
  const destination = new Writable({
    write: (_chunk, _encoding, done) => {
      done();
    },
  });
  const logs = createLogs({ settings: config.log, destination, colour: false, now: Date.now });
  const waymark = await startWaymark(config, logs);
  t.after(() => waymark.stop(0));
  return { url: waymark.addresses[0] ?? '', stop: () => waymark.stop(0) };
}

const signIn = (site: TestSite, back = '/open.txt'): string =>
  `${site.url}/svc1/login/sign-in?return_to=${encodeURIComponent(back)}`;

suite('[login]', () => {
  test('keeps sessions over a restart and a reload, and drops those of another issuer', async (t) => {
    const { site, provider } = await siteWithLogin(t);
    const visitor = new TestVisitor();
    await visitor.follow(signIn(site));
    await site.waymark.stop(0);
    const checked = await runHere(['check', '--data', '--config', site.iniFile]);
    assert.equal(checked.code, 0, checked.err);
    const again = await restart(t, site);
    assert.equal((await visitor.open(`${again.url}/staff/a.txt`)).text, 'for staff');
    const other = await startProvider(t);
    await again.stop();
    const ini = await readFile(site.iniFile, 'utf8');
    await writeFile(site.iniFile, ini.replace(provider.issuer, other.issuer));
    const changed = await restart(t, site);
    assert.equal((await visitor.open(`${changed.url}/staff/a.txt`)).status, 302);
  });

  test('leads a browser to the provider and back, and programs nowhere', async (t) => {
    const { site, provider } = await siteWithLogin(t);
    const program = await new TestVisitor().open(`${site.url}/staff/a.txt`, { accept: '*/*' });
    assert.equal(program.status, 401);
    assert.deepEqual(provider.requests, [], 'nobody has needed the provider');

    const visitor = new TestVisitor();
    const refused = await visitor.open(`${site.url}/staff/a.txt?b=1`);
    assert.equal(refused.status, 302);
    assert.equal(refused.fields.location, '/svc1/login/sign-in?return_to=%2Fstaff%2Fa.txt%3Fb%3D1');
    const seen = await visitor.follow(`${site.url}/staff/a.txt?b=1`);
    assert.equal(seen.text, 'for staff');
    assert.equal(seen.url, `${site.url}/staff/a.txt?b=1`);
    assert.match(seen.fields['cache-control'] ?? '', /private/);
    assert.equal((await visitor.open(`${site.url}/who`)).text, 'it is ann');
    assert.equal((await new TestVisitor().open(`${site.url}/who`)).text, 'nobody');
    assert.deepEqual([...visitor.cookies.keys()], ['waymark_login_count', 'waymark_login']);
  });

  test('asks for a code with PKCE, state and nonce, and keeps them from scripts', async (t) => {
    const { site, provider } = await siteWithLogin(t, '', 'scopes = email\n');
    const { fields, cookies, status } = await new TestVisitor().open(signIn(site));
    assert.equal(status, 303);
    const asked = new URL(fields.location ?? '');
    assert.equal(asked.origin + asked.pathname, `${provider.issuer}/auth`);
    const parameters = Object.fromEntries(asked.searchParams);
    const { state, nonce, code_challenge: challenge, ...others } = parameters;
    for (const one of [state, nonce, challenge]) assert.match(one ?? '', /^[\w-]{43}$/);
    assert.deepEqual(others, {
      ...{ client_id: 'www', response_type: 'code', code_challenge_method: 'S256' },
      ...{ redirect_uri: `${site.url}/svc1/login/callback`, scope: 'openid email' },
    });
    const [cookie = ''] = cookies;
    assert.match(
      cookie,
      /^waymark_signin_[\w-]{8}=.*; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/,
    );
    assert.ok(!cookie.includes(state ?? ''), 'the cookie is sealed');
    assert.equal(fields['cache-control'], 'no-store');
    assert.equal(fields['referrer-policy'], 'no-referrer');
  });

  test('has __Host- cookies over TLS, where others do not count', async (t) => {
    const provider = await startProvider(t);
    const site = await startTlsSite(t, { ini: access + loginIni(provider), files });
    const origin = `https://localhost:${site.tlsPort}`;
    const cookies = new Map<string, string>();
    const open = async (url: string) => {
      const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
      const seen = await site.ask(url, { headers: { cookie, accept: 'text/html' } });
      const lines = (seen.headers['set-cookie'] ?? []) as unknown as readonly string[];
      for (const line of lines) {
        assert.match(line, /^__Host-.*; Path=\/; .*HttpOnly; SameSite=Lax; Secure$/);
        cookies.set(line.split('=')[0] ?? '', /=([^;]*)/.exec(line)?.[1] ?? '');
      }
      return seen;
    };
    const begun = await open(`${origin}/svc1/login/sign-in`);
    const { fields } = await new TestVisitor().open(begun.headers.location ?? '');
    const back = await open(fields.location ?? '');
    assert.equal(back.headers.location, `${origin}/`);
    assert.equal((await open(`${origin}/staff/a.txt`)).body, 'for staff');
    const session = cookies.get('__Host-waymark_login') ?? '';
    cookies.clear();
    cookies.set('waymark_login', session);
    assert.equal((await open(`${origin}/staff/a.txt`)).status, 302, 'a planted cookie');
  });

  test('ends the way back at its own origin', async (t) => {
    const { site } = await siteWithLogin(t);
    for (const [written, path] of [
      ['/open.txt?a=1&b=%2F', '/open.txt?a=1&b=%2F'],
      ['/%C3%A9', '/%C3%A9'],
      ['https://evil.example/', '/'],
      ['//evil.example/', '//evil.example/'],
      ['/.//evil.example', '//evil.example'],
      ['/\\evil.example', '/'],
      ['/\t/evil.example', '/'],
      ['javascript:alert(1)', '/'],
      ['.evil.example/', '/'],
      ['@evil.example/', '/'],
      [':1@evil.example/', '/'],
      ['/svc1/login/sign-out', '/'],
      ['/svc1/%6cogin/sign-in', '/'],
      ['/%73vc1/./login/sign-out?a=1', '/'],
      ['/svc1/login%2fsign-in', '/svc1/login%2fsign-in'],
      ['/a%00b', '/'],
      [`/${'a'.repeat(2_000)}`, '/'],
      ['/a\r\nSet-Cookie: x=y', '/'],
      ['', '/'],
    ] as const) {
      const visitor = new TestVisitor();
      const callback = await visitor.upToCallback(signIn(site, written));
      const { fields } = await visitor.open(callback);
      assert.equal(fields.location, site.url + path, written);
    }
  });

  test('gives no source the cookies', async (t) => {
    const got: string[] = [];
    const app = await httpSource(t, (request, response) => {
      got.push(request.headers.cookie ?? 'none');
      response.end('from the application');
    });
    const proxy = `[proxy.app]\npath = /staff/app/\nsource = ${app.origin}\n`;
    const { site } = await siteWithLogin(t, proxy);
    const visitor = new TestVisitor();
    visitor.cookies.set('own', '1');
    assert.equal((await visitor.follow(`${site.url}/staff/app/`)).text, 'from the application');
    visitor.cookies.delete('own');
    await visitor.open(`${site.url}/staff/app/again`);
    assert.deepEqual(got, ['own=1', 'none']);
  });

  test('gives the server of `forward` no cookies, also for an operation', async (t) => {
    const got: string[] = [];
    const decider = await httpSource(t, (request, response) => {
      got.push(request.headers.cookie ?? 'none');
      response.end();
    });
    const more = `[access.forward]\npath = /staff/*\nforward = ${decider.origin}/\n`;
    const { site } = await siteWithLogin(t, more);
    const visitor = new TestVisitor();
    visitor.cookies.set('own', '1');
    assert.equal((await visitor.follow(`${site.url}/staff/a.txt`)).text, 'for staff');
    const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/staff/a.txt`;
    const operation = `${site.url}/svc1/userinterface/get_content?${place}`;
    assert.equal((await visitor.open(operation)).text, 'for staff');
    assert.deepEqual(got, ['own=1', 'own=1']);
  });

  test('ends a session here and at the provider', async (t) => {
    const { site, provider } = await siteWithLogin(t, '', 'signed_out = /open.txt\n');
    const visitor = new TestVisitor();
    await visitor.follow(signIn(site));
    const cookies = new Map(visitor.cookies);
    for (const fields of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
      { 'sec-purpose': 'prefetch' },
      { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'image' },
      { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'iframe' },
      { referer: 'https://evil.example/' },
      { referer: 'nothing' },
    ]) {
      const refused = await visitor.open(`${site.url}/svc1/login/sign-out`, fields);
      assert.equal(refused.status, 403, JSON.stringify(fields));
    }
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).text, 'for staff');
    const referer = `${site.url}/staff/a.txt`;
    const ended = await visitor.open(`${site.url}/svc1/login/sign-out`, { referer });
    const location = new URL(ended.fields.location ?? '');
    assert.equal(location.origin + location.pathname, `${provider.issuer}/end`);
    assert.equal(location.searchParams.get('post_logout_redirect_uri'), `${site.url}/open.txt`);
    assert.equal(location.searchParams.get('client_id'), 'www');
    assert.match(location.searchParams.get('id_token_hint') ?? '', /^eyJ/);
    assert.ok(!visitor.cookies.has('waymark_login'));
    for (const [name, value] of cookies) visitor.cookies.set(name, value);
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).status, 302, 'a kept cookie');
    const again = await visitor.open(`${site.url}/svc1/login/sign-out`);
    assert.equal(again.fields.location, `${site.url}/open.txt`, 'nothing to end');
  });

  test('lists and ends sessions by operations', async (t) => {
    const { site } = await siteWithLogin(t);
    const [one, other] = [new TestVisitor(), new TestVisitor()];
    await one.follow(signIn(site));
    await other.follow(signIn(site));
    const { data } = await site.call('svc1.login.list', {});
    assert.equal(data.rows.length, 2);
    assert.deepEqual([data.rows[0].user, data.rows[0].roles, data.next], ['ann', ['staff'], null]);
    const ended = await site.call('svc1.login.end', { id: data.rows[0].id });
    assert.equal(ended.data.ended, true);
    assert.equal((await one.open(`${site.url}/staff/a.txt`)).status, 302);
    assert.equal((await other.open(`${site.url}/staff/a.txt`)).text, 'for staff');
    assert.equal((await site.call('svc1.login.end', { id: data.rows[0].id })).status, 404);
    const all = await site.call('svc1.login.list', { user: 'bob' });
    assert.deepEqual(all.data.rows, []);
    const refused = await site.call('svc1.login.list', {}, { apikey: undefined });
    assert.equal(refused.error?.code, 'unauthenticated');
    const options = ['--url', site.url, '--apikey', site.adminKey];
    const listed = await runHere(['login', 'list', ...options]);
    assert.match(listed.out, /^ID .*\n[0-9a-f-]{36} .* staff +ann\n$/);
    const [, last] = data.rows;
    assert.equal((await runHere(['login', 'end', last.id, ...options])).code, 0);
    const none = await runHere(['login', 'list', ...options]);
    assert.equal(none.out + none.err, 'Nobody has signed in by [login].\n');
  });

  test('checks the session for each answer that is prepared', async (t) => {
    const { site } = await siteWithLogin(t);
    const [visitor, other] = [new TestVisitor(), new TestVisitor()];
    await visitor.follow(signIn(site));
    other.cookies.set('waymark_login', `${'0'.repeat(36)}.${'A'.repeat(43)}`);
    const url = `${site.url}/staff/a.txt`;
    for (let turn = 0; turn < 5; turn += 1) {
      assert.equal((await visitor.open(url)).text, 'for staff');
      assert.equal((await other.open(url)).status, 302);
      assert.equal((await new TestVisitor().open(url)).status, 302);
    }
    const { data } = await site.call('svc1.login.list', {});
    await site.call('svc1.login.end', { id: data.rows[0].id });
    assert.equal((await visitor.open(url)).status, 302);
  });

  test('tells a refused person the account, with a link to sign out', async (t) => {
    const more = '[access.boss]\npath = /boss/*\nroles = boss\n';
    const own = '[access.own]\npath = /own/*\nroles = boss\nlogin = /sign-in\n';
    const { site, provider } = await siteWithLogin(t, more + own);
    provider.claims = { ...provider.claims, preferred_username: '<b>ann</b>' };
    const visitor = new TestVisitor();
    await visitor.follow(signIn(site));
    const refused = await visitor.open(`${site.url}/boss/a.txt`);
    assert.equal(refused.status, 403);
    const link = '<a href="/svc1/login/sign-out">Sign out</a>';
    assert.ok(refused.text.includes(`You are signed in as &lt;b&gt;ann&lt;/b&gt;. ${link}`));
    const unlinked = await visitor.open(`${site.url}/own/a.txt`);
    assert.match(unlinked.text, /You are signed in as [^<]*\.<\/p>/);
  });

  test('sends nobody to the provider where the ini file says so', async (t) => {
    const more = '[access.no]\npath = /no/*\nusers = yes\nlogin = no\n';
    const own = '[access.own]\npath = /own/*\nusers = yes\nlogin = /sign-in\n';
    const network = '[access.net]\npath = /net/*\nallow = 192.0.2.1\n';
    const { site } = await siteWithLogin(t, more + own + network);
    const open = async (path: string) => new TestVisitor().open(site.url + path);
    assert.equal((await open('/no/a')).status, 401);
    assert.equal((await open('/own/a')).fields.location, '/sign-in?return_to=%2Fown%2Fa');
    assert.equal((await open('/net/a')).status, 403);
  });

  test('lets a proxy and a token name the user before the session', async (t) => {
    const provider = await startProvider(t);
    const auth = '[auth]\nuser_header = X-User\n';
    const ini = access + loginIni(provider) + auth;
    const site = await startSite(t, { ini, files, rules, server: 'trust_proxy = 127.0.0.1' });
    const visitor = new TestVisitor();
    await visitor.follow(signIn(site));
    assert.equal((await visitor.open(`${site.url}/who`)).text, 'it is ann');
    for (let turn = 0; turn < 3; turn += 1) {
      assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).text, 'for staff');
      const other = await visitor.open(`${site.url}/staff/a.txt`, { 'x-user': 'bob' });
      assert.equal(other.status, 403);
    }
    const other = await visitor.open(`${site.url}/who`, { 'x-user': 'bob' });
    assert.equal(other.text, 'nobody');
  });

  test('has its paths below the base of the server', async (t) => {
    const provider = await startProvider(t);
    const ini = access + loginIni(provider);
    const site = await startSite(t, { ini, files, server: 'base = /w y' });
    const visitor = new TestVisitor();
    const refused = await visitor.open(`${site.url}/staff/a.txt`);
    assert.match(refused.fields.location ?? '', /^\/w%20y\/svc1\/login\/sign-in\?/);
    assert.equal((await visitor.follow(`${site.url}/staff/a.txt`)).text, 'for staff');
  });

  test('accepts neither a changed session nor that of another provider', async (t) => {
    const { site } = await siteWithLogin(t);
    const visitor = new TestVisitor();
    await visitor.follow(signIn(site));
    const [id = '', secret = ''] = (visitor.cookies.get('waymark_login') ?? '').split('.');
    for (const value of [`${id}.${'A'.repeat(43)}`, id, `${id}.`, secret, '', `x.${secret}`]) {
      visitor.cookies.set('waymark_login', value);
      assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).status, 302, value);
    }
    // A second cookie of the name hides the right one not.
    visitor.cookies.set('waymark_login', `x; waymark_login=${id}.${secret}`);
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).text, 'for staff');
  });
});
