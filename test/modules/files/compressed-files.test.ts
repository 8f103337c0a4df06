import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { askUntilCoded, decoded, texts } from '../compression/codings.ts';
import { startSite } from '../../harness.ts';
import { ask, eventually } from './disk-rig.ts';

const text = texts(20_000);
const large = texts(3_000_000);

const ini = `
[disk.site]
root = site
[disk.site.headers]
X-Own = yes
[disk.fixed]
path = /fixed/
root = site
cache_control = max-age=60, no-transform
[disk.off]
path = /off/
root = site
compress = no
`;
const files = {
  'site/page.html': text,
  'site/large.json': large,
  'site/short.html': 'short',
  'site/photo.jpg': text,
};

suite('a text file without precompressed ones', () => {
  test('is compressed once somebody accepts it, with a strong tag and the fields of the mount', async (t) => {
    const { url } = await startSite(t, { ini, files });
    const plain = await ask(url, '/page.html');
    assert.equal(plain.fields.vary, 'Accept-Encoding');
    assert.ok(plain.bytes.equals(text));
    const tags = new Set([plain.fields.etag]);
    for (const coding of ['zstd', 'br', 'gzip'] as const) {
      const { bytes, fields } = await askUntilCoded(url, '/page.html', coding);
      assert.ok(decoded(bytes, coding).equals(text));
      assert.match(fields.etag ?? '', /^"[^"]+"$/);
      assert.equal(fields['x-own'], 'yes');
      assert.equal(fields.vary, 'Accept-Encoding');
      tags.add(fields.etag);
      const known = { 'accept-encoding': coding, 'if-none-match': fields.etag };
      const unchanged = await ask(url, '/page.html', { headers: known });
      assert.deepEqual([unchanged.status, unchanged.fields['x-own']], [304, 'yes']);
      const range = { 'accept-encoding': coding, range: 'bytes=10-19' };
      const part = await ask(url, '/page.html', { headers: range });
      assert.ok(part.bytes.equals(bytes.subarray(10, 20)));
    }
    assert.equal(tags.size, 4, 'each coding has its own tag');
  });

  test('shows a change in each coding', async (t) => {
    const site = await startSite(t, { ini, files });
    await askUntilCoded(site.url, '/page.html', 'br');
    const changed = texts(20_000, 7);
    await writeFile(join(site.folder, 'site/page.html'), changed);
    const headers = { 'accept-encoding': 'br' };
    await eventually(
      () => ask(site.url, '/page.html', { headers }),
      ({ bytes, fields }) => decoded(bytes, fields['content-encoding']).equals(changed),
    );
  });

  test('over 1 MiB is compressed while it is sent, with a weak tag', async (t) => {
    const { url } = await startSite(t, { ini, files });
    const headers = { 'accept-encoding': 'gzip' };
    const plain = await ask(url, '/large.json');
    assert.deepEqual([plain.fields.vary, plain.bytes.length], ['Accept-Encoding', large.length]);
    const coded = await ask(url, '/large.json', { headers });
    assert.equal(coded.fields['content-encoding'], 'gzip');
    assert.equal(coded.fields['x-own'], 'yes');
    assert.equal(coded.fields.etag, `W/${plain.fields.etag}`);
    assert.equal(coded.fields['accept-ranges'], undefined);
    assert.ok(decoded(coded.bytes, 'gzip').equals(large));
    const known = { ...headers, 'if-none-match': coded.fields.etag };
    assert.equal((await ask(url, '/large.json', { headers: known })).status, 304);
    const head = await ask(url, '/large.json', { method: 'HEAD', headers });
    assert.deepEqual(
      [head.status, head.fields['content-encoding'], head.bytes.length],
      [200, 'gzip', 0],
    );
    const byDate = { ...headers, range: 'bytes=0-9', 'if-range': plain.fields['last-modified'] };
    const whole = await ask(url, '/large.json', { headers: byDate });
    assert.equal(whole.status, 200, 'a date does not tell the codings apart');
    const byTag = { ...headers, range: 'bytes=0-9', 'if-range': plain.fields.etag };
    const part = await ask(url, '/large.json', { headers: byTag });
    assert.ok(part.status === 206 && part.bytes.equals(large.subarray(0, 10)));
  });

  test('stays as it is if it is short or an image, or if its mount says so', async (t) => {
    const { url } = await startSite(t, { ini, files });
    await askUntilCoded(url, '/page.html', 'gzip');
    const headers = { 'accept-encoding': 'gzip' };
    for (const path of ['/short.html', '/photo.jpg', '/fixed/page.html', '/off/page.html']) {
      for (let turn = 0; turn < 3; turn += 1) {
        const { fields } = await ask(url, path, { headers });
        assert.deepEqual([fields['content-encoding'], fields.vary], [undefined, undefined], path);
      }
    }
  });
});
