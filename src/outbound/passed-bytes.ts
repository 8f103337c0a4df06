import { passedBytesPerCollection } from './limits.ts';

let passedBytes = 0;

/**
 * To be told of bytes that a connection has brought and that are only passed on. Node reads each
 * piece of them into a buffer of its own outside V8's heap, which is freed when the small object
 * that stands for it is collected: V8 looks for such objects when there are many of them, by when
 * their buffers may take hundreds of MiB. So they are looked for by the bytes, where the process
 * was started with a way to do so (bin/waymark.js).
 */
export function notePassedBytes(count: number): void {
  passedBytes += count;
  if (passedBytes < passedBytesPerCollection) return;
  passedBytes = 0;
  globalThis.gc?.({ type: 'minor' });
}
