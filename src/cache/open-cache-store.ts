import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { cacheReportMs } from '../model/limits.ts';
import type { Log } from '../observability/log.ts';
import { openCache } from './storage/folder-cache.ts';
import { prepareCache, settleCache } from './storage/prepare.ts';
import type { StoredResponse } from './cached-response.ts';
import { clockReader } from './clock.ts';
import { createCacheStore, type CacheStore } from './cache-store.ts';

/** What a configuration says of kept answers. */
interface CacheConfig {
  readonly server: Pick<Config['server'], 'data' | 'workers'>;
  readonly fetch: Pick<Config['fetch'], 'cacheBytesMax'>;
}

/** Where answers are kept, below the data folder. */
const cacheFolder = 'cache';

/**
 * Makes the place of kept answers in a data folder ready, before any process opens it. Rejects with
 * `unavailable`.
 */
export function prepareCacheStore(data: string): Promise<void> {
  return prepareCache(join(data, cacheFolder));
}

/** Notes that no process has kept answers open any more. */
export function settleCacheStore(data: string): Promise<void> {
  return settleCache(join(data, cacheFolder));
}

/** Opens the kept answers of a data folder; the log is told when they cannot be written. */
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
      log.warn({ err: error }, 'Fetched answers cannot be kept: the cache cannot be written.');
    },
  });
}
