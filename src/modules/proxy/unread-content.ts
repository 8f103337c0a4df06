import { Readable } from 'node:stream';
import type { SourceResponse } from '../../core/outbound/exchange.ts';

/** Content of checks and mirrors, which nobody wants, that is read to keep its connection. */
const unwantedContentBytesMax = 64 * 1024;

/**
 * Reads content that nobody wants, so that its connection can be used again; aborts long content.
 * Resolves when it has ended.
 */
export function skipContent(answer: SourceResponse): Promise<void> {
  const content = answer.content();
  if (!(content instanceof Readable)) return Promise.resolve();
  let bytes = 0;
  content.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > unwantedContentBytesMax) content.destroy();
  });
  return new Promise((resolve) => {
    content.once('close', resolve);
  });
}
