import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { ineffectiveSettings } from '../../../src/core/config/warnings.ts';
import { readTestConfig, startSite } from '../../harness.ts';
import { httpSource } from '../outbound/sources.ts';
import { newIssuer } from '../../modules/visitors/issuer.ts';
import { ask } from '../../modules/files/disk-rig.ts';

const ini = `
[disk.site]
root = site
redirects = _redirects
headers_file = _headers
fallback = index.html
`;

const lines = `
/old /new
/exists /new
/forced /new 302!
/app/* /app/index.html 200
/page-alias /page 200
/gone/* /404.html 404
/retired /404.html 410!
/lost /nowhere 200
/lang /de/ 302! Language=de
/land /at/ 302! Country=at
/page /new
`;

const files = {
  'site/_redirects': lines,
  'site/_headers': `
# fields
/*
  X-All: yes
/assets/:name/*
  Cache-Control: max-age=31536000
  Link: </a.css>; rel=preload
  Link: </b.css>; rel=preload
/plain
  ! X-All
`,
  'site/index.html': 'index',
  'site/exists': 'exists',
  'site/forced': 'forced',
  'site/lang': 'lang',
  'site/land': 'land',
  'site/plain': 'plain',
  'site/404.html': 'not here',
  'site/app/index.html': 'app',
  'site/app/main.js': 'js',
  'site/assets/v1/x.js': 'x',
};

suite('redirects beside the files of a mount', () => {
  test('answer where no content does, and before it if they are forced', async (t) => {
    const page = { path: '/page', kind: 'content', content: 'stored page' };
    const site = await startSite(t, { ini, files, rules: [page] });
    for (const [target, status, location, text] of [
      ['/old?x=1', 301, '/new?x=1', ''],
      ['/exists', 200, undefined, 'exists'],
      ['/forced', 302, '/new', ''],
      ['/app/some/view', 200, undefined, 'app'],
      ['/app/main.js', 200, undefined, 'js'],
      ['/page-alias', 200, undefined, 'stored page'],
      ['/page', 200, undefined, 'stored page'],
      ['/gone/away', 404, undefined, 'not here'],
      ['/retired', 410, undefined, 'not here'],
      ['/anything', 200, undefined, 'index'],
      ['/lang', 200, undefined, 'lang'],
      ['/lost', 200, undefined, 'index'],
    ] as const) {
      const { fields, ...seen } = await ask(site.url, target);
      assert.deepEqual([seen.status, fields.location, seen.text], [status, location, text], target);
    }
    assert.equal((await ask(site.url, '/_headers')).text, 'index', 'the files are not served');
  });

  test('depend on the language, also when answers are prepared', async (t) => {
    const site = await startSite(t, { ini, files });
    for (const language of ['en', 'de-AT', 'en', 'de']) {
      const headers = { 'accept-language': language };
      const { status, fields } = await ask(site.url, '/lang', { headers });
      assert.equal(status, language.startsWith('de') ? 302 : 200, language);
      assert.match(String(fields.vary), /accept-language/i);
    }
  });

  test('depend on the country', async (t) => {
    const geo = '[geo]\ncountry_header = X-Country\n';
    const server = 'trust_proxy = 127.0.0.1/32\n';
    const site = await startSite(t, { ini: ini + geo, server, files });
    for (const [country, wanted] of [
      ['AT', 302],
      ['DE', 200],
      ['AT', 302],
    ] as const) {
      const { status } = await ask(site.url, '/land', { headers: { 'x-country': country } });
      assert.equal(status, wanted, country);
    }
  });

  test('are explained with their line', async (t) => {
    const site = await startSite(t, { ini, files });
    const explain = async (v: object) => (await site.call('svc1.userinterface.explain', v)).data;
    const forced = await explain({ path: '/forced' });
    assert.deepEqual(forced.winner, { source: 'redirect', mount: 'site', status: 302 });
    assert.deepEqual(forced.notes, ['Line 4 of its file redirects to /new.']);
    assert.match(forced.says, /is answered by the redirects of the mount site, with 302/);
    const { says } = await explain({ path: '/old' });
    assert.match(says, /is answered by the redirects of the mount site, with 301/);
    const inside = await explain({ path: '/app/view' });
    assert.deepEqual(inside.winner, { source: 'disk', mount: 'site', status: 200 });
    assert.match(inside.notes.join(), /Line 5 of its file leads inside the server to \/app\/index/);
    const land = await explain({ path: '/land' });
    assert.match(JSON.stringify(land.tried), /other_country/);
  });

  test('come with fields from a file of their own', async (t) => {
    const site = await startSite(t, { ini, files });
    const { fields } = await ask(site.url, '/assets/v1/x.js');
    assert.equal(fields['cache-control'], 'max-age=31536000');
    assert.equal(fields.link, '</a.css>; rel=preload, </b.css>; rel=preload');
    assert.equal(fields['x-all'], 'yes');
    assert.equal((await ask(site.url, '/plain')).fields['x-all'], undefined);
  });

  test('are read again when they change, and warn of lines that cannot be used', async (t) => {
    const site = await startSite(t, { ini, files });
    const path = join(site.folder, 'site/_redirects');
    await writeFile(path, '/old /newer\n/bad\n/a /b\n/b /a\n');
    await writeFile(
      join(site.folder, 'site/_headers'),
      'X-A: b\n/x\n  Basic-Auth: u:p\n  Date: x\n',
    );
    const config = await readTestConfig(site.iniFile);
    site.waymark.reload({ ok: true, config });
    assert.equal((await ask(site.url, '/old')).fields.location, '/newer');
    const warnings = ineffectiveSettings(config).map((one) => one.replace(site.folder, ''));
    assert.deepEqual(warnings, [
      '/site/_redirects, line 2 has no target: write a path or an http or https URL after the path. It is not used.',
      '/site/_redirects, line 3 leads to itself, through line 4, unless a file or page answers on the way.',
      '/site/_headers, line 1 has a field before the first path. It is not used.',
      '/site/_headers, line 3 has Basic-Auth: Waymark asks for no password here. It is not used.',
      '/site/_headers, line 4 has the field `Date`: the server sets that field itself. It is not used.',
    ]);
    await site.untilLogged(/_redirects, line 2 has no target/);
    await writeFile(path, '/a /b\n'.repeat(2_000_000));
    const long = ineffectiveSettings(await readTestConfig(site.iniFile));
    assert.match(long.join(), /_redirects has more than 100000 redirects \(redirectLinesMax\)/);
  });
});

