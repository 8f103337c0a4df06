import { fileChunkBytes } from '../../http/limits.ts';
import {
  fileBuffersBytesMax,
  fileLargeBuffersBytesMax,
  fileLargeChunkBytes,
  fileScarceChunkBytes,
  fileSpareBuffersMax,
} from './limits.ts';

/** Two buffers of one size, through which a part of a file is sent. */
export interface FileBuffers {
  readonly pair: readonly [Buffer, Buffer];
  /**
   * Gives them up. `areIdle` where nothing reads into them or writes from them any more: others may
   * have them then.
   */
  readonly release: (areIdle: boolean) => void;
}

/** Bytes of all that are in use in this process. */
let held = 0;
/** Large buffers that are free: allocating them for every file keeps the collector busy. */
const spare: Buffer[] = [];

/**
 * Buffers for so many bytes of a file: large ones cost less, for each is a turn of a thread that
 * reads and of a reader that is woken. A client that does not read holds on to its own: where many
 * do, everyone gets small ones.
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

/** Fewer large chunks than this are not worth their memory. */
const manyChunks = 4;
