import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { Provider } from 'oidc-provider';
import type { Page } from 'playwright-core';
import { startSite, type TestSite } from '../harness.ts';
import { eventually } from '../modules/files/disk-rig.ts';
import { oneBrowser } from './browser.ts';
import { goTo, heading } from './console-tab.ts';

const openTab = oneBrowser();
const files = {
  'site/staff/index.html': '<!doctype html><title>Staff</title><h1>For staff</h1>',
  'site/index.html': '<!doctype html><title>Front</title><h1>Front page</h1>',
};

/**
 * A site on `localhost`, and oidc-provider on `127.0.0.1`: to a browser these are two sites. Whoever
 * signs in there as `admin` has the role `admins`.
 */
async function siteWithProvider(
  t: TestContext,
  more = '',
): Promise<{ readonly site: TestSite; readonly issuer: string }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ini = `
[disk.site]
root = site
[access.staff]
path = /staff/*
users = yes
[login]
issuer = ${issuer}
client_id = www
client_secret = a-secret-of-the-client
scopes = openid profile roles
user = preferred_username
console_roles = admins
${more}`;
  const site = await startSite(t, { ini, files });
  const provider = new Provider(issuer, {
    clients: [
      {
        ...{ client_id: 'www', client_secret: 'a-secret-of-the-client' },
        redirect_uris: [`${site.url}/svc1/login/callback`],
        post_logout_redirect_uris: [`${site.url}/`],
        backchannel_logout_uri: `${site.url}/svc1/login/back-channel-logout`,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ['sub'], profile: ['preferred_username'], roles: ['roles'] },
    scopes: ['openid', 'profile', 'roles'],
    features: {
      devInteractions: { enabled: true },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true },
    },
    cookies: { keys: ['a key of the provider'] },
    pkce: { required: () => true },
    // Its own dispatcher refuses the loopback.
    fetch: (url, { dispatcher: _dispatcher, ...options }) => globalThis.fetch(url, options),
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, roles: id === 'admin' ? ['admins'] : [] }),
    }),
  });
  server.on('request', provider.callback());
  return { site, issuer };
}

/** Signs in at the page of the provider, and consents. */
async function signInAt(page: Page, name: string): Promise<void> {
  await page.getByPlaceholder('Enter any login').fill(name);
  await page.getByPlaceholder('and password').fill('any');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
}

suite('[login] with oidc-provider in a browser', () => {
  test('signs a person in for a page, and out here and there', async (t) => {
    const { site, issuer } = await siteWithProvider(t);
    const { page } = await openTab(t);
    await page.goto(`${site.url}/staff/`);
    await signInAt(page, 'ann');
    await page.getByRole('heading', { name: 'For staff' }).waitFor();
    assert.equal(page.url(), `${site.url}/staff/`);
    const cookies = await page.context().cookies(site.url);
    const session = cookies.find(({ name }) => name === 'waymark_login');
    assert.deepEqual([session?.httpOnly, session?.sameSite], [true, 'Lax']);
    assert.equal(await page.evaluate('document.cookie'), '');

    // The provider knows the person: a lost session comes back without a question.
    await page.context().clearCookies({ name: 'waymark_login' });
    await page.goto(`${site.url}/staff/`);
    await page.getByRole('heading', { name: 'For staff' }).waitFor();

    await page.goto(`${site.url}/svc1/login/sign-out`);
    await page.getByRole('button', { name: /yes/i }).click();
    await page.getByRole('heading', { name: 'Front page' }).waitFor();
    assert.equal(page.url(), `${site.url}/`);
    await page.goto(`${site.url}/staff/`);
    await page.waitForURL(`${issuer}/interaction/**`);
  });

  test('ends a session that the provider ends', async (t) => {
    const { site, issuer } = await siteWithProvider(t);
    const { page } = await openTab(t);
    await page.goto(`${site.url}/staff/`);
    await signInAt(page, 'ann');
    await page.getByRole('heading', { name: 'For staff' }).waitFor();
    await page.goto(`${issuer}/session/end`);
    await page.getByRole('button', { name: /yes/i }).click();
    const rows = async () => (await site.call('svc1.login.list', {})).data.rows as unknown[];
    await eventually(rows, (found) => found.length === 0);
  });

  test('opens the console for a role, shows who is there, and closes it', async (t) => {
    const { site } = await siteWithProvider(t);
    const { page } = await openTab(t);
    await page.goto(`${site.url}/svc1/console/`);
    await page.getByRole('button', { name: 'Sign in with your account' }).click();
    await signInAt(page, 'admin');
    await heading(page, 'Overview');
    assert.equal(new URL(page.url()).hash, '#/', 'the grant is not in the address');
    await page.getByText('admin (login)').first().waitFor();
    await goTo(page, '#/operations', /./);
    const panel = page.locator('section', { hasText: 'Signed-in visitors' });
    await panel.getByRole('button', { name: 'End admin' }).click();
    await page.getByLabel('API key').waitFor();
  });

  test('opens no console for others, and for no grant of somebody else', async (t) => {
    const { site } = await siteWithProvider(t);
    const { page } = await openTab(t);
    await page.goto(`${site.url}/svc1/console/`);
    await page.getByRole('button', { name: 'Sign in with your account' }).click();
    await signInAt(page, 'ann');
    await page.getByText('You have signed in as ann, who may not use the console.').waitFor();

    const other = await openTab(t);
    await other.page.goto(`${site.url}/svc1/login/sign-in?console=${'A'.repeat(43)}`);
    await signInAt(other.page, 'admin');
    await other.page.getByText('This sign-in has ended. Sign in again.').waitFor();
  });

  for (const policy of ['unsafe-none', 'same-origin']) {
    test(`gives the grant to no page (${policy}) that opens the sign-in`, async (t) => {
      const more = `[headers.staff]\npath = /staff/*\nCross-Origin-Opener-Policy = ${policy}\n`;
      const { site } = await siteWithProvider(t, more);
      const { page } = await openTab(t);
      await page.goto(`${site.url}/staff/`);
      await signInAt(page, 'admin');
      await page.getByRole('heading', { name: 'For staff' }).waitFor();
      const opened = page.context().waitForEvent('page');
      await page.evaluate(
        `window.other = open('/svc1/login/sign-in?console=${'A'.repeat(43)}', 'other'); 0`,
      );
      const popup = await opened;
      await popup.getByText('This sign-in has ended. Sign in again.').waitFor();
      assert.equal(await page.evaluate('window.other.closed'), true, 'the window is severed');
    });
  }
});
