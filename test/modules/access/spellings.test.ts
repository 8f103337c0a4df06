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

  /** Sections with a password, and names of them in spellings that an application may know. */
  const spelled: readonly (readonly [what: string, path: string, asked: readonly string[]])[] = [
    [
      'streams of NTFS',
      '/internal/*, /report.html',
      [
        ...['/internal::$INDEX_ALLOCATION/a', '/internal:$I30:$INDEX_ALLOCATION/a'],
        ...['/internal::%24index_allocation/a', '/report.html::$DATA', '/report.html:a:$DATA'],
        ...['/report.html%3A%3A$DATA', '/report.html::$DATA.', '/x/../internal::$DATA'],
      ],
    ],
    [
      'short names of Windows',
      '/internal-docs/*, /a/confidential.html, /my%20files/*, *.sqlite',
      [
        ...['/INTERN~1/a', '/intern~12/a', '/IN3F2A~1/a', '/INTERN~1', '/intern~1./a/b'],
        ...['/a/CONFID~1.HTM', '/a/confid~1.htm/', '/MYFILE~1/a', '/x/DATABA~1.SQL'],
        ...['/INTERN%7E1/a', '/internal-docs::$DATA/x', '/A/CONFID~1.HTM::$DATA'],
      ],
    ],
    [
      'dots and spaces at the ends of names',
      '/internal/*, /a/report.html',
      [
        ...['/internal./a', '/internal%20/a', '/internal.%20./a', '/a./report.html'],
        ...['/a/report.html.', '/a/report.html%20', '/open/..%20/internal/a', '/internal%C2%A0/a'],
      ],
    ],
    [
      'what nobody sees',
      '/internal/*, /in-tray/*',
      [
        ...['/in%C2%ADternal/a', '/in%C2%ADtray/a', '/in%E2%80%8Bternal/a', '/%EF%BB%BFinternal/a'],
        ...['/internal%E2%80%8D/a', '/in%E2%81%A0ternal/a', '/internal%E2%80%8E/a'],
        ...['/internal%EF%B8%8F/a', '/in%2509ternal/a', '/in%F3%A0%80%A0ternal/a'],
      ],
    ],
    [
      'compatible forms and other cases of letters',
      '/internal/*, /straße/*, /kiosk/*, /οδος',
      [
        ...[
          '/%EF%BD%89nternal/a',
          '/%EF%BC%A9NTERNAL/a',
          '/internal%EF%BC%8Fa',
          '/%C4%B1nternal/a',
        ],
        ...[
          '/%C4%B0nternal/a',
          '/%E2%84%AAiosk/a',
          '/kio%C5%BFk/a',
          '/STRASSE/a',
          '/stra%C3%9Fe/a',
        ],
        ...['/stra%E1%BA%9Ee/a', '/i%CC%81nternal/a', '/int%C3%A9rnal/a', '/internal%E2%88%95a'],
        ...['/%CE%9F%CE%94%CE%9F%CE%A3', '/%F0%9D%93%B2nternal/a'],
      ],
    ],
    [
      'dashes',
      '/in-tray/*',
      ['/in%E2%80%90tray/a', '/in%E2%80%93tray/a', '/in%EF%BC%8Dtray/a', '/in%E2%88%92tray/a'],
    ],
    [
      'what some take for a query, a fragment, the end of a text or path info',
      '/admin.php, /report.html, /a/*.cgi',
      [
        ...['/admin.php%3Fx', '/admin.php%23x', '/admin.php%253Fx', '/admin.php%2500.png'],
        ...[
          '/admin.php/x',
          '/ADMIN.PHP/x/y',
          '/report.html/..%3B/x',
          '/a/b.cgi/x',
          '/admin.php;a/x',
        ],
      ],
    ],
    ['numbered copies of editors', '/report.html', ['/report.html.~1~', '/report.html.~12~']],
  ];
  for (const [what, path, asked] of spelled) {
    test(`asks under ${what}`, async (t) => {
      const requests: (string | undefined)[] = [];
      const app = await httpSource(t, (request, response) => {
        requests.push(request.url);
        response.end('x');
      });
      const ini = `[proxy.all]\nsource = ${app.origin}
[access.internal]\npath = ${path}\npassword_file = users.txt\n`;
      const site = await startSite(t, { ini, files });
      for (const one of asked) {
        const { status } = await ask(site.url, one);
        assert.ok(status === 401 || status === 400, `${one} ${status}`);
      }
      assert.deepEqual(requests, []);
    });
  }

  test('leaves other names open, also such as look like short ones', async (t) => {
    const app = await httpSource(t, (_, response) => void response.end('x'));
    const ini = `[proxy.all]\nsource = ${app.origin}
[access.internal]\npath = /internal-docs/*, /a/confidential.html, /wiki/Talk, /b.php\npassword_file = users.txt\n`;
    const site = await startSite(t, { ini, files });
    for (const path of [
      ...[
        '/photo~1/a',
        '/~1/internal-docs',
        '/a/confid~1.pdf',
        '/a/CONFID~1.PDF',
        '/chunk~main~3f2a.js',
      ],
      ...[
        '/intern/a',
        '/internal/a',
        '/wiki/Talk:Home',
        '/wiki/Talk/Home',
        '/b.phpx/a',
        '/internal~docs/a',
      ],
    ]) {
      assert.equal((await ask(site.url, path)).status, 200, path);
    }
  });

  test('opens an exception in its one spelling only', async (t) => {
    const app = await httpSource(t, (_, response) => void response.end('x'));
    const ini = `[proxy.all]\nsource = ${app.origin}
[access.internal]\npath = /internal/*\nexcept = /internal/open/*, /internal/für/*
password_file = users.txt\n`;
    const site = await startSite(t, { ini, files });
    for (const [path, expected] of [
      ['/internal/open/a', 200],
      ['/internal/open/vendors~main~3f2a.js', 200],
      ['/internal/f%C3%BCr/a', 200],
      ['/internal/open/%EF%BC%8E%EF%BC%8E/secret', 401],
      ['/internal/open/%E2%80%A5/secret', 401],
      ['/internal/open/.%E2%80%8B./secret', 401],
      ['/internal/open/..%20/secret', 401],
      ['/internal/open/a%3Fb', 401],
      ['/internal/open/a%E2%88%95..', 401],
      ['/internal/open/SECRET~1.HTM', 401],
      ['/internal/open/a::$DATA', 401],
    ] as const) {
      assert.equal((await ask(site.url, path)).status, expected, path);
    }
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
