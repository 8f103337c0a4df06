import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../harness.ts';
import { startFollower, untilEqual } from '../nodes/rig.ts';
import { loginIni, startProvider, type TestProvider } from './provider.ts';
import { TestVisitor } from './visitor.ts';

const state = 'A'.repeat(43);

async function siteWithConsole(
  t: TestContext,
  login = 'console_roles = staff, admins\nconsole_scopes = read, design\n',
): Promise<{ readonly site: TestSite; readonly provider: TestProvider }> {
  const provider = await startProvider(t);
  return { provider, site: await startSite(t, { ini: loginIni(provider, login) }) };
}

/** Signs in for the console; resolves with the grant. */
async function grantOf(visitor: TestVisitor, site: TestSite): Promise<string> {
  const callback = await visitor.upToCallback(`${site.url}/svc1/login/sign-in?console=${state}`);
  const { fields } = await visitor.open(callback);
  const [page, grant = ''] = (fields.location ?? '').split('#/sign-in?grant=');
  assert.equal(page, `${site.url}/svc1/console/`);
  return grant;
}

/** Calls an operation as the console in the browser of a visitor does. */
async function call(
  visitor: TestVisitor,
  site: TestSite,
  [name, v, apikey]: readonly [name: string, v: object, apikey?: string],
) {
  const fields = { 'content-type': 'application/json', ...(apikey !== undefined && { apikey }) };
  const path = name.replace('.', '/');
  const body = JSON.stringify({ v });
  const seen = await visitor.send('POST', `${site.url}/svc1/${path}`, { fields, body });
  return { ...(JSON.parse(seen.text) as Answer), status: seen.status };
}

