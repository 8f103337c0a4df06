import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';
import { loginIni, startProvider, type TestProvider } from './provider.ts';
import { TestVisitor } from './visitor.ts';

const files = { 'site/staff/a.txt': 'for staff', 'site/open.txt': 'open' };
const access = '[disk.site]\nroot = site\n[access.staff]\npath = /staff/*\nusers = yes\n';

async function siteWithLogin(
  t: TestContext,
  login = '',
): Promise<{ readonly site: TestSite; readonly provider: TestProvider; readonly start: string }> {
  const provider = await startProvider(t);
  const site = await startSite(t, { ini: access + loginIni(provider, login), files });
  return { site, provider, start: `${site.url}/svc1/login/sign-in?return_to=/staff/a.txt` };
}

/** What a sign-in comes to: the status of the callback, and its page. */
async function outcome(start: string) {
  const visitor = new TestVisitor();
  const callback = await visitor.upToCallback(start);
  const { status, text } = await visitor.open(callback);
  return { status, text, hasSession: visitor.cookies.has('waymark_login') };
}

suite('[login] and a provider that cannot be trusted', () => {
  test('signs nobody in by a wrong ID token, and logs one line', async (t) => {
    const { provider, start, site } = await siteWithLogin(t);
    const wrong: readonly [string, TestProvider['behave']][] = [
      ['an unknown key', { hasUnknownKey: true }],
      ['a clock behind', { clockSeconds: -3_600 }],
      ['another nonce', { idToken: (one) => ({ ...one, nonce: 'x' }) }],
      ['no nonce', { idToken: ({ nonce: _nonce, ...one }) => one }],
      ['another issuer', { idToken: (one) => ({ ...one, iss: 'https://evil.example' }) }],
      ['another audience', { idToken: (one) => ({ ...one, aud: 'other' }) }],
      ['several audiences', { idToken: (one) => ({ ...one, aud: ['www', 'x'], azp: 'x' }) }],
      ['no subject', { idToken: ({ sub: _sub, ...one }) => one }],
    ];
    for (const [name, behave] of wrong) {
      provider.behave = behave;
      const { status, hasSession, text } = await outcome(start);
      assert.deepEqual([status, hasSession], [502, false], name);
      assert.match(text, /<h1>|<title>/);
    }
    const lines = site.logged().match(/A sign-in has failed[^\n]*/g) ?? [];
    assert.equal(lines.length, 1, 'within five seconds');
    assert.match(site.logged(), /no applicable keys|signature/);
    provider.behave = { clockSeconds: 20 };
    assert.equal((await outcome(start)).hasSession, true, 'a small difference does not matter');
  });

  test('knows the new key of a provider', async (t) => {
    const { provider, start } = await siteWithLogin(t);
    assert.equal((await outcome(start)).hasSession, true);
    await provider.rotate();
    // openid-client reads the keys again for an unknown one, but not more than once a minute.
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 61_000 });
    assert.equal((await outcome(start)).hasSession, true);
  });

  test('signs in only whom it can name', async (t) => {
    const { provider, start } = await siteWithLogin(t, 'roles = groups.names\n');
    provider.claims = { sub: 'person-1' };
    const unnamed = await outcome(start);
    assert.deepEqual([unnamed.status, unnamed.hasSession], [403, false]);
    assert.match(unnamed.text, /preferred_username/);
    provider.info = { preferred_username: 'bob', groups: { names: ['a', 1, 'b'] } };
    assert.equal((await outcome(start)).hasSession, true, 'the address of userinfo has the name');
    provider.behave = {
      answers: (path) => (path === '/userinfo' ? [200, '{"sub":"x"}'] : undefined),
    };
    assert.equal((await outcome(start)).status, 502, 'userinfo of somebody else');
  });

  test('refuses an address that is not verified', async (t) => {
    const { provider, site, start } = await siteWithLogin(t);
    const ini = access + loginIni(provider).replace('preferred_username', 'email');
    const other = await startSite(t, { ini, files });
    const at = start.replace(site.url, other.url);
    const claims = { sub: '1', email: 'ann@example.com', roles: [] };
    for (const email_verified of [undefined, null, false, 'false', 'False', 'true', 0, 1, {}]) {
      provider.claims = { ...claims, email_verified };
      const { status, hasSession } = await outcome(at);
      assert.deepEqual([status, hasSession], [403, false], JSON.stringify(email_verified));
    }
    provider.claims = { ...claims, email_verified: true };
    assert.equal((await outcome(at)).hasSession, true);
    provider.claims = claims;
    provider.info = { email_verified: true };
    assert.equal((await outcome(at)).hasSession, true, 'userinfo may say so');
  });

  test('goes on without the provider, and finds it again', async (t) => {
    const { provider, start, site } = await siteWithLogin(t);
    provider.behave = { answers: () => [500, '{}'] };
    const down = await new TestVisitor().open(start);
    assert.equal(down.status, 503);
    assert.equal(down.fields['retry-after'], '5');
    assert.equal((await new TestVisitor().open(`${site.url}/open.txt`)).text, 'open');
    assert.equal((await new TestVisitor().open(`${site.url}/staff/a.txt`)).status, 302);
    await new TestVisitor().open(start);
    assert.equal(provider.requests.length, 1, 'it is not asked again at once');
    assert.equal((site.logged().match(/Cannot read the configuration/g) ?? []).length, 1);
  });

  test('reports an answer of the provider that is none', async (t) => {
    const { provider, start, site } = await siteWithLogin(t);
    assert.equal((await outcome(start)).hasSession, true);
    for (const [content, status, code] of [
      ['not json', 200, 502],
      ['{}', 200, 502],
      [JSON.stringify({ error: 'invalid_client' }), 401, 502],
      [`"${'x'.repeat(1_100_000)}"`, 200, 502],
    ] as const) {
      provider.behave = { answers: (path) => (path === '/token' ? [status, content] : undefined) };
      assert.equal((await outcome(start)).status, code, content.slice(0, 30));
    }
    provider.behave = { error: 'access_denied' };
    const denied = await outcome(start);
    assert.deepEqual([denied.status, denied.hasSession], [403, false]);
    assert.match(denied.text, /access_denied/);
    provider.behave = { error: '<script>alert(1)</script>' };
    assert.ok(!(await outcome(start)).text.includes('<script>'));
    assert.ok(!site.logged().includes('the secret / of the client'));
  });
});

