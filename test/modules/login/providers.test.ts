import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { Provider } from 'oidc-provider';
import { startSite, type TestSite } from '../../harness.ts';
import { startProvider } from './provider.ts';
import { TestVisitor, type Answered } from './visitor.ts';

const files = { 'site/staff/a.txt': 'for staff', 'site/any/a.txt': 'for all', 'site/a.txt': 'a' };
const sections = `
[disk.site]
root = site
[access.staff]
path = /staff/*
users = yes
providers = staff
[access.ann]
path = /ann
users = guests:ann
[access.any]
path = /any/*
users = yes
`;
const secret = 'a-secret-of-the-client';

interface RealProvider {
  readonly issuer: string;
  /** Begins to answer for a site. */
  serve(site: TestSite, name: string): void;
}

/** oidc-provider on a port of the loopback. */
async function realProvider(t: TestContext): Promise<RealProvider> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const serve = (site: TestSite, name: string): void => {
    const provider = new Provider(issuer, {
      clients: [
        {
          ...{ client_id: `www-${name}`, client_secret: secret },
          redirect_uris: [`${site.url}/svc1/login/callback/${name}`],
          post_logout_redirect_uris: [`${site.url}/`],
        },
      ],
      claims: { openid: ['sub'], profile: ['preferred_username'] },
      features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
      cookies: { keys: ['a key of the provider'] },
      scopes: ['openid', 'profile'],
      pkce: { required: () => true },
      fetch: (url, { dispatcher: _dispatcher, ...options }) => globalThis.fetch(url, options),
      findAccount: (_context, id) => ({
        accountId: id,
        claims: () => ({ sub: id, preferred_username: id }),
      }),
    });
    server.on('request', provider.callback());
  };
  return { issuer, serve };
}

const section = (name: string, issuer: string, more = ''): string => `
[login.${name}]
issuer = ${issuer}
client_id = www-${name}
client_secret = ${secret}
scopes = openid profile
user = preferred_username
${more}`;

async function siteOfTwo(t: TestContext) {
  const [staff, guests] = [await realProvider(t), await realProvider(t)];
  const ini =
    sections +
    section('staff', staff.issuer, 'title = Our <staff>\n') +
    section('guests', guests.issuer);
  const site = await startSite(t, { ini, files });
  staff.serve(site, 'staff');
  guests.serve(site, 'guests');
  return { site, staff, guests };
}

/** Signs in at the page of oidc-provider, and consents; resolves with what comes after. */
async function signInAt(visitor: TestVisitor, page: Answered & { url: string }, name: string) {
  let at = page;
  for (const fields of [`prompt=login&login=${name}&password=x`, 'prompt=consent']) {
    const [, action = ''] = /action="([^"]+)"/.exec(at.text) ?? [];
    assert.notEqual(action, '', at.text);
    const sent = await visitor.send('POST', new URL(action, at.url).href, {
      fields: { 'content-type': 'application/x-www-form-urlencoded' },
      body: fields,
    });
    at = await visitor.follow(new URL(sent.fields.location ?? '', at.url).href);
  }
  return at;
}

