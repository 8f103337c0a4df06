import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { ResponseStorage } from '../../../../src/modules/cache/storage/response-storage.ts';
import { openCache } from '../../../../src/modules/cache/storage/folder-cache.ts';
import { prepareCache } from '../../../../src/modules/cache/storage/environment.ts';
import type { CacheEntry, StoredEntry } from '../../../../src/modules/cache/storage/record.ts';
import { temporaryFolder } from '../../../folder.ts';

/** A stored response of a test. */
export interface Kept extends CacheEntry {
  readonly note?: string;
}

/** A cache in a folder of its own. */
export interface CacheRig {
  readonly folder: string;
  readonly cache: ResponseStorage<Kept>;
  /** Opens the same cache as another process does. */
  readonly another: () => ResponseStorage<Kept>;
  /** Stores a response instead of all others of its URL. */
  readonly put: (url: string, more?: PutOptions) => Promise<boolean>;
  /** The ids of the stored responses of a URL. */
  readonly ids: (url: string) => readonly string[];
  readonly row: (url: string) => StoredEntry<Kept>;
  readonly pass: (seconds: number) => void;
}

interface PutOptions {
  readonly id?: string;
  readonly rule?: string;
  readonly content?: Buffer;
  readonly since?: number;
}

/** Opens a cache for the time of a test. */
export async function startCache(
  t: TestContext,
  { bytesMax = 1e9, folder }: { readonly bytesMax?: number; readonly folder?: string } = {},
): Promise<CacheRig> {
  const place = folder ?? join(await temporaryFolder(t), 'cache');
  await prepareCache(place);
  let nowMs = Date.UTC(2026, 0, 2);
  let lastId = 0;
  const open = (): ResponseStorage<Kept> => {
    const cache = openCache<Kept>({ folder: place, bytesMax, now: () => nowMs });
    t.after(() => cache.close());
    return cache;
  };
  const cache = open();
  return {
    folder: place,
    cache,
    another: open,
    async put(url, { id = `id-${(lastId += 1)}`, rule = 'r1', content, since } = {}) {
      const bytes = content ?? Buffer.from(id);
      const entry = { id, url, rule, bytesLength: bytes.length };
      const record = await cache.change({
        url,
        rule,
        since: since ?? cache.epoch(),
        decide: () => [entry],
        added: { id, content: { kind: 'bytes', bytes } },
      });
      return record !== undefined;
    },
    ids: (url) => cache.read(url).rows.map(({ entry }) => entry.id),
    row: (url) => {
      const [row] = cache.read(url).rows;
      if (row === undefined) throw new Error(`no response is stored for ${url}`);
      return row;
    },
    pass: (seconds) => {
      nowMs += seconds * 1000;
    },
  };
}
