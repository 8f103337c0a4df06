import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { pathPattern } from '../../../src/core/values/linear-pattern.ts';
import { startSite } from '../../harness.ts';
import { ask } from '../../modules/files/disk-rig.ts';

const ini = `
[disk.site]
root = site
[redirect.moved]
path = /blog/moved/*
to = /elsewhere
[rewrite.blog]
match = ^/blog/(\\d+)/(.*)$
to = /posts/$1-$2
[rewrite.query]
match = "^/find/([^/]*)$"
to = /search?q=$1
[rewrite.dots]
match = ^/up/(.*)$
to = /a/.$1
[rewrite.second]
match = ^/blog/
to = /second
`;

suite('[rewrite.<name>]', () => {
  test('answers with the content of another path, after redirects', async (t) => {
    const site = await startSite(t, {
      ini,
      files: { 'site/posts/1-a b.txt': 'a file', 'site/blog/2/x': 'hidden' },
      rules: [
        { path: '/posts/2-x', kind: 'content', content: 'a page' },
        { path: '/second', kind: 'content', content: 'second' },
        {
          path: '/search',
          kind: 'resolve',
          enginedata: { target: '/result', forward_query: true },
        },
      ],
    });
    for (const [target, status, text] of [
      ['/blog/1/a%20b.txt', 200, 'a file'],
      ['/blog/2/x', 200, 'a page'],
      ['/blog/9/none', 404, undefined],
      ['/blog/x', 200, 'second'],
      ['/up/./x', 400, undefined],
      ['/up/.', 400, undefined],
      ['/up//etc', 404, undefined],
    ] as const) {
      const seen = await ask(site.url, target);
      assert.equal(seen.status, status, target);
      if (text !== undefined) assert.equal(seen.text, text, target);
    }
    const moved = await ask(site.url, '/blog/moved/x');
    assert.equal(moved.fields.location, '/elsewhere');
    const found = await ask(site.url, '/find/a%26b?c=d');
    assert.equal(found.fields.location, '/result?q=a%26b&c=d');
  });

  test('is explained', async (t) => {
    const site = await startSite(t, { ini, files: { 'site/posts/1-x': 'x' } });
    const { data } = await site.call('svc1.userinterface.explain', { path: '/blog/1/x' });
    assert.deepEqual(data.winner, { source: 'disk', mount: 'site', status: 200 });
    assert.deepEqual(data.notes, ['The rewrite blog leads inside the server to /posts/1-x.']);
    const [, { source, candidates }] = data.tried;
    assert.equal(source, 'rewrite');
    assert.deepEqual(
      candidates.map(({ rewrite, lost }: { rewrite: string; lost?: { code: string } }) => {
        return [rewrite, lost?.code];
      }),
      [
        ['blog', undefined],
        ['second', 'earlier_rewrite'],
      ],
    );
  });

  test('is refused with a pattern that would go back, or a group that is not there', async (t) => {
    for (const [lines, wanted] of [
      ['match = ^/(a)\\1$\nto = /b\n', /cannot be matched in linear time/],
      ['match = ^/(?=a)\nto = /b\n', /cannot be matched in linear time/],
      ['match = ^/(\nto = /b\n', /Unterminated group/],
      ['match = ^/a$\nto = /$1\n', /has `\$1` in `to`, but `match` has 0 groups/],
      ['match = ^/a$\n', /\[rewrite\.a\] needs `to`, such as `to = /],
      ['to = /a\n', /\[rewrite\.a\] needs `match`, such as/],
      ['match = ^/a$\nto = https://x.example/\n', /does not start with \//],
    ] as const) {
      await assert.rejects(startSite(t, { ini: `[rewrite.a]\n${lines}` }), wanted, lines);
    }
  });
});

test('a pattern for paths finds what the expression finds', () => {
  for (const [pattern, path, wanted] of [
    ['^/ab?$', '/a', true],
    ['^/ab{0}$', '/a', true],
    ['^/ab*c', '/ac', true],
    ['^/a|^/b', '/b', true],
    ['^/a(?:/b)?$', '/a', true],
    ['^/a\\.b$', '/a.b', true],
    ['/a$', '/x/a', true],
    ['^/blog/', '/blo', false],
    ['^/blog/x+', '/blog/', false],
  ] as const) {
    assert.equal(pathPattern(pattern).exec(path) !== null, wanted, pattern);
  }
});
