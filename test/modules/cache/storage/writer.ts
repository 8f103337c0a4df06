import { failureFrom } from '../../../../src/core/values/failure.ts';
import { openCache } from '../../../../src/modules/cache/storage/folder-cache.ts';
import { prepareCache } from '../../../../src/modules/cache/storage/environment.ts';
import type { CacheEntry } from '../../../../src/modules/cache/storage/record.ts';

// A process that keeps answers in the folder of its word until one is refused: short ones, then long
// ones, which have files of their own. Then it reads the first one.

const [folder = ''] = process.argv.slice(2);
await prepareCache(folder);
const cache = openCache<CacheEntry>({ folder, bytesMax: 1e9, now: Date.now });

async function put(id: string, bytesLength: number): Promise<string> {
  const url = `http://a.example/${id}`;
  const bytes = Buffer.alloc(bytesLength, id);
  const added = { id, content: { kind: 'bytes', bytes } } as const;
  const entry = { id, url, rule: 'r1', bytesLength };
  try {
    await cache.change({ url, rule: 'r1', since: 0, decide: () => [entry], added });
    return 'kept';
  } catch (error) {
    return failureFrom(error).code;
  }
}

/** Stores responses of a size until one is refused; prints the reason, and how many it stored. */
async function fill(name: string, bytesLength: number): Promise<void> {
  let said = 'kept';
  let at = 0;
  for (; said === 'kept' && at < 2_000; at += 1) said = await put(`${name}-${at}`, bytesLength);
  process.stdout.write(`${name} ${at - 1} ${said}\n`);
}

await fill('short', 10_000);
await fill('long', 40_000);
const [row] = cache.read('http://a.example/short-0').rows;
const read = row === undefined ? undefined : cache.content(row)?.length;
process.stdout.write(`read ${read ?? 'nothing'}\n`);
await cache.close();
