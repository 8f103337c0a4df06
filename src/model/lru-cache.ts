import { LRUCache } from 'lru-cache';

/**
 * Remembers the `max` entries that were used last, of the kind that says nothing of its size, and
 * for `ttl` milliseconds where that is given. Room is made as entries come: told of `max`, LRUCache
 * makes all of it at once, and each start of a process would take ten milliseconds longer.
 */
export function createLruCache<V extends object | string | number | boolean>(
  max: number,
  { ttl = 0 }: { readonly ttl?: number } = {},
): LRUCache<string, V> {
  return new LRUCache<string, V>({
    maxSize: max,
    sizeCalculation: one,
    // It need not be exact: each look at the clock sets a timer.
    ...(ttl > 0 && { ttl, ttlResolution: 1_000 }),
  });
}

function one(): number {
  return 1;
}
