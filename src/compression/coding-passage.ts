import { LRUCache } from 'lru-cache';
import type { Readable } from 'node:stream';
import { cacheUse, type CacheUse } from '../observability/memory-use.ts';
import type { ByCoding, Coding } from '../http/coding.ts';
import { codedAtOnceMax, codedFlushMs, codedPassingHeldBytesMax } from '../model/limits.ts';
import { codeStream } from './coding-stream.ts';
import { compressInTurn, compressPassing, isCompressedInTurn } from './compression.ts';

/** Compresses content on its way to clients, so many answers at a time in a process. */
export interface CodingPassage {
  /** Content that arrives bit by bit; undefined where enough is being compressed already. */
  stream(content: Readable, coding: Coding): Readable | undefined;
  /**
   * Content that is there as a whole; undefined where it would not be smaller, or where enough is
   * being compressed already and it is too long to be compressed in its turn. Bytes that come by
   * again, as out of a cache, are remembered.
   */
  bytes(content: Buffer, coding: Coding): Promise<Buffer | undefined>;
  /** What is in memory of content that was compressed before. */
  memory(): CacheUse;
}

/** Content with what it came to in some codings: itself where that was not smaller. */
type Remembered = Partial<ByCoding<Buffer>>;

/** Makes the passage of a process. */
export function createCodingPassage({
  atOnceMax = codedAtOnceMax,
  heldBytesMax = codedPassingHeldBytesMax,
  flushMs = codedFlushMs,
}: {
  readonly atOnceMax?: number;
  readonly heldBytesMax?: number;
  readonly flushMs?: number;
} = {}): CodingPassage {
  const seen = new WeakSet<Buffer>();
  const remembered = new LRUCache<Buffer, Remembered>({
    maxSize: heldBytesMax,
    sizeCalculation: (codings, content) =>
      Object.values(codings).reduce((bytes, coded) => bytes + coded.length, content.length),
  });
  let atOnce = 0;

  /** Compressed bytes, or the same where that does not make them fewer. */
  async function code(content: Buffer, coding: Coding): Promise<Buffer> {
    try {
      const coded = isCompressedInTurn(content, coding)
        ? compressInTurn(content, coding)
        : await codeLater(content, coding);
      return coded.length < content.length ? coded : content;
    } catch {
      // There is no memory for it, and it goes out as it came.
      return content;
    }
  }

  async function codeLater(content: Buffer, coding: Coding): Promise<Buffer> {
    atOnce += 1;
    try {
      return await compressPassing(content, coding);
    } finally {
      atOnce -= 1;
    }
  }

  return {
    stream(content, coding) {
      if (atOnce >= atOnceMax) return undefined;
      atOnce += 1;
      const coded = codeStream(content, coding, flushMs);
      coded.once('close', () => {
        atOnce -= 1;
      });
      return coded;
    },
    memory: () => cacheUse('compressed fetched content', remembered),
    async bytes(content, coding) {
      let coded = remembered.get(content)?.[coding];
      if (coded === undefined) {
        if (atOnce >= atOnceMax && !isCompressedInTurn(content, coding)) return undefined;
        coded = await code(content, coding);
        if (seen.has(content)) {
          remembered.set(content, { ...remembered.peek(content), [coding]: coded });
        }
        seen.add(content);
      }
      return coded === content ? undefined : coded;
    },
  };
}
