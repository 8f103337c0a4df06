import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import sharp, { type Sharp } from 'sharp';
import { temporaryFolder } from '../../folder.ts';

const run = promisify(execFile);
const child = fileURLToPath(new URL('variant-process.ts', import.meta.url));
const MIB = 1024 * 1024;

/** A picture of one colour, which packs well. */
function plain(width: number, height: number, channels: 3 | 4 = 4): Sharp {
  const background = { r: 10, g: 200, b: 30, alpha: 0.5 };
  const create = { width, height, channels, background };
  return sharp({ create, limitInputPixels: false });
}

/** The pictures by what they are, and whether they have variants. */
const pictures: readonly (readonly [string, type: string, isMade: boolean, () => Sharp])[] = [
  ['an interlaced PNG', 'png', true, () => interlaced(6_000, 6_000)],
  ['one with 16 bits', 'png', false, () => interlaced(6_000, 6_000, 'rgb16')],
  ['one that is long and flat', 'png', false, () => plain(64_000_000, 1)],
  ['a large AVIF', 'avif', false, () => plain(5_000, 4_000, 3).avif({ effort: 0 })],
];

function interlaced(width: number, height: number, colours = 'srgb'): Sharp {
  const png = { progressive: true, compressionLevel: 1 };
  return plain(width, height).toColourspace(colours).png(png);
}

suite('the memory for a smaller picture is bounded', () => {
  for (const [what, type, isMade, make] of pictures) {
    test(`of ${what}`, async (t) => {
      const folder = await temporaryFolder(t);
      const file = join(folder, `p.${type}`);
      await make().toFile(file);
      const { stdout } = await run(process.execPath, [child, file, `image/${type}`, folder]);
      const found = JSON.parse(stdout) as { readonly isMade: boolean; readonly grown: number };
      t.diagnostic(`${Math.round(found.grown / MIB)} MiB`);
      assert.equal(found.isMade, isMade);
      // The picture is in the memory of another process, which has a limit.
      assert.ok(found.grown < 60 * MIB, String(found.grown));
    });
  }
});
