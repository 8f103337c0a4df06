import { MIB } from '../values/units.ts';

/** Bytes that are passed on before the garbage collector frees the buffers that they came in. */
export const passedBytesPerCollection = 4 * MIB;
let passedBytes = 0;

/** The connection of a request. */
export interface ConnectionInfo {
  /** Whether the connection was used before: it has carried a response, or was idle. */
  hasAnswered: boolean;
  /** Whether it ended incompletely, see connection-end.ts. */
  readonly hasBrokenOff: boolean;
}

/**
 * Counts bytes of content that the server only passes on, and starts a collection of V8's young
 * generation after each `passedBytesPerCollection` of them. Node reads each piece of content into a
 * buffer outside V8's heap and frees it when V8 collects the small object for it. V8 by itself
 * collects after many objects, when their buffers already take hundreds of MiB. The process must
 * have been started with `--expose-gc` (bin/waymark.js).
 */
export function countPassedBytes(count: number): void {
  passedBytes += count;
  if (passedBytes < passedBytesPerCollection) return;
  passedBytes = 0;
  globalThis.gc?.({ type: 'minor' });
}
