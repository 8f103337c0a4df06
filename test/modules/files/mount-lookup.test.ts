import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../harness.ts';
import { ask } from './disk-rig.ts';

suite('clean_urls', () => {
  const ini = `
[disk.site]
root = site
clean_urls = yes
[disk.docs]
path = /docs/
root = docs
clean_urls = yes
listing = yes
`;
  const files = {
    'site/index.html': 'home',
    'site/about.html': 'about',
    'site/team/index.html': 'team',
    'site/both.html': 'both, the page',
    'site/both/index.html': 'both, the folder',
    'site/exact': 'exact',
    'site/exact.html': 'exact, the page',
    'site/a b/é.html': 'odd',
    'site/bare/page.txt': 'text',
    'docs/index.html': 'docs',
    'docs/files/x.txt': 'x',
  };

  /** Path, then the content or the target of the redirect. */
  const cases = [
    ['/', 'home'],
    ['/about', 'about'],
    ['/team', 'team'],
    ['/both', 'both, the page'],
    ['/both/', 'both, the folder'],
    ['/both/index.html', 'both, the folder'],
    ['/exact', 'exact'],
    ['/exact.html', 'exact, the page'],
    ['/a%20b/%C3%A9', 'odd'],
    ['/docs/', 'docs'],
    ['/index.html', '→ /'],
    ['/about.html', '→ /about'],
    ['/about.html?a=1', '→ /about?a=1'],
    ['/about/', '→ /about'],
    ['/team/', '→ /team'],
    ['/team/index.html', '→ /team'],
    ['/both.html', '→ /both'],
    ['/a%20b/%C3%A9.html', '→ /a%20b/%C3%A9'],
    ['/docs', '→ /docs/'],
    ['/docs/index.html', '→ /docs/'],
    ['/docs/files', '→ /docs/files/'],
    ['/bare', '404'],
    ['/none.html', '404'],
    ['/about/x', '404'],
  ] as const;

  test('gives each page one address, to which the others redirect', async (t) => {
    const site = await startSite(t, { ini, files });
    for (const [target, wanted] of cases) {
      const { status, text, fields } = await ask(site.url, target);
      const seen = status === 301 ? `→ ${fields.location}` : status === 404 ? '404' : text;
      assert.equal(seen, wanted, target);
      const [path, query] = target.split('?');
      const { data } = await site.call('svc1.userinterface.explain', { path, query });
      assert.equal(data.status, status, target);
    }
  });

  test('never redirects twice, nor to other content', async (t) => {
    const site = await startSite(t, { ini, files });
    for (const [target] of cases) {
      const first = await ask(site.url, target);
      if (first.status !== 301) continue;
      assert.notEqual((await ask(site.url, first.fields.location ?? '')).status, 301, target);
    }
  });
});

test('try names files for paths without one, in order, and hides what is hidden', async (t) => {
  const ini = `
[disk.site]
root = site
try = {path}.htm, {path}/main.html, pages/{path}.txt, /app.html
[disk.docs]
path = /docs/
root = docs
try = {path}.htm, ../site/app.html2
`;
  const files = {
    'site/one.htm': 'one',
    'site/two/main.html': 'two',
    'site/pages/three.txt': 'three',
    'site/app.html': 'app',
    'site/.hidden.htm': 'hidden',
    'docs/one.htm': 'docs',
  };
  await assert.rejects(startSite(t, { ini, files }), /write the path of a file below `root`/);
  const site = await startSite(t, { ini: ini.replace(', ../site/app.html2', ''), files });
  for (const [target, wanted] of [
    ['/one', 'one'],
    ['/one.htm', 'one'],
    ['/two', 'two'],
    ['/two/', 'two'],
    ['/three', 'three'],
    ['/', 'app'],
    ['/any/thing', 'app'],
    ['/docs/one', 'docs'],
  ] as const) {
    const { status, text } = await ask(site.url, target);
    assert.deepEqual([status, text], [200, wanted], target);
  }
  assert.equal((await ask(site.url, '/.hidden')).status, 404);
});

test('types gives extensions other media types', async (t) => {
  const ini = '[disk.site]\nroot = site\ntypes = .geojson=application/geo+json, txt=text/x-own\n';
  const files = { 'site/a.geojson': '{}', 'site/b.TXT': 'b', 'site/c.html': 'c' };
  const site = await startSite(t, { ini, files });
  const typeOf = async (path: string) => (await ask(site.url, path)).fields['content-type'];
  assert.equal(await typeOf('/a.geojson'), 'application/geo+json');
  assert.equal(await typeOf('/b.TXT'), 'text/x-own; charset=utf-8');
  assert.equal(await typeOf('/c.html'), 'text/html; charset=utf-8');
});
