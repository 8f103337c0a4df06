import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../../harness.ts';
import { ask } from './disk-rig.ts';

test('the page of an error is in the language of the path, or of the visitor', async (t) => {
  const site = await startSite(t, {
    ini: '[disk.site]\nroot = site\nerrors = errors\n',
    files: {
      'site/a': '',
      'site/errors/404.html': 'none',
      'site/errors/404.de.html': 'de',
      'site/errors/404.pt-br.html': 'pt-br',
      'site/errors/4xx.fr.html': '4xx fr',
      'site/errors/405.html': '405',
    },
  });
  for (const [target, language, wanted, named] of [
    ['/x', undefined, 'none', undefined],
    ['/x', 'de-AT, en;q=0.5', 'de', 'de'],
    ['/x', 'en', 'none', undefined],
    ['/x', 'pt', 'none', undefined],
    ['/x', 'pt-BR', 'pt-br', 'pt-br'],
    ['/x', '*', 'none', undefined],
    ['/de/x', 'pt-BR', 'de', 'de'],
    ['/de-AT/x', 'en', 'de', 'de'],
    ['/denmark/x', 'en', 'none', undefined],
  ] as const) {
    const headers = {
      accept: 'text/html',
      ...(language !== undefined && { 'accept-language': language }),
    };
    const { status, text, fields } = await ask(site.url, target, { headers });
    const seen = [status, text, fields['content-language']];
    assert.deepEqual(seen, [404, wanted, named], `${target} ${language ?? ''}`);
    const varies = /accept-language/i.test(String(fields.vary));
    assert.equal(varies, !target.startsWith('/de/') && !target.startsWith('/de-'), target);
  }
  const headers = { accept: 'text/html', 'accept-language': 'de' };
  const post = await ask(site.url, '/a', { method: 'POST', headers });
  assert.deepEqual([post.status, post.text], [405, '405']);
  const refused = await ask(site.url, '/%00', { headers });
  assert.equal(refused.status, 400);
});

test('a large folder has its page without a language', async (t) => {
  const others = Array.from({ length: 1_001 }, (_, at) => [`site/${at}.txt`, ''] as const);
  const site = await startSite(t, {
    ini: '[disk.site]\nroot = site\nerrors = /\n',
    files: { 'site/404.html': 'none', 'site/404.de.html': 'de', ...Object.fromEntries(others) },
  });
  const { text } = await ask(site.url, '/de/x', { headers: { accept: 'text/html' } });
  assert.equal(text, 'none');
});

test('the pages of errors may be in the root of a mount', async (t) => {
  const site = await startSite(t, {
    ini: '[disk.site]\nroot = site\nsymlinks = deny\nerrors = /\n',
    files: { 'site/404.html': 'none', 'site/404.de.html': 'de' },
  });
  for (const [path, wanted] of [
    ['/x', 'none'],
    ['/de/x', 'de'],
  ] as const) {
    const { status, text } = await ask(site.url, path, { headers: { accept: 'text/html' } });
    assert.deepEqual([status, text], [404, wanted]);
  }
});
