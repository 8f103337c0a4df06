import { fileBuffersBytesMax, fileChunkBytes, fileScarceChunkBytes } from '../model/limits.ts';

/** Two buffers of one size, through which a part of a file is sent. */
export interface FileBuffers {
  readonly pair: readonly [Buffer, Buffer];
  /** Gives them up. */
  readonly release: () => void;
}

/** Bytes of all that are in use in this process. */
let held = 0;

/**
 * Buffers for so many bytes of a file. A client that does not read holds on to its own: where many
 * do, everyone gets small ones.
 */
export function takeBuffers(bytes: number): FileBuffers {
  const isScarce = held + 2 * fileChunkBytes > fileBuffersBytesMax;
  const size = Math.min(isScarce ? fileScarceChunkBytes : fileChunkBytes, bytes);
  held += 2 * size;
  return {
    pair: [Buffer.allocUnsafeSlow(size), Buffer.allocUnsafeSlow(size)],
    release: () => {
      held -= 2 * size;
    },
  };
}
