import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../harness.ts';
import { ask } from '../../modules/files/disk-rig.ts';

const ini = `
[disk.site]
root = site
[redirect.www]
origin = http://www.example.com
to = https://example.com/{splat}
status = 308
[redirect.blog]
path = /blog/*
to = /posts/{splat}
[redirect.search]
path = /search
to = "https://find.example/?from={host}#top"
[redirect.moved]
path = /m/*
to = "/moved?to={splat}&from={path}&own=1#{splat}"
[redirect.short]
path = /s/*
to = /{splat}
query = drop
[redirect.item]
path = /item
to = /items/{query.id}?from={query.from}
query = drop
[redirect.pattern]
match = "^/p/([0-9]+)/(.*)$"
to = /q/$2?n=$1&o=$2
query = drop
[redirect.all]
path = /archive/*
to = https://archive.example{path}?{query}
`;

suite('[redirect.<name>]', () => {
  test('redirects before files and pages, with the path as it was sent', async (t) => {
    const site = await startSite(t, {
      ini,
      files: { 'site/blog/a.html': 'a' },
      rules: [{ path: '/search', kind: 'content', content: 'page' }],
    });
    for (const [host, target, status, location] of [
      ['www.example.com', '/a%2Fb/c?x=1&y', 308, 'https://example.com/a%2Fb/c?x=1&y'],
      ['www.example.com', '//evil.example/', 308, 'https://example.com//evil.example/'],
      ['localhost', '/blog/a.html?x', 301, '/posts/a.html?x'],
      ['localhost', '/blog/', 301, '/posts/'],
      ['localhost', '/search?q=1', 301, 'https://find.example/?from=localhost&q=1#top'],
      [
        'localhost',
        '/m/a&admin=1+%26/%C3%A9?q=1&r',
        301,
        '/moved?to=a%26admin%3D1%2B%26%2F%C3%A9&from=%2Fm%2Fa%26admin%3D1%2B%26%2F%C3%A9&own=1&q=1&r' +
          '#a%26admin%3D1%2B%26%2F%C3%A9',
      ],
      ['localhost', '/s/x?y', 301, '/x'],
      ['localhost', '/s//evil.example/x', 301, '/evil.example/x'],
      ['localhost', '/archive/a%7Cb?x', 301, 'https://archive.example/archive/a%7Cb?x'],
      ['localhost', '/item?id=a/b%2Fc%3Fd&x', 301, '/items/a/b%2Fc%3Fd?from='],
      ['localhost', '/item?from=1&id=?', 301, '/items/%3F?from=1'],
      ['localhost', '/p/12/a%20{path}&b', 301, '/q/a%20%7Bpath%7D&b?n=12&o=a%20%7Bpath%7D%26b'],
      ['localhost', '/p/x/a', 404, undefined],
      ['localhost', '/blog', 404, undefined],
    ] as const) {
      const { fields, ...seen } = await ask(site.url, target, { headers: { host } });
      assert.deepEqual([seen.status, fields.location], [status, location], target);
    }
    const post = await ask(site.url, '/blog/x', { method: 'POST' });
    assert.equal(post.status, 301);
  });

  test('leaves the requests alone that it leads to', async (t) => {
    const site = await startSite(t, {
      ini: '[redirect.apex]\nto = http://example.com/{splat}\n',
      rules: [{ path: '/page', kind: 'content', content: 'page' }],
    });
    const away = await ask(site.url, '/page?x', { headers: { host: 'www.example.com' } });
    assert.deepEqual([away.status, away.fields.location], [301, 'http://example.com/page?x']);
    const here = await ask(site.url, '/page?x', { headers: { host: 'example.com' } });
    assert.deepEqual([here.status, here.text], [200, 'page']);
  });

  test('is explained', async (t) => {
    const site = await startSite(t, { ini, files: { 'site/blog/a.html': 'a' } });
    const { data } = await site.call('svc1.userinterface.explain', { path: '/blog/a.html' });
    assert.match(data.says, /is answered by the redirect blog, with 301/);
    assert.deepEqual(data.winner, { source: 'redirect', redirect: 'blog', status: 301 });
    assert.deepEqual(data.notes, ['It redirects to /posts/a.html.']);
    const { fields } = await ask(site.url, '/blog/a', { headers: { apikey: site.adminKey } });
    assert.match(String(fields['server-timing']), /redirect:blog/);
  });

  test('is refused without a target, with an unknown variable, or in a circle', async (t) => {
    for (const [lines, wanted] of [
      ['[redirect.a]\n', /\[redirect\.a\] needs `to`/],
      ['[redirect.a]\nto = /{spalt}\n', /\{spalt\} is unknown: there are \{splat\}/],
      ['[redirect.a]\nto = https://{query.to}/\n', /a visitor could choose the host/],
      ['[redirect.a]\nto = https://example.com{splat}\n', /a visitor could choose the host/],
      ['[redirect.a]\nmatch = ^/a(.*)$\nto = https://$1\n', /a visitor could choose the host/],
      ['[redirect.a]\nmatch = ^/a$\nto = /$1\n', /has `\$1` in `to`, but `match` has 0 groups/],
      ['[redirect.a]\nmatch = ^/a\npath = /b\nto = /c\n', /takes the place of `path`/],
      ['[redirect.a]\nmatch = ^/a(b)\\1\nto = /c\n', /cannot be matched in linear time/],
      [
        '[redirect.a]\nmatch = ^/a/(.*)$\nto = /a/b/$1\n',
        /\[redirect\.a\] leads to itself: change/,
      ],
      ['[redirect.a]\nto = //evil.example\n', /write a path that starts with \//],
      ['[redirect.a]\nto = javascript:alert(1)\n', /write a path that starts with \//],
      ['[redirect.a]\npath = /a*b\nto = /c\n', /a \* may only be the end of the path/],
      ['[redirect.a]\npath = /a\nto = /a\n', /\[redirect\.a\] leads to its own path/],
      ['[redirect.a]\npath = /a\nto = {path}\n', /write a path that starts|its own path/],
      ['[redirect.a]\npath = /a/*\nto = /a/b/{splat}\n', /\[redirect\.a\] leads to itself: change/],
      [
        '[redirect.a]\npath = /a/*\nto = /b/{splat}\n[redirect.b]\npath = /b/*\nto = /a/{splat}\n',
        /\[redirect\.a\] leads to itself, through \[redirect\.b\]/,
      ],
      [
        '[redirect.a]\norigin = http://a.example\nto = http://b.example/{splat}\n' +
          '[redirect.b]\norigin = http://b.example\nto = http://a.example/{splat}\n',
        /\[redirect\.a\] leads to itself, through \[redirect\.b\]/,
      ],
    ] as const) {
      await assert.rejects(startSite(t, { ini: lines }), wanted, lines);
    }
  });
});
