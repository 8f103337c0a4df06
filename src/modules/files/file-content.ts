import { createHash } from 'node:crypto';
import { type BigIntStats, fstatSync } from 'node:fs';
import type { DiskMount } from '../../core/config/config.ts';
import { createFileSource, readBytes } from '../../core/http/content/file-source.ts';
import { type FieldList, withVary } from '../../core/http/reply.ts';
import { isCompressible } from '../../core/http/representation/mediatype.ts';
import type { Coding } from '../../core/http/representation/negotiation.ts';
import type { Representation } from '../../core/http/representation/represent.ts';
import { cachedFileBytesMax, compressedFileBytesMax, diskReadAttemptsMax } from './limits.ts';
import { mediaType } from './media-type.ts';
import type { LoadedContent } from './mount-replies.ts';
import { type OpenFile, fileVersion, locateFile, openLocated } from './precompressed.ts';

/**
 * The coarsest clock of a common file system (FAT) ticks every 2 s: a file that is written twice
 * within one tick has the same times afterwards.
 */
const clockTickMs = 2_000;

/**
 * How a file is negotiated: it is the `only` representation of its path on disk, the `identity`
 * (RFC 9110 §12.5.3) next to precompressed files or while it is compressed, or a precompressed one.
 */
export type FileVariant = 'only' | 'identity' | Coding;

/** The dependencies that make the representations of all files of a mount. */
export interface RepresentationOptions {
  /** The mount's own fields, for each variant. */
  readonly fields: Readonly<Record<FileVariant, FieldList>>;
  /** The media types that the mount gives to extensions. */
  readonly types: DiskMount['types'];
  /** The clock, milliseconds since 1970. */
  readonly now: () => number;
}

/** A file that is sent as a path's content. */
export interface FileToSend {
  /** The name that decides the media type: the original's, also for a precompressed file. */
  readonly name: string;
  readonly variant: FileVariant;
}

/** The fields of each variant, made of those that the mount sends with every file. */
export function fieldsByVariant(mountFields: FieldList): RepresentationOptions['fields'] {
  const identity = withVary(mountFields, 'Accept-Encoding');
  const coded = (coding: Coding): FieldList => ['Content-Encoding', coding, ...identity];
  return {
    only: mountFields,
    identity,
    zstd: coded('zstd'),
    br: coded('br'),
    gzip: coded('gzip'),
  };
}

/** Whether a file is small enough to be cached in memory: one that is compressed may be longer. */
export function fitsInMemory(
  mount: DiskMount,
  { size }: BigIntStats,
  { name, variant }: FileToSend,
): boolean {
  if (size <= cachedFileBytesMax) return true;
  return size <= compressedFileBytesMax && variant === 'only' && isCompressedFile(mount, name);
}

/** Whether the server compresses a file that has no precompressed files. */
export function isCompressedFile({ compress, types }: DiskMount, name: string): boolean {
  return compress && isCompressible(mediaType(name, types));
}

/**
 * Reads a small file below the root, so that bytes and validators belong together; undefined if it
 * is gone, large, or changes faster than it can be read. Throws `forbidden` if the server may not
 * read it, and `unavailable` if too many files are open.
 */
export async function readFileContent(
  mount: DiskMount,
  { relativePath, ...file }: FileToSend & { readonly relativePath: string },
  options: RepresentationOptions,
): Promise<(LoadedContent & Pick<OpenFile, 'stats'>) | undefined> {
  for (let attempt = 0; attempt < diskReadAttemptsMax; attempt += 1) {
    const located = locateFile(mount, relativePath);
    if (located === undefined || !fitsInMemory(mount, located.stats, file)) return undefined;
    const startedAtMs = options.now();
    const opened = openLocated(located);
    if (opened === undefined) continue;
    const { stats } = opened;
    const bytes = await readWhole(opened);
    if (bytes === undefined) continue;
    const settled = startedAtMs - Number(stats.ctimeMs) > clockTickMs;
    return {
      representation: representationOf(file, { stats, bytes, ...options }),
      bytes,
      stats,
      version: settled ? fileVersion(stats) : undefined,
    };
  }
  return undefined;
}

/**
 * The representation of a file. Its entity tag is a hash of size, times, inode and coding, and of
 * the bytes where the caller has them, because two writes within one tick of the file system's
 * clock leave the same times.
 */
export function representationOf(
  { name, variant }: FileToSend,
  {
    stats,
    bytes,
    fields,
    types,
    now,
  }: RepresentationOptions & { readonly stats: BigIntStats; readonly bytes?: Buffer },
): Representation {
  const { size, mtimeNs, ctimeNs, ino } = stats;
  const coding = variant === 'only' || variant === 'identity' ? '' : ` ${variant}`;
  const tag = createHash('sha256').update(`${size} ${mtimeNs} ${ctimeNs} ${ino}${coding}\n`);
  if (bytes !== undefined) tag.update(bytes);
  return {
    status: 200,
    contentType: mediaType(name, types),
    etag: `"${tag.digest('base64url').slice(0, 22)}"`,
    // A file's time may be in the future; Last-Modified must not be (RFC 9110 §8.8.2.1).
    lastModifiedMs: Math.min(Number(stats.mtimeMs), now()),
    sharesDate: variant !== 'only',
    fields: fields[variant],
    bytesLength: Number(size),
  };
}

/** Reads an open file and closes it; undefined if the file changes meanwhile. */
async function readWhole({ descriptor, stats }: OpenFile): Promise<Buffer | undefined> {
  const source = createFileSource(descriptor);
  try {
    const bytes = await readBytes(source, Number(stats.size));
    if (bytes === undefined) return undefined;
    const after = fstatSync(descriptor, { bigint: true });
    return fileVersion(after) === fileVersion(stats) ? bytes : undefined;
  } finally {
    await source.close();
  }
}
