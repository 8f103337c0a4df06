import assert from 'node:assert/strict';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { writeFiles } from '../../folder.ts';
import { startSite } from '../../harness.ts';
import { ask, eventually } from './disk-rig.ts';

suite('folders', () => {
  const ini = `
[disk.site]
root = site
index = home.htm, index.html
[disk.docs]
path = /docs/
root = docs
`;
  const files = {
    'site/index.html': 'index',
    'site/both/index.html': 'index',
    'site/both/home.htm': 'home',
    'site/folder-as-index/home.htm/x': '',
    'site/folder-as-index/index.html': 'index',
    'site/é a%#?/index.html': 'odd',
    'site/bare/page.txt': 'page',
    'docs/index.html': 'docs',
  };

  test('show their first existing index file', async (t) => {
    const site = await startSite(t, { ini, files });
    const cases = [
      ['/', 'index'],
      ['/both/', 'home'],
      ['/folder-as-index/', 'index'],
      ['/%C3%A9%20a%25%23%3F/', 'odd'],
      ['/docs/', 'docs'],
      ['/?x=1', 'index'],
    ] as const;
    for (const [target, content] of cases) {
      const { status, text, fields } = await ask(site.url, target);
      assert.deepEqual([status, text], [200, content], target);
      assert.equal(fields['content-type'], 'text/html; charset=utf-8');
    }
  });

  test('without a final slash redirect to the path with one, and keep the query', async (t) => {
    const site = await startSite(t, { ini, files });
    const cases = [
      ['/both', '/both/'],
      ['/both?a=1&b=%2F?#', undefined],
      ['/both?a=1&b=%2F?', '/both/?a=1&b=%2F?'],
      ['/b%6fth?', '/both/'],
      ['/%c3%a9%20a%25%23%3f?q', '/%C3%A9%20a%25%23%3F/?q'],
      ['/docs', '/docs/'],
      ['/docs?x', '/docs/?x'],
    ] as const;
    for (const [target, location] of cases) {
      for (const method of ['GET', 'HEAD']) {
        const { status, fields, text } = await ask(site.url, target, { method });
        assert.equal(status, location === undefined ? 400 : 301, target);
        assert.equal(fields.location, location, target);
        if (location !== undefined) assert.equal(text, '');
      }
    }
  });

  test("are a 404 without an index file, as is a file's path with a final slash", async (t) => {
    const site = await startSite(t, { ini, files });
    for (const target of [
      '/bare',
      '/bare/',
      '/bare/page.txt/',
      '/bare/page.txt/x',
      '/index.html/',
      '/doc',
    ]) {
      assert.equal((await ask(site.url, target)).status, 404, target);
    }
  });

  test('that are deleted and made again are served again', async (t) => {
    const site = await startSite(t, { ini, files });
    const docs = join(site.folder, 'docs');
    assert.equal((await ask(site.url, '/docs/')).text, 'docs');
    await rename(docs, `${docs}-away`);
    const gone = await eventually(
      () => ask(site.url, '/docs/'),
      ({ text }) => text !== 'docs',
    );
    assert.equal(gone.status, 404);
    await writeFiles(docs, { 'index.html': 'new docs' });
    await eventually(
      () => ask(site.url, '/docs/'),
      ({ text }) => text === 'new docs',
    );
  });
});

