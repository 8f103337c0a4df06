import assert from 'node:assert/strict';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { deflateSync } from 'node:zlib';
import { sizeIn, variantType, variantWidth } from '../../../src/modules/assets/picture-request.ts';
import { startSite, type TestSite } from '../../harness.ts';

const loaded = await import('sharp').catch(() => undefined);
const avif = 'image/avif,image/webp,image/png,*/*;q=0.8';
const webp = 'image/webp,*/*';

/** A picture whose colours change, so that no format makes it tiny. */
async function picture(width: number, height: number, format: 'jpeg' | 'png' | 'gif' = 'jpeg') {
  const data = Buffer.alloc(width * height * 3);
  for (let at = 0; at < data.length; at += 1) data[at] = (at * 31 + (at >> 7) * 17) % 251;
  const raw = { width, height, channels: 3 } as const;
  if (loaded === undefined) throw new Error('sharp is not installed');
  return loaded.default(data, { raw }).toFormat(format).toBuffer();
}

async function put(site: TestSite, name: string, content: Buffer): Promise<void> {
  const reply = await fetch(`${site.url}/svc1/asset/${name}`, {
    method: 'PUT',
    body: new Uint8Array(content),
    headers: { apikey: site.adminKey },
  });
  assert.equal(reply.status, 200, await reply.text());
}

async function get(site: TestSite, path: string, accept = '*/*', more: object = {}) {
  const reply = await fetch(site.url + path, { headers: { accept, ...more } });
  const content = Buffer.from(await reply.arrayBuffer());
  const { headers, status } = reply;
  return { status, headers, content, type: headers.get('content-type') };
}

async function sizeOf(content: Buffer) {
  const { width, height, format } = (await loaded?.default(content).metadata()) ?? {};
  return { width, height, format };
}

async function variantsOf({ folder }: TestSite): Promise<readonly string[]> {
  return (await readdir(join(folder, 'data/assets/.variants')).catch(() => [])).sort();
}

function startPictures(t: TestContext, ini = ''): Promise<TestSite> {
  return startSite(t, { ini, rules: [{ path: '/p', asset: 'p.jpg' }] });
}

suite('the size of a picture', () => {
  test('is a few widths, whatever the query says', () => {
    const whole = { width: 1000, height: 500 };
    const width = (query: string) => {
      const size = sizeIn(query);
      return size && variantWidth(size, whole);
    };
    assert.equal(width('width=1'), 160);
    assert.equal(width('a=b&width=161'), 320);
    assert.equal(width('height=100'), 320);
    assert.equal(width('width=900&height=80'), 160);
    assert.equal(width('width=961'), 1000);
    assert.equal(width('width=999999'), 1000);
    for (const query of [
      '',
      'width=',
      'width=0',
      'width=1e3',
      'width=-1',
      'width=1234567',
      'x=1',
    ]) {
      assert.equal(width(query), undefined, query);
    }
  });

  test('has the smallest format that the client names', () => {
    assert.equal(variantType(avif, 'image/jpeg'), 'image/avif');
    assert.equal(variantType(webp, 'image/jpeg'), 'image/webp');
    assert.equal(variantType('image/avif;q=0, image/webp', 'image/png'), 'image/webp');
    assert.equal(variantType('*/*', 'image/png'), 'image/png');
    assert.equal(variantType(undefined, 'image/jpeg'), 'image/jpeg');
  });
});

