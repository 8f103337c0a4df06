import { fileChunkBytes } from '../../http/limits.ts';
import { KIB, MIB } from '../../values/units.ts';

/** The size of both buffers for a file that is many times larger. */
export const fileLargeChunkBytes = MIB;

/** All large buffers in use; further files have buffers of the usual size. */
export const fileLargeBuffersBytesMax = 64 * MIB;

/** Free large buffers that stay in memory for the next file. */
const fileSpareBuffersMax = 8;

/** All buffers in use; further files have buffers of the scarce size. */
export const fileBuffersBytesMax = 128 * MIB;
export const fileScarceChunkBytes = 16 * KIB;

/** Two buffers of one size, to send a part of a file. */
export interface FileBuffers {
  readonly pair: readonly [Buffer, Buffer];
  /**
   * Returns the buffers. `areIdle` means that no read and no write uses them any more, so that
   * another file can have them.
   */
  readonly release: (areIdle: boolean) => void;
}

/** The bytes of all buffers in use in this process. */
let held = 0;
/** Free large buffers: allocating them for each file keeps the garbage collector busy. */
const spare: Buffer[] = [];

/**
 * Returns buffers to send a number of bytes of a file. Large ones take less CPU time, because each
 * read is work for a thread and wakes the client. A client that does not read occupies its buffers,
 * so all files get small ones when many are in use.
 */
export function takeBuffers(bytes: number): FileBuffers {
  const size = Math.min(chunkBytes(bytes), bytes);
  held += 2 * size;
  const pair = [bufferOf(size), bufferOf(size)] as const;
  return {
    pair,
    release: (areIdle) => {
      held -= 2 * size;
      if (!areIdle || size !== fileLargeChunkBytes) return;
      spare.push(...pair.slice(0, fileSpareBuffersMax - spare.length));
    },
  };
}

function bufferOf(size: number): Buffer {
  const kept = size === fileLargeChunkBytes ? spare.pop() : undefined;
  return kept ?? Buffer.allocUnsafeSlow(size);
}

function chunkBytes(bytes: number): number {
  const isLarge = bytes > manyChunks * fileLargeChunkBytes;
  if (isLarge && held + 2 * fileLargeChunkBytes <= fileLargeBuffersBytesMax) {
    return fileLargeChunkBytes;
  }
  return held + 2 * fileChunkBytes > fileBuffersBytesMax ? fileScarceChunkBytes : fileChunkBytes;
}

/** A file with fewer large chunks gets smaller buffers. */
const manyChunks = 4;