suite('the fields of a mount', () => {
  const ini = `
[disk.site]
root = site
cache_control = public, max-age=60
[disk.site.headers]
X-Own = yes
Link[] = "</a.css>; rel=preload"
Link[] = "</b.css>; rel=preload"
[disk.sniffed]
path = /sniffed/
root = site
[disk.sniffed.headers]
x-content-type-options = none
`;
  const files = {
    'site/page.txt': 'a page',
    'site/large.bin': Buffer.alloc(300_000),
    'site/folder/index.html': '',
  };

  test('are on all answers of the mount and on no others', async (t) => {
    const site = await startSite(t, { ini, files });
    const { etag } = (await ask(site.url, '/page.txt')).fields;
    const cases: readonly (readonly [string, Readonly<Record<string, string>>, number])[] = [
      ['/page.txt', {}, 200],
      ['/large.bin', {}, 200],
      ['/page.txt', { range: 'bytes=0-1' }, 206],
      ['/page.txt', { range: 'bytes=0-1,4-5' }, 206],
      ['/page.txt', { range: 'bytes=99-' }, 416],
      ['/page.txt', { 'if-none-match': etag ?? '' }, 304],
      ['/page.txt', { 'if-match': '"other"' }, 412],
      ['/large.bin', { 'if-match': '"other"' }, 412],
      ['/folder', {}, 301],
    ];
    for (const [target, headers, wanted] of cases) {
      const title = `${target} ${JSON.stringify(headers)}`;
      const { status, fields } = await ask(site.url, target, { headers });
      assert.equal(status, wanted, title);
      assert.equal(fields['x-own'], 'yes', title);
      assert.equal(fields.link, '</a.css>; rel=preload, </b.css>; rel=preload', title);
      assert.equal(fields['x-content-type-options'], 'nosniff', title);
      const kept = [200, 206, 304].includes(status) ? 'public, max-age=60' : undefined;
      assert.equal(fields['cache-control'], kept, title);
    }
    const missing = await ask(site.url, '/none.txt');
    assert.equal(missing.fields['x-own'], undefined);
    const sniffed = await ask(site.url, '/sniffed/page.txt');
    assert.equal(sniffed.fields['x-content-type-options'], 'none');
  });

  test('are the same on HEAD and GET', async (t) => {
    const site = await startSite(t, { ini, files });
    for (const target of ['/page.txt', '/large.bin', '/folder/', '/folder']) {
      const get = await ask(site.url, target);
      const head = await ask(site.url, target, { method: 'HEAD' });
      assert.equal(head.status, get.status, target);
      assert.deepEqual({ ...head.fields, date: '' }, { ...get.fields, date: '' }, target);
      assert.equal(head.bytes.length, 0, target);
    }
  });
});

suite('the fallback of a mount', () => {
  const ini = `
[disk.app]
path = /app/
root = app
fallback = /shell/app.html
[disk.large]
path = /large/
root = app
fallback = large.bin
`;
  const files = {
    'app/shell/app.html': 'the app',
    'app/page.txt': 'a page',
    'app/large.bin': Buffer.alloc(300_000, 1),
  };

  test("answers in place of a 404 below the mount's path", async (t) => {
    const site = await startSite(t, { ini, files });
    for (const target of ['/app/any/where', '/app/', '/app', '/app/.env', '/app/page.txt/']) {
      const { status, text, fields } = await ask(site.url, target);
      assert.deepEqual([status, text], [200, 'the app'], target);
      assert.equal(fields['content-type'], 'text/html; charset=utf-8');
    }
    assert.equal((await ask(site.url, '/app/page.txt')).text, 'a page');
    assert.equal((await ask(site.url, '/large/x')).bytes.length, 300_000);
    for (const target of ['/', '/application']) {
      assert.equal((await ask(site.url, target)).status, 404, target);
    }
    assert.equal((await ask(site.url, '/app/x', { method: 'POST' })).status, 404);
  });

  test('has validators and follows changes like any file', async (t) => {
    const site = await startSite(t, { ini, files });
    const first = await ask(site.url, '/app/x');
    const headers = { 'if-none-match': first.fields.etag ?? '' };
    assert.equal((await ask(site.url, '/app/y', { headers })).status, 304);
    await writeFile(join(site.folder, 'app/shell/app.html'), 'another app');
    const changed = await eventually(
      () => ask(site.url, '/app/x', { headers }),
      ({ status }) => status === 200,
    );
    assert.equal(changed.text, 'another app');
    await rm(join(site.folder, 'app/shell/app.html'));
    await eventually(
      () => ask(site.url, '/app/x'),
      ({ status }) => status === 404,
    );
  });
});
