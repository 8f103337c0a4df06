import { closeSync, type BigIntStats } from 'node:fs';
import type { DiskMount } from '../../core/config/config.ts';
import {
  codings,
  preferredCodings,
  type ByCoding,
  type Coding,
} from '../../core/http/representation/coding.ts';
import type { Fields } from '../../core/http/request.ts';
import { undefinedIfForbidden } from '../../core/http/content/file-errors.ts';
import { locateFile, openLocated, type LocatedFile } from './find-file.ts';

/** The extension that a precompressed file adds to the name of the original file. */
const extensions: ByCoding<string> = { zstd: '.zst', br: '.br', gzip: '.gz' };

/** One value for each coding that exists on disk. */
export type Precompressed<T> = Partial<ByCoding<T>>;

/**
 * Finds the precompressed files of a file, under the same rules of symlinks and hidden names;
 * undefined if there are none, or if the mount does not use them. Leaves out those that are older
 * than the file, since they hold an earlier content, empty ones, which are still to be written, and
 * unreadable ones.
 */
export function findPrecompressed(
  mount: DiskMount,
  file: LocatedFile,
): Precompressed<LocatedFile> | undefined {
  if (!mount.precompressed) return undefined;
  let precompressed: Partial<Record<Coding, LocatedFile>> | undefined;
  for (const coding of codings) {
    const located = findInCoding(mount, file, coding);
    if (located === undefined || unusableReason(located, file) !== undefined) continue;
    precompressed ??= {};
    precompressed[coding] = located;
  }
  return precompressed;
}

/** The value of the first coding that the request accepts (RFC 9110 §12.5.3) and that exists. */
export function choosePrecompressed<T>(
  precompressed: Precompressed<T> | undefined,
  fields: Fields,
): T | undefined {
  if (precompressed === undefined) return undefined;
  for (const coding of preferredCodings(fields['accept-encoding'])) {
    const found = precompressed[coding];
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Sentences for explain: which precompressed files are sent, and why others are not. */
export function precompressedNotes(mount: DiskMount, file: LocatedFile): readonly string[] {
  if (!mount.precompressed) return [];
  return codings.flatMap((coding) => {
    const located = findInCoding(mount, file, coding);
    if (located === undefined) return [];
    const name = located.relativePath.slice(located.relativePath.lastIndexOf('/') + 1);
    const reason = unusableReason(located, file);
    if (reason !== undefined) return [`${name} is not used: it is ${reason}.`];
    return canOpen(located)
      ? [`Clients that accept ${coding} get ${name}.`]
      : [`${name} is not used: the server is not allowed to read it.`];
  });
}

function canOpen(located: LocatedFile): boolean {
  const opened = undefinedIfForbidden(() => openLocated(located));
  if (opened !== undefined) closeSync(opened.descriptor);
  return opened !== undefined;
}

/** A forbidden file is skipped: the original can still be sent. */
function findInCoding(
  mount: DiskMount,
  { relativePath }: LocatedFile,
  coding: Coding,
): LocatedFile | undefined {
  return undefinedIfForbidden(() => locateFile(mount, relativePath + extensions[coding]));
}

/**
 * Why a precompressed file cannot hold the content of the original; undefined if it can. No coding
 * compresses anything to zero bytes, not even an empty file.
 */
export function unusableReason(
  precompressed: FileTimes,
  original: FileTimes,
): 'older than the file itself' | 'empty' | undefined {
  if (isOlder(precompressed, original)) return 'older than the file itself';
  return precompressed.stats.size === 0n ? 'empty' : undefined;
}

/**
 * Whether a file was written before another one. Compressors copy the time of the original, often
 * in whole seconds only, so such a time is compared by the second.
 */
function isOlder(one: FileTimes, other: FileTimes): boolean {
  const difference = other.stats.mtimeNs - one.stats.mtimeNs;
  if (one.stats.mtimeNs % secondNs !== 0n) return difference > 0n;
  return difference >= secondNs;
}

interface FileTimes {
  readonly stats: Pick<BigIntStats, 'mtimeNs' | 'size'>;
}

const secondNs = 1_000_000_000n;