suite('[redirect.<name>] with a file', () => {
  test('redirects by its lines', async (t) => {
    const site = await startSite(t, {
      ini: '[redirect.moved]\nfile = moved.txt\n[redirect.other]\npath = /b\nto = /c\n',
      files: { 'moved.txt': '/a/:id /x/:id 308\n/b /y\n' },
    });
    const seen = await Promise.all(['/a/7', '/b'].map((path) => ask(site.url, path)));
    assert.deepEqual(
      seen.map(({ status, fields }) => [status, fields.location]),
      [
        [308, '/x/7'],
        [301, '/y'],
      ],
    );
  });

  test('is refused with the number of a wrong line, or of a circle', async (t) => {
    for (const [text, wanted] of [
      ['/a /b\n/c\n', /server\.ini:\d+: `file` = `moved\.txt` line 2 has no target/],
      ['/a /b\n/b /a\n', /`file` = `moved\.txt` line 1 leads to itself, through line 2/],
      ['/a /b\n'.repeat(100_001), /has more than 100000 redirects \(redirectLinesMax\)/],
    ] as const) {
      const files = { 'moved.txt': text };
      await assert.rejects(
        startSite(t, { ini: '[redirect.a]\nfile = moved.txt\n', files }),
        wanted,
      );
    }
    await assert.rejects(
      startSite(t, { ini: '[redirect.a]\nfile = none.txt\n' }),
      /does not exist/,
    );
    await assert.rejects(
      startSite(t, { ini: '[redirect.a]\nfile = a\nto = /b\n' }),
      /has `to` and `file`: it takes one of them/,
    );
  });
});

