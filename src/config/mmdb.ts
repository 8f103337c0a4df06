import { open } from 'node:fs/promises';
import type { Refused } from './values.ts';

/** What the metadata at the end of a database begin with (MMDB 2.0, Database Metadata). */
const marker = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');
/** The metadata are at most this long, by the same section. */
const metadataBytesMax = 131_072;

/**
 * Whether a file that can be read ends as a database of MaxMind's format does; if not, why, as the
 * end of a sentence.
 */
export async function findMarker(path: string): Promise<Refused | undefined> {
  await using file = await open(path);
  const { size } = await file.stat();
  const length = Math.min(size, metadataBytesMax);
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.includes(marker) ? undefined : { refused: "is no database of MaxMind's format" };
}
