import { fileChunkBytes } from '../../http/limits.ts';
import { KIB, MIB } from '../../values/units.ts';

/** The size of a buffer for a client that reads quickly: each piece costs a read and a write. */
export const fileLargeChunkBytes = MIB;

/** All buffers in use; further ones are smaller, and beyond the second bound small. */
export const fileLargeBuffersBytesMax = 64 * MIB;
export const fileBuffersBytesMax = 128 * MIB;
export const fileScarceChunkBytes = 64 * KIB;
export const fileLeastChunkBytes = 16 * KIB;

/** Free buffers of a size that stay in memory for the next piece. */
const fileSpareBuffersMax = 8;

/** A buffer for one piece of a file. */
export interface FileBuffer {
  readonly bytes: Buffer;
  /**
   * Returns the buffer. `isIdle` means that no read and no write uses it any more, so that another
   * piece can have it.
   */
  readonly release: (isIdle: boolean) => void;
}

/** The bytes of all buffers in use in this process. */
let held = 0;
/** Free buffers by their size: allocating them for each piece keeps the garbage collector busy. */
const spare: ReadonlyMap<number, Buffer[]> = new Map([
  [fileChunkBytes, []],
  [fileLargeChunkBytes, []],
]);

/**
 * Returns a buffer for the next piece of a file that has this many bytes left. A client that does
 * not read occupies its buffer, so all get smaller ones when many are in use.
 */
export function takeBuffer(bytesLeft: number, readsQuickly: boolean): FileBuffer {
  const size = Math.min(chunkBytes(readsQuickly), bytesLeft);
  const free = spare.get(size);
  const bytes = free?.pop() ?? Buffer.allocUnsafeSlow(size);
  held += size;
  return {
    bytes,
    release: (isIdle) => {
      held -= size;
      if (isIdle && free !== undefined && free.length < fileSpareBuffersMax) free.push(bytes);
    },
  };
}

function chunkBytes(readsQuickly: boolean): number {
  const large = readsQuickly ? fileLargeChunkBytes : fileChunkBytes;
  if (held + large <= fileLargeBuffersBytesMax) return large;
  return held + fileScarceChunkBytes > fileBuffersBytesMax
    ? fileLeastChunkBytes
    : fileScarceChunkBytes;
}
