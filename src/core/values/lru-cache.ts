import { LRUCache } from 'lru-cache';

/**
 * Creates an LRU cache for `max` entries, which expire after `ttl` milliseconds if that is given.
 * It uses `maxSize` with entries of size 1: with `max`, LRUCache allocates all memory at once, and
 * each start of a process takes ten milliseconds longer.
 */
export function createLruCache<V extends object | string | number | boolean>(
  max: number,
  { ttl = 0 }: { readonly ttl?: number } = {},
): LRUCache<string, V> {
  return new LRUCache<string, V>({
    maxSize: max,
    sizeCalculation: one,
    // A coarse clock is enough: LRUCache sets a timer for each reading of the clock.
    ...(ttl > 0 && { ttl, ttlResolution: 1_000 }),
  });
}

function one(): number {
  return 1;
}
