import { readFile, stat } from 'node:fs/promises';
import { createVariants } from '../../../src/modules/assets/variants.ts';
import { silentLog } from '../../../src/core/report/log.ts';

/**
 * Makes the variant of a picture, and prints whether there is one, and by how many bytes the memory
 * of this process has grown: `node variant-process.ts FILE TYPE FOLDER`.
 */
const [, , file = '', contenttype = '', folder = ''] = process.argv;
const files = {
  folder,
  path: (sha256: string) => (sha256.startsWith('.') ? `${folder}/${sha256}` : file),
};
const variants = createVariants({
  ...{ files, bytesMax: 1e9, now: Date.now, log: silentLog },
  waitMs: 60_000,
});
const { size: bytes } = await stat(file);
const asset = { name: 'p', sha256: 'a'.repeat(64), bytes, contenttype };
// sharp and the file are there before the measurement.
await variants.isAvailable();
await readFile(file);
const before = process.resourceUsage().maxRSS;
const size = { width: 2_560, height: undefined };
const wanted = { size, accept: 'image/webp', address: '192.0.2.1' };
const made = await variants.find(asset, wanted);
const grown = (process.resourceUsage().maxRSS - before) * 1_024;
process.stdout.write(JSON.stringify({ isMade: made !== undefined, grown }));
