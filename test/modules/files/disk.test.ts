import assert from 'node:assert/strict';
import { mkdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { temporaryFolder } from '../../folder.ts';
import { startSite } from '../../harness.ts';
import { ask, eventually, heldText, mountOf, visitDisk } from './disk-rig.ts';

suite('several mounts', () => {
  const ini = `
[disk.everywhere]
root = everywhere
[disk.docs]
path = /docs
root = docs
[disk.shop]
origin = HTTP://Shop.Example:80
root = shop
[disk.shop-docs]
origin = http://shop.example
path = /docs/
root = shop-docs
[log]
explain = yes
`;
  const files = {
    'everywhere/who.txt': 'everywhere',
    'everywhere/docs/who.txt': 'everywhere',
    'everywhere/docs/only.txt': 'only everywhere',
    'everywhere/docsx/who.txt': 'everywhere',
    'docs/who.txt': 'docs',
    'docs/both.txt': 'docs',
    'docs/only-docs.txt': 'only docs',
    'shop/who.txt': 'shop',
    'shop/docs/both.txt': 'shop',
    'shop-docs/who.txt': 'shop-docs',
  };
  const cases: readonly (readonly [host: string, path: string, content: string, source: string])[] =
    [
      ['shop.example', '/docs/who.txt', 'shop-docs', 'shop-docs'],
      ['shop.example', '/who.txt', 'shop', 'shop'],
      ['shop.example', '/docs/both.txt', 'shop', 'shop'],
      ['shop.example', '/docs/only-docs.txt', 'only docs', 'docs'],
      ['shop.example', '/docs/only.txt', 'only everywhere', 'everywhere'],
      ['SHOP.example:80', '/who.txt', 'shop', 'shop'],
      ['shop.example:8080', '/who.txt', 'everywhere', 'everywhere'],
      ['shop.example.org', '/docs/who.txt', 'docs', 'docs'],
      ['other.example', '/docsx/who.txt', 'everywhere', 'everywhere'],
    ];
  test('answer in the order exact origin, longest path, until one has the file', async (t) => {
    const site = await startSite(t, { ini, files });
    for (const [host, path, content, source] of cases) {
      const seen = await ask(site.url, path, { headers: { host } });
      assert.equal(seen.text, content, `${host}${path}`);
      assert.equal(seen.fields['server-timing'], `waymark;desc="disk:${source}"`);
    }
    assert.equal((await ask(site.url, '/none.txt')).status, 404);
  });

  test('answer GET and HEAD only', async (t) => {
    const site = await startSite(t, { ini, files });
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      const { status, fields } = await ask(site.url, '/who.txt', { method });
      assert.deepEqual([status, fields.allow], [405, 'GET, HEAD, OPTIONS'], method);
    }
  });
});

suite('a changed file', () => {
  const changes: readonly (readonly [string, (file: string) => Promise<void>])[] = [
    ['another text', (file) => writeFile(file, 'a longer text')],
    ['another text of the same length', (file) => writeFile(file, 'not a')],
    [
      'another text with the same times',
      async (file) => {
        await writeFile(file, 'not b');
        await utimes(file, 1_000_000, 1_000_000);
      },
    ],
    [
      'another file that replaces it',
      async (file) => {
        await writeFile(`${file}.new`, 'not c');
        await rename(`${file}.new`, file);
      },
    ],
    ['a removal', (file) => rm(file)],
    [
      'a folder that replaces it',
      async (file) => {
        await rm(file);
        await mkdir(file);
      },
    ],
  ];
  for (const [title, change] of changes) {
    test(`is served within a second: ${title}`, async (t) => {
      for (const ageMs of [0, 10_000]) {
        const folder = await temporaryFolder(t);
        const file = join(folder, 'page.txt');
        await writeFile(file, 'text!');
        await utimes(file, 1_000_000, 1_000_000);
        await laterThan(file);
        let nowMs = Date.now();
        const visit = visitDisk(t, [mountOf(folder)], () => nowMs);
        assert.equal(heldText(await visit('/page.txt')), 'text!');
        nowMs += ageMs;
        assert.equal(heldText(await visit('/page.txt')), 'text!');
        nowMs += 400;
        assert.equal(heldText(await visit('/page.txt')), 'text!');
        await change(file);
        nowMs += 999;
        assert.notEqual(heldText(await visit('/page.txt')), 'text!', `${ageMs} ms old`);
      }
    });
  }

  test('gets another entity tag, so that clients that revalidate get the new content', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\n',
      files: { 'site/page.txt': 'first' },
    });
    const first = await ask(site.url, '/page.txt');
    await writeFile(join(site.folder, 'site/page.txt'), 'later');
    const later = await eventually(
      () => ask(site.url, '/page.txt', { headers: { 'if-none-match': first.fields.etag } }),
      ({ status }) => status === 200,
    );
    assert.equal(later.text, 'later');
    assert.notEqual(later.fields.etag, first.fields.etag);
  });
});

/** Resolves once the file system's clock is later than the time of a file. */
async function laterThan(file: string): Promise<void> {
  const { ctimeNs } = await stat(file, { bigint: true });
  await eventually(
    async () => {
      await writeFile(`${file}.clock`, '');
      return (await stat(`${file}.clock`, { bigint: true })).ctimeNs > ctimeNs;
    },
    (later) => later,
  );
}
