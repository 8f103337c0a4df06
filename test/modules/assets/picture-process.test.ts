import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import sharp, { type Sharp } from 'sharp';
import { silentLog } from '../../../src/core/report/log.ts';
import { PictureProcess } from '../../../src/modules/assets/picture-process.ts';
import { createVariants, unpackedBytesOf } from '../../../src/modules/assets/variants.ts';
import { temporaryFolder } from '../../folder.ts';

const MIB = 1024 * 1024;

function plain(width: number, height: number): Sharp {
  const create = { width, height, channels: 3, background: 'green' } as const;
  return sharp({ create, limitInputPixels: false });
}

/** Whether a PNG has a variant. */
async function hasVariant(folder: string, picture: Sharp): Promise<boolean> {
  const file = join(folder, 'p.png');
  await picture.png({ compressionLevel: 0 }).toFile(file);
  const path = (name: string): string => (name.startsWith('.') ? join(folder, name) : file);
  const variants = createVariants({
    ...{ files: { folder, path }, bytesMax: 1e9, now: Date.now, log: silentLog },
    waitMs: 60_000,
  });
  const { size: bytes } = await stat(file);
  const asset = { name: 'p', sha256: 'a'.repeat(64), bytes, contenttype: 'image/png' };
  const size = { width: 160, height: undefined };
  const wanted = { size, accept: 'image/webp', address: '192.0.2.1' };
  return (await variants.find(asset, wanted)) !== undefined;
}

suite('the process that makes pictures', () => {
  test('ends with a picture that takes too much memory, and the next one gets another', async (t) => {
    const folder = await temporaryFolder(t);
    const source = join(folder, 'p.png');
    await plain(4_000, 4_000).png({ compressionLevel: 1 }).toFile(source);
    const picture = { source, width: 2_560, type: 'image/webp' } as const;
    // Less than Node needs.
    const small = new PictureProcess({ bytesMax: MIB });
    await assert.rejects(small.make(picture), /takes too much memory or time/);
    await assert.rejects(small.make(picture), /takes too much memory or time/);
    const made = await new PictureProcess().make({ ...picture, width: 160 });
    const { format, width } = await sharp(made).metadata();
    assert.deepEqual([format, width], ['webp', 160]);
  });

  test('says why it cannot read a file, and goes on', async (t) => {
    const folder = await temporaryFolder(t);
    const source = join(folder, 'p.png');
    await plain(10, 20).png().toFile(source);
    const pictures = new PictureProcess();
    await assert.rejects(pictures.read(import.meta.filename), /unsupported image format/);
    const { width, height } = await pictures.read(source);
    assert.deepEqual([width, height], [10, 20]);
  });
});

suite('a picture is sent as it was uploaded', () => {
  test('with a side of more than 65,535 pixels', async (t) => {
    assert.equal(await hasVariant(await temporaryFolder(t), plain(65_536, 4)), false);
    assert.equal(await hasVariant(await temporaryFolder(t), plain(65_535, 4)), true);
  });

  const jpeg = { format: 'jpeg', channels: 3, depth: 'uchar' } as const;
  const whole = { width: 8_000, height: 8_000, autoOrient: { width: 8_000, height: 8_000 } };
  for (const [what, metadata, bytesOfPixel] of [
    ['a JPEG', jpeg, 3],
    ['a progressive JPEG', { ...jpeg, isProgressive: true, chromaSubsampling: '4:4:4' }, 8],
    ['one of a camera', { ...jpeg, isProgressive: true, chromaSubsampling: '4:2:0' }, 5],
    [
      'one in CMYK',
      { ...jpeg, channels: 4, isProgressive: true, chromaSubsampling: '4:4:4:4' },
      10,
    ],
    ['a PNG with 16 bits', { ...jpeg, format: 'png', channels: 4, depth: 'ushort' }, 8],
    ['a WebP', { ...jpeg, format: 'webp' }, 5],
    ['an AVIF', { ...jpeg, format: 'heif' }, 14],
  ] as const) {
    test(`if ${what} takes too much memory: ${bytesOfPixel} bytes for a pixel`, () => {
      const bytes = unpackedBytesOf({ isProgressive: false, ...whole, ...metadata });
      assert.equal(bytes, bytesOfPixel * 64_000_000);
    });
  }
});