suite('the console by [login]', () => {
  test('opens for a person with a role, under a key of that person', async (t) => {
    const { site } = await siteWithConsole(t);
    const visitor = new TestVisitor();
    const offer = await call(visitor, site, ['session.read', {}]);
    assert.equal(offer.data.sign_in, '/svc1/login/sign-in');
    const grant = await grantOf(visitor, site);
    const { data } = await call(visitor, site, ['login.console', { grant, state }]);
    assert.equal(data.name, 'ann (login)');
    assert.deepEqual(data.scopes, ['read', 'design']);
    const written = await call(visitor, site, [
      'userinterface.insert',
      { path: '/a', kind: 'content', content: 'x' },
      data.token,
    ]);
    assert.equal(written.status, 200, JSON.stringify(written));
    assert.equal((await call(visitor, site, ['key.list', {}, data.token])).status, 403);
    const keys = await site.call('svc1.key.list', {});
    const key = keys.data.rows.find((one: { name: string }) => one.name === 'ann (login)');
    assert.deepEqual([key.id, key.scopes], [data.key, ['read', 'design']]);
    assert.ok(!('login' in key), 'the hash of the person is not shown');
    const changes = await site.call('svc1.change.list', { by: key.id });
    assert.equal(changes.data.rows[0].family, 'userinterface');
    // The same person gets the same key.
    const next = await grantOf(visitor, site);
    const again = await call(visitor, site, ['login.console', { grant: next, state }]);
    assert.equal(again.data.key, key.id);
  });

  test('needs the browser, the tab and the role', async (t) => {
    const { site, provider } = await siteWithConsole(t);
    const visitor = new TestVisitor();
    const grant = await grantOf(visitor, site);
    const open = (who: TestVisitor, v: object) => call(who, site, ['login.console', v]);
    assert.equal((await open(new TestVisitor(), { grant, state })).status, 401, 'no cookie');
    const other = new TestVisitor();
    await grantOf(other, site);
    assert.equal((await open(other, { grant, state })).status, 401, 'another browser');
    assert.equal((await open(visitor, { grant, state: 'B'.repeat(43) })).status, 401);
    assert.equal(
      (
        await open(visitor, {
          grant: grant.replace(/.(?=.{20}$)/, (one) => (one === 'a' ? 'b' : 'a')),
          state,
        })
      ).status,
      401,
    );
    assert.equal((await open(visitor, { grant: '', state: '' })).status, 401);
    const started = [...visitor.cookies.values()].join('');
    assert.equal((await open(visitor, { grant: started, state })).status, 401);
    assert.equal((await open(visitor, { grant, state })).status, 200);
    provider.claims = { ...provider.claims, roles: ['visitors'] };
    const noRole = await grantOf(visitor, site);
    const refused = await open(visitor, { grant: noRole, state });
    assert.equal(refused.status, 403);
    assert.match(refused.error?.message ?? '', /ann/);
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 61_000 });
    assert.equal((await open(visitor, { grant, state })).status, 401, 'a minute later');
  });

  test('closes with the session of the visitor', async (t) => {
    const { site } = await siteWithConsole(t);
    for (const way of ['sign-out', 'operation'] as const) {
      const visitor = new TestVisitor();
      const grant = await grantOf(visitor, site);
      const { data } = await call(visitor, site, ['login.console', { grant, state }]);
      const read = () => call(visitor, site, ['session.read', {}, data.token]);
      assert.equal((await read()).data.name, 'ann (login)');
      if (way === 'sign-out') await visitor.open(`${site.url}/svc1/login/sign-out`);
      else {
        const { rows } = (await site.call('svc1.login.list', {})).data;
        await site.call('svc1.login.end', { id: rows.at(-1).id });
      }
      assert.equal((await read()).status, 401, way);
    }
  });

  test('ends a key whose scopes have changed, and its sessions', async (t) => {
    const { site, provider } = await siteWithConsole(t);
    const visitor = new TestVisitor();
    const grant = await grantOf(visitor, site);
    const { data } = await call(visitor, site, ['login.console', { grant, state }]);
    provider.claims = { ...provider.claims, preferred_username: 'anna' };
    const renamed = await grantOf(new TestVisitor(), site);
    assert.notEqual(renamed, grant);
    const other = new TestVisitor();
    const next = await grantOf(other, site);
    const made = await call(other, site, ['login.console', { grant: next, state }]);
    assert.equal(made.data.name, 'anna (login)');
    assert.notEqual(made.data.key, data.key);
    assert.equal((await call(visitor, site, ['session.read', {}, data.token])).status, 401);
  });

  test('is not offered by a replica, where visitors sign in all the same', async (t) => {
    const provider = await startProvider(t);
    const centre = await startSite(t, {
      rules: [
        {
          ...{ path: '/who', kind: 'resolve' },
          enginedata: { html: 'nobody', when: [{ if: { user: 'ann' }, html: 'it is ann' }] },
        },
      ],
    });
    const ini = loginIni(provider, 'console_roles = staff\n');
    const replica = await startFollower(t, centre, { name: 'r1', ini });
    await untilEqual(centre, replica);
    const visitor = new TestVisitor();
    const offer = await call(visitor, replica, ['session.read', {}]);
    assert.equal(offer.data.sign_in, undefined);
    const grant = await grantOf(visitor, replica);
    assert.equal((await visitor.open(`${replica.url}/who`)).text, 'it is ann');
    const refused = await call(visitor, replica, ['login.console', { grant, state }]);
    assert.equal(refused.status, 403);
    assert.match(replica.logged(), /console_roles has no effect: this node follows a centre/);
  });

  test('is not offered without roles', async (t) => {
    const { site } = await siteWithConsole(t, '');
    const visitor = new TestVisitor();
    const offer = await call(visitor, site, ['session.read', {}]);
    assert.equal(offer.data.sign_in, undefined);
    const grant = await grantOf(visitor, site);
    const { status } = await call(visitor, site, ['login.console', { grant, state }]);
    assert.equal(status, 403);
    const plain = await startSite(t);
    assert.equal((await call(visitor, plain, ['login.console', { grant, state }])).status, 403);
  });
});
