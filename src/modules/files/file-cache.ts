import { LRUCache } from 'lru-cache';
import { type CacheUse, cacheUse } from '../../core/report/memory-use.ts';
import { MIB } from '../../core/values/units.ts';
import { type CachedFile, cachedFileBytes } from './cached-file.ts';
import { fileCacheValidMs } from '../../core/http/limits.ts';
import type { NotFoundReason } from './mount-path.ts';

/** All files and listings in memory. */
const fileCacheBytesMax = 64 * MIB;

/** All keys of the "not found" cache. */
export const notFoundCacheCharactersMax = MIB;

/** Content of files in memory. Each value is valid for a short time after its last check. */
export interface FileCache<T> {
  /** The value of a key if it is still valid. */
  fresh(key: string): T | undefined;
  /** The value of a key, valid or not. */
  stale(key: string): T | undefined;
  /** Stores a value that the caller has just checked against the disk. */
  confirm(key: string, value: T): void;
  delete(key: string): void;
  /**
   * Loads a value and stores it; concurrent calls with the same key share one load. Deletes the key
   * if the load gives undefined. Rejects as `load` does.
   */
  load(key: string, load: () => Promise<T | undefined>): Promise<T | undefined>;
  /** The memory that the cache uses now. */
  memory(name: string): CacheUse;
  /** Waits for the running loads, then empties the cache. */
  close(): Promise<void>;
}

/** Creates a cache that holds up to `bytesMax` and evicts the least recently used values. */
export function createFileCache<T extends object>({
  bytesMax,
  bytesOf,
  validMs,
  now,
}: {
  readonly bytesMax: number;
  readonly bytesOf: (value: T) => number;
  /** How long a value is valid after its last check. */
  readonly validMs: number;
  readonly now: () => number;
}): FileCache<T> {
  const entries = new LRUCache<string, { readonly value: T; readonly checkedAtMs: number }>({
    maxSize: bytesMax,
    // The constant is about what the reply and the entry take besides the content.
    sizeCalculation: ({ value }, key) => bytesOf(value) + 2 * key.length + 1024,
  });
  const loads = new Map<string, Promise<T | undefined>>();

  async function loadAndStore(
    key: string,
    load: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    // The file may change while it is read: the value is as old as the start of its load.
    const checkedAtMs = now();
    try {
      const value = await load();
      if (value === undefined) entries.delete(key);
      else entries.set(key, { value, checkedAtMs });
      return value;
    } finally {
      loads.delete(key);
    }
  }

  return {
    fresh(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      const ageMs = now() - entry.checkedAtMs;
      return ageMs >= 0 && ageMs < validMs ? entry.value : undefined;
    },
    stale: (key) => entries.peek(key)?.value,
    confirm(key, value) {
      entries.set(key, { value, checkedAtMs: now() });
    },
    delete(key) {
      entries.delete(key);
    },
    load(key, load) {
      let pending = loads.get(key);
      if (pending === undefined) {
        pending = loadAndStore(key, load);
        loads.set(key, pending);
      }
      return pending;
    },
    memory: (name) => cacheUse(name, entries),
    async close() {
      await Promise.allSettled(loads.values());
      entries.clear();
    },
  };
}

/** Remembers for a short time at which paths a mount has nothing to serve. */
interface NotFoundCache {
  /** Why nothing is served under the key; undefined if the disk has to be checked. */
  get(key: string): NotFoundReason | undefined;
  set(key: string, reason: NotFoundReason): void;
}

/**
 * Creates a cache whose entries are valid for at most `validMs`. Most requests for stored and
 * fetched pages check the disk first, and a system call costs more than matching a rule. The whole
 * cache is cleared when its oldest entry expires or its keys take too much memory, which is cheaper
 * than a time for each entry.
 */
function createNotFoundCache({
  validMs,
  now,
}: {
  readonly validMs: number;
  readonly now: () => number;
}): NotFoundCache {
  const reasons = new Map<string, NotFoundReason>();
  let [oldestAtMs, characters] = [0, 0];

  function clear(): void {
    reasons.clear();
    characters = 0;
  }

  return {
    get(key) {
      if (reasons.size === 0) return undefined;
      const ageMs = now() - oldestAtMs;
      if (ageMs < 0 || ageMs >= validMs) clear();
      return reasons.get(key);
    },
    set(key, reason) {
      if (characters + key.length > notFoundCacheCharactersMax) clear();
      if (reasons.size === 0) oldestAtMs = now();
      if (!reasons.has(key)) characters += key.length;
      reasons.set(key, reason);
    },
  };
}

/** The caches that all mounts share. */
export interface DiskCaches {
  /** Small files and listings. */
  readonly files: FileCache<CachedFile>;
  readonly notFound: NotFoundCache;
}

/** Creates empty caches; `now` is in milliseconds. */
export function createDiskCaches(now: () => number): DiskCaches {
  const validMs = fileCacheValidMs;
  return {
    files: createFileCache<CachedFile>({
      bytesMax: fileCacheBytesMax,
      bytesOf: cachedFileBytes,
      validMs,
      now,
    }),
    notFound: createNotFoundCache({ validMs, now }),
  };
}