suite('several providers', () => {
  test('are chosen on a page, and the session names the one', async (t) => {
    const { site, guests } = await siteOfTwo(t);
    const visitor = new TestVisitor();
    const page = await visitor.follow(`${site.url}/any/a.txt?x=1`);
    assert.equal(new URL(page.url).pathname, '/svc1/login/sign-in');
    assert.match(String(page.fields['content-security-policy']), /frame-ancestors 'none'/);
    assert.match(page.text, />Our &lt;staff&gt;<\/a>/);
    const links = [...page.text.matchAll(/<li><a href="([^"]+)">/g)].map(([, href = '']) =>
      href.replaceAll('&amp;', '&'),
    );
    assert.equal(links.length, 2);
    const form = await visitor.follow(new URL(links[1] ?? '', page.url).href);
    assert.equal(new URL(form.url).origin, guests.issuer);
    const seen = await signInAt(visitor, form, 'ann');
    assert.deepEqual([seen.url, seen.text], [`${site.url}/any/a.txt?x=1`, 'for all']);
    const { data } = await site.call('svc1.login.list', {});
    const [{ user, provider }] = data.rows;
    assert.deepEqual([user, provider], ['guests:ann', 'guests']);
    assert.notEqual((await visitor.open(`${site.url}/ann`)).status, 403, 'named with its prefix');

    // The other provider is asked for what needs it, and its session replaces this one.
    const asked = await visitor.open(`${site.url}/staff/a.txt`);
    assert.match(
      asked.fields.location ?? '',
      /sign-in\?return_to=%2Fstaff%2Fa.txt&provider=staff$/,
    );
    const other = await visitor.follow(`${site.url}/staff/a.txt`);
    assert.equal((await signInAt(visitor, other, 'ann')).text, 'for staff');
    const left = (await site.call('svc1.login.list', {})).data.rows;
    assert.deepEqual(
      left.map((one: { user: string }) => one.user),
      ['staff:ann'],
    );
    assert.equal((await visitor.open(`${site.url}/ann`)).status, 403, 'another ann');
  });

  test('sign a person out at the one of the session', async (t) => {
    const { site, staff } = await siteOfTwo(t);
    const visitor = new TestVisitor();
    const form = await visitor.follow(`${site.url}/staff/a.txt`);
    assert.equal((await signInAt(visitor, form, 'ann')).text, 'for staff');
    const out = await visitor.open(`${site.url}/svc1/login/sign-out`);
    const to = new URL(out.fields.location ?? '');
    assert.equal(to.origin, staff.issuer);
    assert.equal(to.pathname, '/session/end');
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).status, 302);
  });

  test('do not complete the sign-ins of one another', async (t) => {
    const { site } = await siteOfTwo(t);
    const visitor = new TestVisitor();
    const sent = await visitor.open(`${site.url}/svc1/login/sign-in?provider=staff`);
    const state = new URL(sent.fields.location ?? '').searchParams.get('state') ?? '';
    const mixed = `${site.url}/svc1/login/callback/guests?code=x&state=${state}`;
    assert.equal((await visitor.open(mixed)).status, 400);
    for (const path of ['callback', 'callback/none', 'callback/staff/x', 'sign-in/staff']) {
      const { status } = await visitor.open(`${site.url}/svc1/login/${path}?state=${state}`);
      assert.equal(status, 404, path);
    }
    const unknown = await visitor.open(`${site.url}/svc1/login/sign-in?provider=none`);
    assert.equal(unknown.status, 404);
  });

  test('end their own sessions only by a logout token', async (t) => {
    const [one, other] = [await startProvider(t), await startProvider(t)];
    const keys = (name: string, { issuer }: { issuer: string }) =>
      `[login.${name}]\nissuer = ${issuer}\nclient_id = www\n` +
      'client_secret = "the secret / of the client"\nuser = preferred_username\n';
    const ini = sections + keys('staff', one) + keys('guests', other);
    const site = await startSite(t, { ini, files });
    const visitor = new TestVisitor();
    assert.equal((await visitor.follow(`${site.url}/staff/a.txt`)).text, 'for staff');
    const nowSeconds = Math.floor(Date.now() / 1_000);
    const logout = async (by: typeof one, name: string): Promise<number> => {
      const token = await by.sign({
        ...{ iss: by.issuer, aud: 'www', sub: 'person-1', jti: 'a', iat: nowSeconds },
        ...{ exp: nowSeconds + 60 },
        events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
      });
      const url = `${site.url}/svc1/login/back-channel-logout/${name}`;
      const type = 'application/x-www-form-urlencoded';
      const sent = { fields: { 'content-type': type }, body: `logout_token=${token}` };
      return (await new TestVisitor().send('POST', url, sent)).status;
    };
    assert.equal(await logout(other, 'staff'), 400, 'a token of another issuer');
    assert.equal(await logout(other, 'guests'), 200);
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).text, 'for staff');
    assert.equal(await logout(one, 'staff'), 200);
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).status, 302);
  });

  test('open the console by their own roles only', async (t) => {
    const [one, other] = [await startProvider(t), await startProvider(t)];
    const keys = (name: string, { issuer }: { issuer: string }, more: string) =>
      `[login.${name}]\nissuer = ${issuer}\nclient_id = www\n` +
      `client_secret = "the secret / of the client"\nuser = preferred_username\n${more}`;
    const ini = keys('staff', one, 'console_roles = staff\n') + keys('guests', other, '');
    const site = await startSite(t, { ini });
    const state = 'a'.repeat(43);
    const at = (name: string) =>
      `${site.url}/svc1/login/sign-in?console=${state}${name === '' ? '' : `&provider=${name}`}`;
    assert.equal((await new TestVisitor().open(at('guests'))).status, 404);
    const sent = await new TestVisitor().open(at(''));
    assert.equal(new URL(sent.fields.location ?? '').origin, new URL(one.issuer).origin);
  });
});

test('a mistake in [login.<name>] or `providers` is named', async (t) => {
  for (const [text, pattern] of [
    ['[login.a]\nclient_id = x\n', /\[login\.a\] needs `issuer`/],
    ['[login.a]\nissuer = https://a.example\n', /`issuer` needs `client_id`, too/],
    ['[login.login]\nissuer = https://a.example\nclient_id = x\n', /needs another name/],
    ['[access.x]\nallow = ::1\nproviders = a\n', /`providers` needs `users` or `roles`/],
    [
      '[login.staff]\nissuer = https://a.example\nclient_id = x\n' +
        '[access.x]\nusers = yes\nproviders = staf\n',
      /there is no provider \[login\.staf\]; did you mean `staff`\?/,
    ],
  ] as const) {
    await assert.rejects(startSite(t, { ini: text }), pattern, text);
  }
});
