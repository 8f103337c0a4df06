import { join } from 'node:path';
import type { Config } from '../../core/config/config.ts';
import type { Log } from '../../core/report/log.ts';
import { type CacheStore, createCacheStore } from './cache-store.ts';
import type { StoredResponse } from './cached-response.ts';
import { clockReader } from './freshness.ts';
import { prepareCache, requireSharedCache, settleCache } from './storage/environment.ts';
import { openCache } from './storage/folder-cache.ts';

/** The shortest time between two log lines that say that the cache cannot be written. */
const cacheReportMs = 60_000;

/** The configuration of the cache. */
interface CacheConfig {
  readonly server: Pick<Config['server'], 'data' | 'workers'>;
  readonly fetch: Pick<Config['fetch'], 'cacheBytesMax'>;
}

/** The folder of the cache in the data folder. */
const cacheFolder = 'cache';

/** Prepares the cache folder before any process opens it. Rejects with `unavailable`. */
export function prepareCacheStore(data: string): Promise<void> {
  return prepareCache(join(data, cacheFolder));
}

/** Checks that the cache can be shared with the process that has it open; rejects if it cannot. */
export function shareCacheStore(data: string): Promise<void> {
  return requireSharedCache(join(data, cacheFolder));
}

/** Records that all processes have closed the cache. */
export function settleCacheStore(data: string): Promise<void> {
  return settleCache(join(data, cacheFolder));
}

/** Opens the cache of a data folder. Logs a warning when it cannot be written. */
export function openCacheStore(
  { server: { data, workers }, fetch: { cacheBytesMax: bytesMax } }: CacheConfig,
  {
    now,
    uptimeMs,
    log,
  }: { readonly now: () => number; readonly uptimeMs: () => number; readonly log: Log },
): CacheStore {
  let reportedMs = -Infinity;
  return createCacheStore({
    cache: openCache<StoredResponse>({ folder: join(data, cacheFolder), bytesMax, now }),
    readClock: clockReader(now, uptimeMs),
    isShared: workers > 1,
    report(error) {
      if (now() - reportedMs < cacheReportMs) return;
      reportedMs = now();
      log.warn({ err: error }, 'Cannot store fetched responses: writing to the cache failed.');
    },
  });
}
