import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';
import { ask, eventually, type Seen } from './disk-rig.ts';

const ini = '[disk.site]\nroot = site\nlisting = yes\ncache_control = no-cache\n';

interface Listing {
  readonly path: string;
  readonly entries: readonly {
    readonly name: string;
    readonly type: string;
    readonly size: number | null;
    readonly modified: string;
  }[];
  readonly truncated: boolean;
}

async function listingOf(site: TestSite, path = '/'): Promise<Listing> {
  const { text, fields } = await ask(site.url, path, { headers: { accept: 'application/json' } });
  assert.equal(fields['content-type'], 'application/json');
  return JSON.parse(text) as Listing;
}

/** The links of a page as a browser resolves them: text and absolute URL, in order. */
function linksOf({ text }: Seen, url: string): readonly { name: string; url: URL }[] {
  const links = text.matchAll(/<a href="([^"]*)">(.*?)<\/a>/gs);
  return [...links].map(([, href = '', inner = '']) => ({
    name: unescaped(inner.replace(/<[^>]*>/g, '')),
    url: new URL(unescaped(href), url),
  }));
}

/** The page without the script of listings, its last element. */
function withoutScript(page: string): string {
  return page.replace(/<script>[^<]*<\/script>\n<\/body>/, '');
}

function unescaped(html: string): string {
  const characters: Readonly<Record<string, string>> = {
    ...{ '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' },
  };
  return html.replace(/&(?:lt|gt|quot|#39|amp);/g, (entity) => characters[entity] ?? entity);
}

suite('the listing of a folder', () => {
  const files = {
    'site/b.txt': 'x'.repeat(1536),
    'site/a10.txt': '',
    'site/a9.txt': 'x',
    'site/.hidden': 'x',
    'site/.well-known/x': 'x',
    'site/zoo/animal.txt': 'x',
    'site/Archive/old.zip': 'x',
    'site/empty/.hidden': 'x',
    'site/indexed/index.html': 'the index',
  };

  test('shows folders first, then files, with numbers in numerical order', async (t) => {
    const site = await startSite(t, { ini, files });
    const modified = '2025-01-02T03:04:05.000Z';
    for (const name of ['b.txt', 'a10.txt', 'a9.txt', 'Archive', 'empty', 'indexed', 'zoo']) {
      await utimes(join(site.folder, 'site', name), new Date(modified), new Date(modified));
    }
    const folder = (name: string) => ({ name, type: 'directory', size: null, modified });
    const file = (name: string, size: number) => ({ name, type: 'file', size, modified });
    assert.deepEqual(await listingOf(site), {
      path: '/',
      entries: [
        ...['Archive', 'empty', 'indexed', 'zoo'].map(folder),
        ...[file('a9.txt', 1), file('a10.txt', 0), file('b.txt', 1536)],
      ],
      truncated: false,
    });
    const page = await ask(site.url, '/');
    assert.deepEqual(
      linksOf(page, `${site.url}/`).map(({ name }) => name),
      ['Archive/', 'empty/', 'indexed/', 'zoo/', 'a9.txt', 'a10.txt', 'b.txt'],
    );
    assert.match(page.text, /<p class="sum">4 folders, 3 files, 1\.5 KiB<\/p>/);
    assert.match(page.text, /<time datetime="2025-01-02T03:04:05.000Z">2025-01-02/);
    assert.match((await ask(site.url, '/empty/')).text, /<p class="sum">0 files<\/p>/);
  });

  test('is HTML, or JSON if Accept prefers it', async (t) => {
    const site = await startSite(t, { ini, files });
    const cases: readonly (readonly [string, string])[] = [
      ['', 'text/html; charset=utf-8'],
      ['*/*', 'text/html; charset=utf-8'],
      ['text/html,application/xhtml+xml,*/*;q=0.8', 'text/html; charset=utf-8'],
      ['application/json', 'application/json'],
      ['application/json, text/html;q=0.9', 'application/json'],
      ['image/png', 'text/html; charset=utf-8'],
    ];
    for (const [accept, type] of cases) {
      const { status, fields } = await ask(site.url, '/', {
        headers: accept === '' ? {} : { accept },
      });
      assert.deepEqual([status, fields['content-type']], [200, type], accept);
      assert.match(fields.vary ?? '', /^Accept(?:, Accept-Encoding)?$/, accept);
      assert.equal(fields['cache-control'], 'no-cache', accept);
    }
  });

  test('has its own Content-Security-Policy, with the frame-ancestors of the mount', async (t) => {
    const name = 'Content-Security-Policy[]';
    const headers = [
      'X-Team = docs',
      `${name} = "script-src 'none'"`,
      `${name} = "default-src 'self'; frame-ancestors 'none' ; img-src *"`,
    ];
    const site = await startSite(t, {
      ini: `${ini}[disk.site.headers]\n${headers.join('\n')}\n`,
      files,
    });
    const page = await ask(site.url, '/');
    const policy = String(page.fields['content-security-policy']);
    assert.match(
      policy,
      /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
    );
    assert.equal(page.fields['x-team'], 'docs');
    // The fields of a 304 replace the stored ones (RFC 9111 §3.2): the mount's must not be there.
    const known = await ask(site.url, '/', {
      headers: { 'if-none-match': page.fields.etag ?? '' },
    });
    assert.equal(known.status, 304);
    assert.equal(known.fields['content-security-policy'], undefined);
    for (const [path, accept] of [
      ['/b.txt', '*/*'],
      ['/', 'application/json'],
    ] as const) {
      const other = await ask(site.url, path, { headers: { accept } });
      assert.match(String(other.fields['content-security-policy']), /default-src 'self'/, path);
    }
  });

  test('exists only if the mount lists folders and the folder has no index file', async (t) => {
    const site = await startSite(t, {
      ini: `${ini}[disk.unlisted]\npath = /unlisted/\nroot = site\n`,
      files,
    });
    assert.equal((await ask(site.url, '/indexed/')).text, 'the index');
    assert.equal((await ask(site.url, '/zoo')).fields.location, '/zoo/');
    for (const path of ['/unlisted/', '/unlisted/zoo/', '/unlisted/zoo', '/none/', '/b.txt/']) {
      assert.equal((await ask(site.url, path)).status, 404, path);
    }
    assert.equal((await ask(site.url, '/unlisted/zoo/animal.txt')).status, 200);
  });

  test('links to the folders up to the mount, and to the front page', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.docs]\npath = /docs/v1/\nroot = site\nlisting = yes\n',
      files: { 'site/a/b/c.txt': 'x' },
    });
    const top = `${site.url}/docs/v1/`;
    const paths = async (path: string) =>
      linksOf(await ask(site.url, path), site.url + path).map(({ url }) => url.href);
    const home = `${site.url}/`;
    assert.deepEqual(await paths('/docs/v1/'), [home, `${top}a/`]);
    assert.deepEqual(await paths('/docs/v1/a/b/'), [
      ...[home, top, `${top}a/`, `${top}a/`],
      `${top}a/b/c.txt`,
    ]);
    assert.match((await ask(site.url, '/docs/v1/')).text, /<h1><bdi>docs\/v1<\/bdi><\/h1>/);
  });

  test('has its own entity tag in each media type, and another one after a change', async (t) => {
    const site = await startSite(t, { ini, files });
    const json = { accept: 'application/json' };
    const page = await ask(site.url, '/');
    const data = await ask(site.url, '/', { headers: json });
    assert.notEqual(page.fields.etag, data.fields.etag);
    const headers = { ...json, 'if-none-match': data.fields.etag ?? '' };
    const known = await ask(site.url, '/', { headers });
    assert.deepEqual([known.status, known.fields.vary], [304, 'Accept']);
    const head = await ask(site.url, '/', { method: 'HEAD' });
    assert.equal(head.fields['content-length'], String(page.bytes.length));
    await writeFile(join(site.folder, 'site/new.txt'), 'x');
    await eventually(
      () => ask(site.url, '/', { headers }),
      ({ status }) => status === 200,
    );
    await rm(join(site.folder, 'site/new.txt'));
    await eventually(
      () => listingOf(site),
      ({ entries }) => entries.every(({ name }) => name !== 'new.txt'),
    );
    await rm(join(site.folder, 'site/zoo'), { recursive: true });
    assert.equal((await ask(site.url, '/zoo/')).status, 404);
  });

  test('shows sizes in KiB, MiB and so on', async (t) => {
    const sizes: readonly (readonly [bytes: number, text: string])[] = [
      [0, '0 B'],
      [1023, '1023 B'],
      [1024, '1.0 KiB'],
      [1_048_000, '1023.4 KiB'],
      [1_048_575, '1.0 MiB'],
      [5 * 2 ** 30, '5.0 GiB'],
      [1.5 * 2 ** 40, '1.5 TiB'],
    ];
    const names = sizes.map((_, at) => `${at}.bin`);
    const site = await startSite(t, {
      ini,
      files: Object.fromEntries(names.map((name) => [`site/${name}`, ''])),
    });
    for (const [at, [bytes]] of sizes.entries()) {
      await truncate(join(site.folder, `site/${at}.bin`), bytes);
    }
    const { text } = await ask(site.url, '/');
    const shown = [...text.matchAll(/<td class="size">([^<]+)<\/td>/g)].map(([, size]) => size);
    assert.deepEqual(
      shown,
      sizes.map(([, size]) => size),
    );
  });

  test('shows at most 10,000 entries, and says that there are more', async (t) => {
    const site = await startSite(t, { ini, files: { 'site/x': '' } });
    const folder = join(site.folder, 'site/many');
    mkdirSync(folder);
    for (let count = 0; count < 10_000; count += 1) writeFileSync(join(folder, String(count)), '');
    const whole = await listingOf(site, '/many/');
    assert.deepEqual([whole.entries.length, whole.truncated], [10_000, false]);
    writeFileSync(join(folder, 'one more'), '');
    const cut = await eventually(
      () => listingOf(site, '/many/'),
      ({ truncated }) => truncated,
    );
    assert.equal(cut.entries.length, 10_000);
    assert.match((await ask(site.url, '/many/')).text, /only 10,000 entries are shown/);
  });
});

