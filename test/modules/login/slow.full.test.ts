import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../harness.ts';
import { loginIni, startProvider } from './provider.ts';
import { TestVisitor } from './visitor.ts';

suite('[login] and a provider that never answers', () => {
  for (const path of ['/.well-known/openid-configuration', '/token', '/jwks', '/userinfo']) {
    test(`gives up ${path} after five seconds, and serves the rest meanwhile`, async (t) => {
      const provider = await startProvider(t);
      const files = { 'site/open.txt': 'open' };
      const ini = `[disk.site]\nroot = site\n${loginIni(provider)}`;
      const site = await startSite(t, { ini, files });
      provider.claims = { sub: '1' };
      provider.behave = { holds: (asked) => asked === path };
      const visitor = new TestVisitor();
      const startedMs = performance.now();
      const waits = visitor.follow(`${site.url}/svc1/login/sign-in`);
      assert.equal((await new TestVisitor().open(`${site.url}/open.txt`)).text, 'open');
      const { status } = await waits;
      assert.equal(status, 503);
      assert.ok(performance.now() - startedMs < 12_000);
      assert.ok(!visitor.cookies.has('waymark_login'));
      assert.equal((site.logged().match(/\[login\] /g) ?? []).length, 1);
    });
  }
});