suite('[login] and a stranger', () => {
  test('completes a sign-in once, and only in the browser that began it', async (t) => {
    const { start, site } = await siteWithLogin(t);
    const visitor = new TestVisitor();
    const callback = await visitor.upToCallback(start);
    const begun = new Map(visitor.cookies);
    assert.equal((await new TestVisitor().open(callback)).status, 400, 'another browser');
    const url = new URL(callback);
    for (const state of ['', 'x', 'A'.repeat(43), `${url.searchParams.get('state')}x`]) {
      const changed = new URL(callback);
      changed.searchParams.set('state', state);
      assert.equal((await visitor.open(changed.href)).status, 400, state);
    }
    for (const [name, value] of begun) {
      visitor.cookies.set(name, `${value.slice(0, -2)}AA`);
      assert.equal((await visitor.open(callback)).status, 400, 'a changed cookie');
      visitor.cookies.set(name, value);
    }
    const elsewhere = callback.replace('localhost', '127.0.0.1');
    assert.equal((await visitor.open(elsewhere)).status, 400, 'another origin');
    const injected = new URL(callback);
    injected.searchParams.set('code', 'of-somebody-else');
    assert.equal((await visitor.open(injected.href)).status, 400, 'the code of another sign-in');
    assert.equal((await visitor.open(callback)).status, 303);
    for (const [name, value] of begun) visitor.cookies.set(name, value);
    assert.equal((await visitor.open(callback)).status, 400, 'a code that is used up');
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).text, 'for staff');
  });

  test('opens neither in a frame nor by a script, and takes GET only', async (t) => {
    const { start, site } = await siteWithLogin(t);
    for (const to of ['iframe', 'empty', 'image', 'script']) {
      const seen = await new TestVisitor().open(start, { 'sec-fetch-dest': to });
      assert.equal(seen.status, 403, to);
    }
    assert.equal((await new TestVisitor().send('POST', start)).status, 405);
    assert.equal((await new TestVisitor().open(`${site.url}/svc1/login/other`)).status, 404);
    const wrong = await new TestVisitor().open(`${start}&console=short`);
    assert.equal(wrong.status, 400);
  });

  test('stops a browser that goes round in a circle', async (t) => {
    const { start, site } = await siteWithLogin(t);
    const visitor = new TestVisitor();
    for (let turn = 0; turn < 5; turn += 1) {
      assert.equal((await visitor.follow(start)).text, 'for staff');
      visitor.cookies.delete('waymark_login');
    }
    const stopped = await visitor.open(start);
    assert.equal(stopped.status, 429);
    assert.equal(stopped.fields['retry-after'], '60');
    assert.match(site.logged(), /signs in again and again/);
  });

  test('keeps the cookies of a few started sign-ins only', async (t) => {
    const { start } = await siteWithLogin(t);
    const visitor = new TestVisitor();
    for (let turn = 0; turn < 20; turn += 1) {
      await visitor.open(start);
      assert.ok(visitor.cookies.size <= 4);
    }
  });

  test('ends the oldest session of a person, and the one that a browser had', async (t) => {
    const { start, site } = await siteWithLogin(t);
    const first = new TestVisitor();
    await first.follow(start);
    for (let turn = 0; turn < 20; turn += 1) await new TestVisitor().follow(start);
    assert.equal((await first.open(`${site.url}/staff/a.txt`)).status, 302);
    const { data } = await site.call('svc1.login.list', {});
    assert.equal(data.rows.length, 20);
    const last = new TestVisitor();
    await last.follow(start);
    await last.follow(start);
    const after = await site.call('svc1.login.list', {});
    assert.equal(after.data.rows.length, 19);
  });
});

