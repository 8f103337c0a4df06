import type { LRUCache } from 'lru-cache';
import type { Metric } from './metrics.ts';

/** What one cache of this process holds at a moment, as `server.status` and the metrics say it. */
export interface CacheUse {
  readonly name: string;
  readonly entries: number;
  /** What the entries are counted as: their content, and an estimate of what surrounds it. */
  readonly bytes: number;
  readonly bytes_max: number;
}

/** Memory of this process, in bytes. */
export interface MemoryUse {
  readonly resident_bytes: number;
  /** V8's heap: what is in use of it. */
  readonly heap_bytes: number;
  /** Buffers outside V8's heap. */
  readonly external_bytes: number;
  readonly caches: readonly CacheUse[];
}

/** What a cache holds that is bounded by `maxSize`, counted in bytes. */
export function cacheUse(
  name: string,
  cache: Pick<LRUCache<never, never>, 'size' | 'calculatedSize' | 'maxSize'>,
): CacheUse {
  return {
    name,
    entries: cache.size,
    bytes: cache.calculatedSize,
    bytes_max: cache.maxSize,
  };
}

/** Several caches of one kind as one. */
export function joinedUse(name: string, uses: readonly CacheUse[]): CacheUse {
  const sum = (of: (use: CacheUse) => number): number =>
    uses.reduce((total, use) => total + of(use), 0);
  return {
    name,
    entries: sum(({ entries }) => entries),
    bytes: sum(({ bytes }) => bytes),
    bytes_max: sum(({ bytes_max }) => bytes_max),
  };
}

/** The memory of this process, with the caches that it has. */
export function memoryUse(caches: readonly CacheUse[]): MemoryUse {
  const { rss, heapUsed, external } = process.memoryUsage();
  return { resident_bytes: rss, heap_bytes: heapUsed, external_bytes: external, caches };
}

/** Memory as metrics; the resident memory is among those of the process. */
export function memoryMetrics({
  heap_bytes,
  external_bytes,
  caches,
}: MemoryUse): readonly Metric[] {
  const gauge = (name: string, help: string, samples: Metric['samples']): Metric => ({
    name,
    type: 'gauge',
    help,
    samples,
  });
  return [
    gauge('waymark_heap_bytes', "V8's heap: what is in use of it.", [
      { labels: {}, value: heap_bytes },
    ]),
    gauge('waymark_external_bytes', "Buffers outside V8's heap.", [
      { labels: {}, value: external_bytes },
    ]),
    gauge(
      'waymark_memory_cache_bytes',
      'What each cache in memory holds.',
      caches.map(({ name, bytes }) => ({ labels: { cache: name }, value: bytes })),
    ),
  ];
}