suite('odd names', () => {
  const reachable = [
    '"><script>',
    '<img src=x onerror=alert(1)>',
    "it's & so &amp; on",
    '100%',
    '%41',
    '%2e%2e',
    'a#b',
    'a?b=c',
    'naïve café',
    '日本語',
    '😀',
    'e\u0301',
    ' spaced ',
    'javascript:alert(1)',
    'https:',
    '-rf',
    'a;b=c',
    '..;x'.slice(1),
    '\u202egpj.exe',
    '[a]{b}|^`',
    'x'.repeat(255),
  ];
  const unreachable = [
    'line\nbreak',
    'tab\tname',
    'back\\slash',
    '\u0085',
    '\u2028',
    '\ufffd',
    '..;',
  ];

  async function start(t: TestContext) {
    const site = await startSite(t, { ini, files: { 'site/plain.txt': 'plain' } });
    for (const name of [...reachable, ...unreachable]) {
      writeFileSync(join(site.folder, 'site', name), name);
    }
    const notUnicode = [Buffer.from(join(site.folder, 'site/')), Buffer.from([0xff, 0x61])];
    writeFileSync(Buffer.concat(notUnicode), 'x');
    return site;
  }

  test('are listed if a URL can name them, and each link leads to its file', async (t) => {
    const site = await start(t);
    const { entries } = await listingOf(site);
    const names = new Set(entries.map(({ name }) => name));
    const shown = reachable.filter((name) => !name.startsWith('.'));
    assert.deepEqual(names, new Set(['plain.txt', ...shown]));
    const links = linksOf(await ask(site.url, '/'), `${site.url}/`);
    assert.deepEqual(new Set(links.map(({ name }) => name)), names);
    for (const { name, url } of links) {
      assert.equal(url.origin, site.url, name);
      const { text } = await ask(site.url, url.pathname + url.search);
      assert.equal(text, name === 'plain.txt' ? 'plain' : name);
    }
  });

  test('inject nothing into the page, whose policy permits its own script only', async (t) => {
    const site = await start(t);
    const { text, fields } = await ask(site.url, '/');
    const script = /<script>(.*?)<\/script>/s.exec(text)?.[1] ?? '';
    assert.doesNotMatch(withoutScript(text), /<script|<img|href="(?!\.\/|\.\.\/|#)/);
    const style = /<style>(.*?)<\/style>/s.exec(text)?.[1] ?? '';
    const hashOf = (source: string): string => createHash('sha256').update(source).digest('base64');
    assert.equal(
      fields['content-security-policy'],
      `default-src 'none'; style-src 'sha256-${hashOf(style)}'; ` +
        `script-src 'sha256-${hashOf(script)}'; ` +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    );
  });

  test('work for folders', async (t) => {
    const site = await startSite(t, { ini, files: { 'site/"><script>%#?/ä/page.txt': 'page' } });
    const [link] = linksOf(await ask(site.url, '/'), `${site.url}/`);
    const seen = await ask(site.url, link?.url.pathname ?? '');
    assert.match(seen.text, /<title>Index of \/&quot;&gt;&lt;script&gt;%#\?\/<\/title>/);
    assert.doesNotMatch(withoutScript(seen.text), /<script/);
    assert.deepEqual(
      linksOf(seen, link?.url.href ?? '').map(({ url }) => url.pathname),
      ['/', '/', '/%22%3E%3Cscript%3E%25%23%3F/%C3%A4/'],
    );
  });
});
