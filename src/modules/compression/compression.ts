import { type Readable, type Transform, pipeline } from 'node:stream';
import { promisify } from 'node:util';
import {
  type BrotliOptions,
  type ZstdOptions,
  brotliCompress,
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createGzip,
  createZstdCompress,
  gzip,
  gzipSync,
  zstdCompress,
  zstdCompressSync,
} from 'node:zlib';
import type { ByCoding, Coding } from '../../core/http/representation/negotiation.ts';
import { unpooled } from '../../core/values/json/prepared-json.ts';
import { KIB } from '../../core/values/units.ts';

/** Pages up to this size are compressed as well as possible, larger ones in reasonable time. */
const compressBestBytesMax = 256 * KIB;

/**
 * Fetched content up to this size is compressed synchronously. A page takes about 0.1 ms then, and
 * handing it to the thread pool costs more.
 */
const compressSyncBytesMax = { zstd: 64 * KIB, br: 16 * KIB, gzip: 32 * KIB } as const;

/** The window of a compressor of fetched content as a power of two: 512 KiB. */
const compressWindowLog = 19;

/** A compressor of node:zlib: `flush` writes out everything that it holds back. */
interface CompressionStream extends Transform {
  flush(kind: number, done: () => void): void;
}

/** `best` and `good` for small and large pages that are sent often, `fast` for fetched content. */
type Effort = 'best' | 'good' | 'fast';

/** The functions of one content coding. */
interface Codec {
  readonly compress: (bytes: Buffer, effort: Effort) => Promise<Buffer>;
  readonly compressSync: (bytes: Buffer) => Buffer;
  readonly stream: () => CompressionStream;
  /** The flush after which a decoder has all that was written. */
  readonly flushKind: number;
}

const gzipAsync = promisify(gzip);
const brotliAsync = promisify<Buffer, BrotliOptions, Buffer>(brotliCompress);
const zstdAsync = promisify<Buffer, ZstdOptions, Buffer>(zstdCompress);

const brotliQuality = { best: 11, good: 9, fast: 4 } as const;
const zstdLevel = { best: 19, good: 12, fast: 3 } as const;
/** The level of nginx: level 4 makes pages 6 % shorter, and takes half as much time again. */
const gzipLevel = { best: 9, good: 9, fast: 1 } as const;

const codecs: ByCoding<Codec> = {
  zstd: {
    compress: (bytes, effort) => zstdAsync(bytes, zstdOptions(effort, bytes.length)),
    compressSync: (bytes) =>
      zstdCompressSync(bytes, inOneChunk(bytes, zstdOptions('fast', bytes.length))),
    stream: () => createZstdCompress(zstdOptions('fast', undefined)),
    flushKind: constants.ZSTD_e_flush,
  },
  br: {
    compress: (bytes, effort) => brotliAsync(bytes, brotliOptions(effort, bytes.length)),
    compressSync: (bytes) =>
      brotliCompressSync(bytes, inOneChunk(bytes, brotliOptions('fast', bytes.length))),
    stream: () => createBrotliCompress(brotliOptions('fast', 0)),
    flushKind: constants.BROTLI_OPERATION_FLUSH,
  },
  gzip: {
    compress: (bytes, effort) => gzipAsync(bytes, { level: gzipLevel[effort] }),
    compressSync: (bytes) => gzipSync(bytes, inOneChunk(bytes, { level: gzipLevel.fast })),
    stream: () => createGzip({ level: gzipLevel.fast }),
    flushKind: constants.Z_SYNC_FLUSH,
  },
};

/**
 * Compresses a page that many clients will get, as well as its size allows, in Node's thread pool.
 * Rejects if there is not enough memory.
 */
export async function compressBest(bytes: Buffer, coding: Coding): Promise<Buffer> {
  const effort = bytes.length <= compressBestBytesMax ? 'best' : 'good';
  return unpooled(await codecs[coding].compress(bytes, effort));
}

/** Compresses fetched content quickly, in Node's thread pool. Rejects as compressBest does. */
export async function compressFast(bytes: Buffer, coding: Coding): Promise<Buffer> {
  return unpooled(await codecs[coding].compress(bytes, 'fast'));
}

/** Whether content is so short that compressing it costs less than handing it to a thread. */
export function isCompressedInline({ length }: Buffer, coding: Coding): boolean {
  return length <= compressSyncBytesMax[coding];
}

/** The synchronous form of compressFast. Throws where that rejects. */
export function compressFastSync(bytes: Buffer, coding: Coding): Buffer {
  return unpooled(codecs[coding].compressSync(bytes));
}

/**
 * Compresses a stream as fast as its reader reads. What the source has sent reaches the reader
 * after `flushMs` at the latest. The result fails if the source fails; destroying it destroys the
 * source.
 */
export function compressStream(source: Readable, coding: Coding, flushMs: number): Readable {
  const { stream, flushKind } = codecs[coding];
  const compressed = stream();
  let timer: NodeJS.Timeout | undefined;
  let isFlushing = false;
  const flush = (): void => {
    timer = undefined;
    // With a slow reader a flush takes long; the one that waits covers everything before it.
    if (isFlushing) return;
    isFlushing = true;
    compressed.flush(flushKind, () => {
      isFlushing = false;
    });
  };
  source.on('data', () => {
    timer ??= setTimeout(flush, flushMs);
  });
  pipeline(source, compressed, () => {
    clearTimeout(timer);
  });
  return compressed;
}

/**
 * Makes room for the whole result at once: one that is not smaller than its content is not used.
 */
function inOneChunk<Options extends object>(
  { length }: Buffer,
  options: Options,
): Options & { readonly chunkSize: number } {
  return { ...options, chunkSize: Math.max(length, constants.Z_MIN_CHUNK) };
}

function brotliOptions(effort: Effort, sizeHint: number): BrotliOptions {
  return {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: brotliQuality[effort],
      [constants.BROTLI_PARAM_SIZE_HINT]: sizeHint,
      ...(effort === 'fast' && { [constants.BROTLI_PARAM_LGWIN]: compressWindowLog }),
    },
  };
}

/** Levels up to 19 use a window of at most 8 MiB, which each client must support (RFC 9659 §3). */
function zstdOptions(effort: Effort, bytesLength: number | undefined): ZstdOptions {
  return {
    ...(bytesLength !== undefined && { pledgedSrcSize: bytesLength }),
    params: {
      [constants.ZSTD_c_compressionLevel]: zstdLevel[effort],
      ...(effort === 'fast' && { [constants.ZSTD_c_windowLog]: compressWindowLog }),
    },
  };
}