suite('[redirect.<name>] with trailing_slash', () => {
  const pages = [
    { path: '/about', kind: 'content', content: 'about' },
    { path: '/team/', kind: 'content', content: 'team' },
  ];

  test('adds or removes the slash of pages that exist', async (t) => {
    const start = (word: string) =>
      startSite(t, {
        ini: `[redirect.slash]\ntrailing_slash = ${word}\n[disk.site]\nroot = site\n`,
        files: { 'site/index.html': '', 'site/docs/index.html': 'docs', 'site/docs/a.css': 'css' },
        rules: pages,
      });
    const sites = { off: await start('off'), on: await start('on') };
    for (const [word, target, location] of [
      ['off', '/about/?x', '/about?x'],
      ['off', '/about', undefined],
      ['off', '/team/', undefined],
      ['off', '/docs/', undefined],
      ['off', '/', undefined],
      ['on', '/team?x', '/team/?x'],
      ['on', '/about', undefined],
      ['on', '/docs', '/docs/'],
      ['on', '/docs/a.css', undefined],
    ] as const) {
      const { status, fields } = await ask(sites[word].url, target);
      assert.equal(fields.location, location, `${word} ${target}`);
      assert.equal(status, location === undefined ? 200 : 301, `${word} ${target}`);
    }
  });

  test('holds for what leads on, and never leads back', async (t) => {
    const { origin } = await httpSource(t, (request, response) => response.end(request.url));
    const leading = (path: string, target: string, more = {}) => ({
      ...{ path, kind: 'resolve' },
      enginedata: { target, ...more },
    });
    const start = (word: string) =>
      startSite(t, {
        ini: `
[redirect.slash]
trailing_slash = ${word}
[redirect.moved]
path = /moved
to = /about
[redirect.back]
path = /back
to = /back/
[disk.site]
root = site
redirects = _redirects
[fetch]
allow_private = 127.0.0.0/8
`,
        files: { 'site/_redirects': '/line /about 302\n/forced /about 302!\n/turn /turn/\n' },
        rules: [
          ...pages,
          leading('/short', 'https://other.example/x'),
          leading('/key', 'key:other'),
          leading('other', '/about'),
          leading('/by-user', '/about', { when: [{ if: { user: 'ann' }, target: '/team/' }] }),
          leading('/circle', '/circle/'),
          leading('/variable', 'http://{host}{path}/?x'),
          leading('/over', 'key:circle'),
          leading('circle', '/over/'),
          leading('/sometimes', '/about', {
            when: [{ if: { country: 'CH' }, target: '/sometimes/' }],
          }),
          leading('/was/*', 'https://other.example/{splat}'),
          leading('/was/own', '/about'),
          { path: '/fetched', kind: 'content.fetch', enginedata: { source: origin } },
        ],
      });
    const sites = { off: await start('off'), on: await start('on') };
    for (const [word, target, location] of [
      ['off', '/short/?x', '/short?x'],
      ['off', '/key/', '/key'],
      ['off', '/by-user/', '/by-user'],
      ['off', '/moved/', '/moved'],
      ['off', '/line/', '/line'],
      ['off', '/forced/', '/forced'],
      ['off', '/fetched/', '/fetched'],
      ['off', '/was/x/', '/was/x'],
      ['off', '/short', 'https://other.example/x'],
      ['off', '/circle/', undefined],
      ['off', '/variable/', undefined],
      ['off', '/over/', undefined],
      ['off', '/sometimes/', undefined],
      ['off', '/back/', undefined],
      ['off', '/turn/', undefined],
      ['on', '/was/x', '/was/x/'],
      ['on', '/was/own', '/about'],
      ['on', '/short', 'https://other.example/x'],
    ] as const) {
      const { status, fields } = await ask(sites[word].url, target);
      assert.equal(fields.location, location, `${word} ${target}`);
      if (location === undefined) assert.equal(status, 404, `${word} ${target}`);
    }
  });
});

test('another spelling of a path leads to a rule that asks who the visitor is', async (t) => {
  const issuer = await newIssuer('one');
  const enginedata = { target: '/a', when: [{ if: { user: 'ann' }, target: '/b' }] };
  const site = await startSite(t, {
    ini: '[auth]\njwt_jwks = keys.json\n[redirect.slash]\ntrailing_slash = off\n',
    files: { 'keys.json': JSON.stringify({ keys: [issuer.jwk] }) },
    rules: [{ path: '/short', kind: 'resolve', enginedata }],
  });
  const token = await issuer.sign({ claims: { sub: 'ann' } });
  for (const [target, status, location] of [
    ['//short', 308, '/short'],
    ['/short/', 301, '/short'],
    ['/short', 302, '/b'],
  ] as const) {
    const seen = await ask(site.url, target, { headers: { authorization: `Bearer ${token}` } });
    assert.deepEqual([seen.status, seen.fields.location], [status, location], target);
  }
});