suite('a page with a picture', { skip: loaded === undefined && 'sharp is not installed' }, () => {
  test('answers with the width and the format that the browser wants', async (t) => {
    const site = await startPictures(t);
    const whole = await picture(1000, 500);
    await put(site, 'p.jpg', whole);
    const small = await get(site, '/p?width=300', avif);
    assert.equal(small.type, 'image/avif');
    assert.deepEqual(await sizeOf(small.content), { width: 320, height: 160, format: 'heif' });
    const other = await get(site, '/p?width=320', webp);
    assert.deepEqual(await sizeOf(other.content), { width: 320, height: 160, format: 'webp' });
    const own = await get(site, '/p?width=320');
    assert.deepEqual(await sizeOf(own.content), { width: 320, height: 160, format: 'jpeg' });
    const etags = [small, other, own].map(({ headers }) => headers.get('etag'));
    assert.equal(new Set(etags).size, 3);
    for (const { headers } of [small, other, own])
      assert.match(headers.get('vary') ?? '', /Accept/);
    const etag = etags[0] ?? '';
    const again = await get(site, '/p?width=300', avif, { 'if-none-match': etag });
    assert.deepEqual([again.status, again.content.length], [304, 0]);
    assert.match(again.headers.get('vary') ?? '', /Accept/);
    const plain = await get(site, '/p', avif);
    assert.deepEqual(plain.content, whole);
    assert.equal(plain.headers.get('vary'), null);
    assert.equal((await variantsOf(site)).length, 3);
  });

  test('makes no further variants for ever new sizes', async (t) => {
    const site = await startPictures(t);
    await put(site, 'p.jpg', await picture(200, 100));
    for (let width = 1; width < 60; width += 1) {
      await get(site, `/p?width=${width * 3}&height=${width}&x=${width}`, webp);
    }
    assert.ok((await variantsOf(site)).length <= 2);
  });

  test('is answered as it was uploaded if it has no variants', async (t) => {
    const site = await startPictures(t);
    const bomb = pngBomb(60_000, 60_000);
    const gif = await picture(400, 300, 'gif');
    const damaged = (await picture(400, 300)).subarray(0, 2_000);
    const text = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>');
    for (const content of [bomb, gif, damaged, text]) {
      await put(site, 'p.jpg', content);
      const { status, content: sent } = await get(site, '/p?width=100', avif);
      assert.equal(status, 200);
      assert.deepEqual(sent, content);
    }
    assert.deepEqual(await variantsOf(site), []);
  });

  test('is read as the picture that it says it is, and by no other decoder', async (t) => {
    const site = await startPictures(t);
    const svg = '<svg    WEBPVP="" xmlns="http://www.w3.org/2000/svg" width="300" height="200"/>';
    const content = Buffer.from(svg);
    await put(site, 'p.jpg', content);
    const unknown = await get(site, '/p?width=100', avif);
    assert.equal(unknown.type, 'application/octet-stream');
    // Who writes rows can call a file what it is not.
    const { data } = await site.call('svc1.asset.read', { name: 'p.jpg' });
    const edit = { table: 'asset', id: data.id, contenttype: 'image/webp' };
    assert.equal((await site.call('svc1.record.edit', edit)).error, undefined);
    const { type, content: sent } = await get(site, '/p?width=100', avif);
    assert.deepEqual([type, sent], ['image/webp', content]);
    assert.deepEqual(await variantsOf(site), []);
  });

  test('has no variants with `variants = 0`', async (t) => {
    const site = await startPictures(t, '[asset]\nvariants = 0\n');
    const whole = await picture(400, 300);
    await put(site, 'p.jpg', whole);
    assert.deepEqual((await get(site, '/p?width=100', avif)).content, whole);
  });

  test('is made once for many that ask at the same time', async (t) => {
    const site = await startPictures(t);
    await put(site, 'p.jpg', await picture(800, 600));
    const asked = Array.from({ length: 20 }, () => get(site, '/p?width=160', webp));
    const all = await Promise.all(asked);
    assert.equal(new Set(all.map(({ content }) => content.toString('base64'))).size, 1);
    assert.equal((await variantsOf(site)).length, 1);
  });

  test('keeps the variants below the room for them, and makes removed ones again', async (t) => {
    const site = await startPictures(t, '[asset]\nvariants = 40KiB\n');
    await put(site, 'p.jpg', await picture(1000, 500));
    const sizes = [160, 320, 480];
    for (const width of sizes) await get(site, `/p?width=${width}`, webp);
    const folder = join(site.folder, 'data/assets/.variants');
    let bytes = 0;
    for (const name of await variantsOf(site)) bytes += (await stat(join(folder, name))).size;
    assert.ok(bytes <= 40 * 1024, String(bytes));
    assert.ok((await variantsOf(site)).length < sizes.length);
    for (const width of sizes) {
      const { type } = await get(site, `/p?width=${width}`, webp);
      assert.equal(type, 'image/webp');
    }
  });

  test('has variants in downloads by name, too', async (t) => {
    const site = await startPictures(t);
    await put(site, 'p.jpg', await picture(800, 600));
    const headers = { apikey: site.adminKey };
    const { type, content } = await get(site, '/svc1/asset/p.jpg?width=160', webp, headers);
    assert.equal(type, 'image/webp');
    assert.equal((await sizeOf(content)).width, 160);
  });
});

/** A PNG that says it has many pixels, all of them empty, in few bytes. */
function pngBomb(width: number, height: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([1, 0, 0, 0, 0], 8);
  const row = Buffer.alloc(1 + width / 8);
  const pixels = Buffer.alloc(row.length * 64);
  const chunk = (type: string, data: Buffer): Buffer => {
    const bytes = Buffer.alloc(12 + data.length);
    bytes.writeUInt32BE(data.length, 0);
    bytes.write(type, 4, 'latin1');
    bytes.set(data, 8);
    return bytes;
  };
  const start = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
  const data = chunk('IDAT', deflateSync(pixels));
  return Buffer.concat([start, chunk('IHDR', header), data, chunk('IEND', Buffer.alloc(0))]);
}
