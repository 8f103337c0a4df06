import type { LRUCache } from 'lru-cache';
import type { Metric } from './metrics.ts';

/** The current size of a cache of this process, for `server.status` and the metrics. */
export interface CacheUse {
  readonly name: string;
  readonly entries: number;
  /** The bytes of the entries: their content, and an estimate of their overhead. */
  readonly bytes: number;
  readonly bytes_max: number;
}

/** Memory of this process, in bytes. */
export interface MemoryUse {
  readonly resident_bytes: number;
  /** The used part of V8's heap. */
  readonly heap_bytes: number;
  /** Buffers outside V8's heap. */
  readonly external_bytes: number;
  readonly caches: readonly CacheUse[];
}

/** The size of a cache whose `maxSize` is in bytes. */
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

/** The sum of several caches of one kind. */
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

/** The memory of this process and its caches. */
export function memoryUse(caches: readonly CacheUse[]): MemoryUse {
  const { rss, heapUsed, external } = process.memoryUsage();
  return { resident_bytes: rss, heap_bytes: heapUsed, external_bytes: external, caches };
}

/** The metrics of memory, without the resident memory, which processMetrics has. */
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
    gauge('waymark_heap_bytes', "The used part of V8's heap.", [{ labels: {}, value: heap_bytes }]),
    gauge('waymark_external_bytes', "Buffers outside V8's heap.", [
      { labels: {}, value: external_bytes },
    ]),
    gauge(
      'waymark_memory_cache_bytes',
      'Bytes of each cache in memory.',
      caches.map(({ name, bytes }) => ({ labels: { cache: name }, value: bytes })),
    ),
  ];
}
