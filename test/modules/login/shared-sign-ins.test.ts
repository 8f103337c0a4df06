import assert from 'node:assert/strict';
import { test } from 'node:test';
import { providerRequestsMax } from '../../../src/modules/login/provider.ts';
import { startSite } from '../../harness.ts';
import { loginIni, startProvider } from './provider.ts';
import { TestVisitor } from './visitor.ts';

test('one address with many invented codes keeps nobody else from signing in', async (t) => {
  const provider = await startProvider(t);
  const site = await startSite(t, {
    server: 'trust_proxy = 127.0.0.1',
    ini: loginIni(provider),
  });
  const stranger = new TestVisitor();
  const callback = new URL(await stranger.upToCallback(`${site.url}/svc1/login/sign-in`));
  callback.searchParams.set('code', 'invented');
  const share = Promise.withResolvers<undefined>();
  let attacked = 0;
  provider.behave = {
    holds(path) {
      if (path === '/token') attacked += 1;
      if (attacked === providerRequestsMax / 2) share.resolve(undefined);
      return path === '/token';
    },
  };
  // One cookie again and again.
  const from = { 'x-forwarded-for': '198.51.100.1' };
  const asked = Array.from({ length: 2 * providerRequestsMax }, async () => {
    await stranger.open(callback.href, from).catch(() => undefined);
  });
  await share.promise;
  provider.behave = {};
  const visitor = new TestVisitor();
  const { status } = await visitor.follow(`${site.url}/svc1/login/sign-in`);
  assert.equal(status, 404, 'the front page, which this site does not have');
  assert.ok([...visitor.cookies.keys()].some((name) => name.includes('waymark_login')));
  assert.equal(attacked, providerRequestsMax / 2, 'the rest of the stranger waits');
  await site.waymark.stop(0);
  await Promise.all(asked);
});
