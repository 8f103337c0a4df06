import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import {
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
  type BrotliOptions,
  type ZstdOptions,
} from 'node:zlib';
import type { ByCoding, Coding } from '../http/coding.ts';
import { ownBytes } from '../model/own-bytes.ts';
import { codedBestBytesMax, codedInTurnBytesMax, codedStreamWindowLog } from '../model/limits.ts';

/** A stream that compresses what is written to it, and can be told to hold nothing back. */
interface CodingStream extends Transform {
  flush(kind: number, done: () => void): void;
}

/** The effort that content is worth: small and sent often, large and sent often, or passing by. */
type Effort = 'best' | 'large' | 'passing';

/** How one content coding is made. */
interface Compression {
  readonly whole: (bytes: Buffer, effort: Effort) => Promise<Buffer>;
  /** The same for what passes by, before it returns. */
  readonly inTurn: (bytes: Buffer) => Buffer;
  /** Makes a stream for an answer that is sent once, on its way. */
  readonly stream: () => CodingStream;
  /** The kind of flush after which a reader has everything that was written. */
  readonly flushKind: number;
}

const gzipLater = promisify(gzip);
const brotliLater = promisify<Buffer, BrotliOptions, Buffer>(brotliCompress);
const zstdLater = promisify<Buffer, ZstdOptions, Buffer>(zstdCompress);

const brotliQuality = { best: 11, large: 9, passing: 4 } as const;
const zstdLevel = { best: 19, large: 12, passing: 3 } as const;
const gzipLevel = { best: 9, large: 9, passing: 4 } as const;

const compressions: ByCoding<Compression> = {
  zstd: {
    whole: (bytes, effort) => zstdLater(bytes, zstdOptions(effort, bytes.length)),
    inTurn: (bytes) => zstdCompressSync(bytes, inTurn(bytes, zstdOptions('passing', bytes.length))),
    stream: () => createZstdCompress(zstdOptions('passing', undefined)),
    flushKind: constants.ZSTD_e_flush,
  },
  br: {
    whole: (bytes, effort) => brotliLater(bytes, brotliOptions(effort, bytes.length)),
    inTurn: (bytes) =>
      brotliCompressSync(bytes, inTurn(bytes, brotliOptions('passing', bytes.length))),
    stream: () => createBrotliCompress(brotliOptions('passing', 0)),
    flushKind: constants.BROTLI_OPERATION_FLUSH,
  },
  gzip: {
    whole: (bytes, effort) => gzipLater(bytes, { level: gzipLevel[effort] }),
    inTurn: (bytes) => gzipSync(bytes, inTurn(bytes, { level: gzipLevel.passing })),
    stream: () => createGzip({ level: gzipLevel.passing }),
    flushKind: constants.Z_SYNC_FLUSH,
  },
};

/**
 * Compresses bytes that many readers will get, as well as their size allows, in Node's thread pool.
 * Rejects when memory for it is missing.
 */
export async function compressWhole(bytes: Buffer, coding: Coding): Promise<Buffer> {
  const effort = bytes.length <= codedBestBytesMax ? 'best' : 'large';
  return ownBytes(await compressions[coding].whole(bytes, effort));
}

/** Compresses bytes that are about to be sent, quickly; as compressWhole in all else. */
export async function compressPassing(bytes: Buffer, coding: Coding): Promise<Buffer> {
  return ownBytes(await compressions[coding].whole(bytes, 'passing'));
}

/** Whether bytes are so few that compressing them takes less than handing them to a thread. */
export function isCompressedInTurn({ length }: Buffer, coding: Coding): boolean {
  return length <= codedInTurnBytesMax[coding];
}

/** Does to such bytes what compressPassing does, before it returns. Throws where that rejects. */
export function compressInTurn(bytes: Buffer, coding: Coding): Buffer {
  return ownBytes(compressions[coding].inTurn(bytes));
}

/** A stream that compresses an answer on its way, with little memory. */
export function createCodingStream(coding: Coding): CodingStream {
  return compressions[coding].stream();
}

/** Lets a stream give out all that was written to it so far. */
export function flushCodingStream(stream: CodingStream, coding: Coding, done: () => void): void {
  stream.flush(compressions[coding].flushKind, done);
}

/** With room for a result that is smaller than what it is made of; any other is of no use. */
function inTurn<Options extends object>(
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
      ...(effort === 'passing' && { [constants.BROTLI_PARAM_LGWIN]: codedStreamWindowLog }),
    },
  };
}

/**
 * No level up to 19 looks back further than the 8 MiB that every reader has room for (RFC 9659 §3).
 */
function zstdOptions(effort: Effort, bytesLength: number | undefined): ZstdOptions {
  return {
    ...(bytesLength !== undefined && { pledgedSrcSize: bytesLength }),
    params: {
      [constants.ZSTD_c_compressionLevel]: zstdLevel[effort],
      ...(effort === 'passing' && { [constants.ZSTD_c_windowLog]: codedStreamWindowLog }),
    },
  };
}
