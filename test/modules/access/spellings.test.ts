import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { ask } from '../files/disk-rig.ts';
import { scryptLine } from './passwords.ts';

const files = { 'users.txt': scryptLine('ann', 'secret') };

suite('the paths of [access.<name>]', () => {
  test('asks under spellings with bytes that are not UTF-8, and with dots that are encoded twice', async (t) => {
    const requests: (string | undefined)[] = [];
    const app = await httpSource(t, (request, response) => {
      requests.push(request.url);
      response.end('x');
    });
    const ini = `[proxy.all]\nsource = ${app.origin}
[access.internal]\npath = /internal/*\npassword_file = users.txt\n`;
    const site = await startSite(t, { ini, files });
    for (const path of [
      ...['/internal%2F%FF', '/internal%2F%E9t%E9', '/internal%252F%25FF'],
      ...['/open/%252e%252e/internal/a', '/open%252F%252e%252e%252Finternal', '/%252e/internal/a'],
      ...[
        '/open/%252e%252e;x/internal/a',
        '/open/..%255Cinternal/a',
        '/a/b/%252e./%2e%252e/internal',
      ],
    ]) {
      const { status } = await ask(site.url, path);
      assert.ok(status === 401 || status === 400, `${path} ${status}`);
    }
    assert.deepEqual(requests, []);
    assert.equal((await ask(site.url, '/open/caf%E9/%252e')).status, 200);
  });

  test('asks for the index file of a protected folder by each of its names', async (t) => {
    const ini =
      '[disk.site]\nroot = site\nclean_urls = on\n[disk.plain]\norigin = http://other\nroot = site\n' +
      '[access.one]\npath = /dir/index.html\npassword_file = users.txt\n';
    const site = await startSite(t, {
      ini,
      files: { ...files, 'site/dir/index.html': 'D', 'site/dir/b.html': 'B' },
    });
    for (const path of [
      '/dir',
      '/dir/',
      '/dir/index',
      '/dir/index.html',
      '/DIR/index',
      '/dir//index',
    ]) {
      const { text, status } = await ask(site.url, path);
      assert.ok(status !== 200 && text !== 'D', path);
      const other = await ask(site.url, path, { headers: { host: 'other' } });
      assert.ok(other.status !== 200 && other.text !== 'D', `${path} of a plain mount`);
    }
    assert.equal((await ask(site.url, '/dir/b')).text, 'B');
  });

  test('asks for what a compressor or an editor has written beside a protected file', async (t) => {
    const ini =
      '[disk.site]\nroot = site\nclean_urls = on\nlisting = yes\n[disk.plain]\norigin = http://other\n' +
      'root = site\nprecompressed = no\n[access.one]\npath = /report.html, *.key\n' +
      'except = /open.key\npassword_file = users.txt\n';
    const ends = ['', '.br', '.gz', '.zst', '.bak', '.old', '.orig', '~', '.bak.gz', '~.br'];
    const beside = ends.flatMap((end) => [`report.html${end}`, `a.key${end}`]);
    const own = ['index.html.br', 'report.htm', 'report.html.txt', 'data.tar.gz', 'open.key'];
    const names = [...beside, ...own];
    const site = await startSite(t, {
      ini,
      files: { ...files, ...Object.fromEntries(names.map((name) => [`site/${name}`, name])) },
    });
    const spellings = (name: string) => [
      ...[`/${name}`, `/${name.toUpperCase()}`, `/${name};v=1`, `/%72${name.slice(1)}`],
      ...[`/${name}/`, `//${name}`, `/${name}.`, `/${name}%20`, `/x/../${name}`],
    ];
    for (const host of ['localhost', 'other']) {
      for (const path of beside.flatMap(spellings)) {
        const { status } = await ask(site.url, path, { headers: { host } });
        const isAsked = status === 401 || status === 400 || status === 308;
        assert.ok(isAsked || (status === 404 && path.startsWith('/%72a')), `${path} ${status}`);
      }
      for (const name of own) {
        assert.equal((await ask(site.url, `/${name}`, { headers: { host } })).status, 200, name);
      }
    }
    const many = `/${'.gz'.repeat(2_000)}${'. '.repeat(500).replaceAll(' ', '%20')}`;
    assert.equal((await ask(site.url, many)).status, 404);
  });

  test('a path that ends with a slash protects all below it, and no sibling', async (t) => {
    const ini =
      '[disk.site]\nroot = site\n' +
      '[access.one]\npath = /dir/\nexcept = /dir/open.txt, /dir/sub/\npassword_file = users.txt\n';
    const site = await startSite(t, {
      ini,
      files: {
        ...files,
        ...{ 'site/dir/index.html': 'D', 'site/dir/b.html': 'B', 'site/dir/open.txt': 'O' },
        ...{ 'site/dir/sub/c.html': 'C', 'site/directory.html': 'S' },
      },
    });
    for (const path of ['/dir', '/dir/', '/dir/b.html', '/DIR/b.html', '/dir/sub/c.html']) {
      assert.equal((await ask(site.url, path)).status, 401, path);
    }
    for (const path of ['/dir/open.txt', '/directory.html']) {
      assert.equal((await ask(site.url, path)).status, 200, path);
    }
  });
});
