import { pipeline, type Readable } from 'node:stream';
import type { Coding } from '../http/coding.ts';
import { createCodingStream, flushCodingStream } from './compression.ts';

/**
 * A stream's content in a coding, at the speed of its reader, who waits at most `flushMs` for what
 * the source has sent. It fails as the source fails; destroying it destroys the source.
 */
export function codeStream(source: Readable, coding: Coding, flushMs: number): Readable {
  const coded = createCodingStream(coding);
  let timer: NodeJS.Timeout | undefined;
  let isFlushing = false;
  const flush = (): void => {
    timer = undefined;
    // A slow reader holds a flush up, and one that waits will do for all that comes before it.
    if (isFlushing) return;
    isFlushing = true;
    flushCodingStream(coded, coding, () => {
      isFlushing = false;
    });
  };
  source.on('data', () => {
    timer ??= setTimeout(flush, flushMs);
  });
  pipeline(source, coded, () => {
    clearTimeout(timer);
  });
  return coded;
}