suite('[login] and back-channel logout', () => {
  test('ends the sessions that a valid token names', async (t) => {
    const { provider, start, site } = await siteWithLogin(t);
    const event = { 'http://schemas.openid.net/event/backchannel-logout': {} };
    const iat = Math.floor(Date.now() / 1_000);
    const right = {
      ...{ iss: provider.issuer, aud: 'www', iat, exp: iat + 60, jti: '1', events: event },
      ...{ sub: 'person-1', sid: 'session-1' },
    };
    const send = async (token: string, type = 'application/x-www-form-urlencoded') => {
      const url = `${site.url}/svc1/login/back-channel-logout`;
      const fields = { 'content-type': type, accept: '*/*' };
      return (await new TestVisitor().send('POST', url, { fields, body: `logout_token=${token}` }))
        .status;
    };
    const visitor = new TestVisitor();
    await visitor.follow(start);
    for (const [name, claims, header] of [
      ['another issuer', { ...right, iss: 'x' }],
      ['another audience', { ...right, aud: 'x' }],
      ['no event', { ...right, events: {} }],
      ['a nonce', { ...right, nonce: 'x' }],
      ['nobody', { ...right, sub: undefined, sid: undefined }],
      ['an old one', { ...right, iat: iat - 3_600, exp: iat - 3_000 }],
      ['no id', { ...right, jti: undefined }],
      ['another type', right, { typ: 'at+jwt' }],
    ] as const) {
      assert.equal(await send(await provider.sign(claims, header)), 400, name);
    }
    const other = await startProvider(t);
    assert.equal(await send(await other.sign(right)), 400, 'another key');
    assert.equal(await send('x'), 400);
    assert.equal(await send('x'.repeat(20_000)), 413);
    assert.equal(await send(await provider.sign(right), 'text/plain'), 400);
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).text, 'for staff');
    const elsewhere = await provider.sign({ ...right, sid: 'session-2', sub: 'person-2' });
    assert.equal(await send(elsewhere), 200);
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).text, 'for staff');
    assert.equal(await send(await provider.sign(right, { typ: 'logout+jwt' })), 200);
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).status, 302);
    await visitor.follow(start);
    assert.equal(await send(await provider.sign({ ...right, sid: undefined })), 200);
    assert.equal((await visitor.open(`${site.url}/staff/a.txt`)).status, 302, 'all of a subject');
    assert.equal((await visitor.open(`${site.url}/svc1/login/back-channel-logout`)).status, 405);
  });
});
