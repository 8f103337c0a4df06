import type { Readable } from 'node:stream';
import { LRUCache } from 'lru-cache';
import { SharedLimit, type Sharer } from '../../core/fair/shared-limit.ts';
import type { ByCoding, Coding } from '../../core/http/representation/negotiation.ts';
import { type CacheUse, cacheUse } from '../../core/report/memory-use.ts';
import { MIB } from '../../core/values/units.ts';
import {
  compressFast,
  compressFastSync,
  compressStream,
  isCompressedInline,
} from './compression.ts';
import { type PageCompressor, createPageCompressor } from './page-compressor.ts';

/** Fetched responses that are compressed at the same time; more are sent uncompressed. */
export const responsesCompressedAtOnceMax = 32;

/** Fetched content that was sent more than once, with its compressed forms. */
const compressedResponsesBytesMax = 32 * MIB;

/** How long a compressor of fetched content may hold back what the source has sent. */
const compressFlushMs = 20;

/** The compressors of a process. */
export interface Compressors {
  /** Compresses pages in memory, once. */
  readonly pages: PageCompressor;
  /** Compresses answers while they are sent. */
  readonly responses: ResponseCompressor;
}

/** Creates them with the limits of a server. */
export function createCompressors(): Compressors {
  return { pages: createPageCompressor(), responses: createResponseCompressor() };
}

/** Compresses fetched content while it is sent; limits how much one process does at a time. */
export interface ResponseCompressor {
  /** Compresses streamed content; undefined if too many responses are being compressed. */
  stream(content: Readable, coding: Coding, client: Sharer): Readable | undefined;
  /**
   * Compresses content that is in memory; undefined if it would not become smaller, or if too many
   * responses are being compressed and it is too long to be compressed synchronously. Caches the
   * result for a buffer that is sent again, such as one of the HTTP cache.
   */
  bytes(content: Buffer, coding: Coding, client: Sharer): Promise<Buffer | undefined>;
  /** The memory that cached results use now. */
  memory(): CacheUse;
}

/**
 * The compressed forms of content; in a coding that does not make it smaller, the content itself.
 */
type CompressedForms = Partial<ByCoding<Buffer>>;

/** Creates the compressor of a process. */
export function createResponseCompressor({
  atOnceMax = responsesCompressedAtOnceMax,
  cachedBytesMax = compressedResponsesBytesMax,
  flushMs = compressFlushMs,
}: {
  readonly atOnceMax?: number;
  readonly cachedBytesMax?: number;
  readonly flushMs?: number;
} = {}): ResponseCompressor {
  /** Buffers that were sent once: only a second time shows that caching is worth its memory. */
  const seen = new WeakSet<Buffer>();
  const cached = new LRUCache<Buffer, CompressedForms>({
    maxSize: cachedBytesMax,
    sizeCalculation: (forms, content) =>
      Object.values(forms).reduce((bytes, form) => bytes + form.length, content.length),
  });
  const running = new SharedLimit({
    what: 'answers to compress',
    held: 'long',
    max: atOnceMax,
  });

  /** Compressed bytes; the content itself if they are not fewer. */
  async function compress(content: Buffer, coding: Coding): Promise<Buffer> {
    try {
      const compressed = isCompressedInline(content, coding)
        ? compressFastSync(content, coding)
        : await compressFast(content, coding);
      return compressed.length < content.length ? compressed : content;
    } catch {
      // Not enough memory: it is sent uncompressed.
      return content;
    }
  }

  return {
    stream(content, coding, client) {
      const release = running.tryAcquire(client);
      if (release === undefined) return undefined;
      return compressStream(content, coding, flushMs).once('close', release);
    },
    memory: () => cacheUse('compressed fetched content', cached),
    async bytes(content, coding, client) {
      let compressed = cached.get(content)?.[coding];
      if (compressed === undefined) {
        const isInline = isCompressedInline(content, coding);
        const release = isInline ? undefined : running.tryAcquire(client);
        if (!isInline && release === undefined) return undefined;
        compressed = await compress(content, coding);
        release?.();
        if (seen.has(content)) {
          cached.set(content, { ...cached.peek(content), [coding]: compressed });
        }
        seen.add(content);
      }
      return compressed === content ? undefined : compressed;
    },
  };
}
