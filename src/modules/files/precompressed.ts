import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path/posix';
import type { DiskMount } from '../../core/config/config.ts';
import { undefinedIfForbidden, undefinedIfMissing } from '../../core/http/content/file-errors.ts';
import {
  type ByCoding,
  type Coding,
  codings,
  preferredCodings,
} from '../../core/http/representation/negotiation.ts';
import type { Fields } from '../../core/http/request.ts';

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

// These calls are synchronous because they read no content: the kernel answers them from memory in
// 2 µs, while the thread pool costs 30 µs of CPU time, and most requests for stored pages only
// learn here that no such file exists.

/** A file or folder that a mount may serve, with its status at that moment. */
export interface LocatedFile {
  /** Path below the root, as in the request. */
  readonly relativePath: string;
  /** Absolute path with all symlinks resolved. */
  readonly path: string;
  readonly stats: BigIntStats;
  /**
   * The mount's root with all symlinks resolved, which the file must not leave; undefined if the
   * mount follows symlinks out of its root.
   */
  readonly boundary: string | undefined;
}

/** An open regular file; the caller closes its descriptor. */
export interface OpenFile {
  readonly descriptor: number;
  readonly stats: BigIntStats;
}

type Root = Pick<DiskMount, 'root' | 'symlinks'> & {
  /** Absolute paths of files and folders that no request gets, whatever symbolic links say. */
  readonly privatePaths?: readonly string[];
};

/**
 * Finds a file or folder below a root; undefined if nothing is there, if it is private, or if the
 * mount does not follow the symlink that leads there. Throws `forbidden` if the server may not read
 * it, and `unavailable` if too many files are open.
 */
export function locate(
  { root, symlinks, privatePaths = [] }: Root,
  relativePath: string,
): LocatedFile | undefined {
  const requested = join(root, relativePath);
  return undefinedIfMissing(() => {
    // Reports a missing file without an exception, which costs ten times as much.
    if (statSync(requested, { throwIfNoEntry: false }) === undefined) return undefined;
    const path = realpathSync.native(requested);
    const boundary = symlinks === 'follow' ? undefined : realpathSync.native(root);
    if (boundary !== undefined && !isInside(boundary, path)) return undefined;
    if (symlinks === 'deny' && path !== join(boundary ?? root, relativePath)) return undefined;
    if (privatePaths.some((one) => isInside(one, path))) return undefined;
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return stats && { relativePath, path, stats, boundary };
  });
}

/** Finds a regular file as locate does; undefined for anything else. */
export function locateFile(root: Root, relativePath: string): LocatedFile | undefined {
  const located = locate(root, relativePath);
  return located?.stats.isFile() === true ? located : undefined;
}

/**
 * Opens a located regular file; undefined if another file has replaced it. It checks the open file
 * (outside Linux, its path once more), so a symlink that replaces the file after `locate` gains
 * nothing.
 * O_NONBLOCK keeps a FIFO from blocking the process.
 */
export function openLocated({ path, stats: seen, boundary }: LocatedFile): OpenFile | undefined {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const descriptor = undefinedIfMissing(() => openSync(path, flags));
  if (descriptor === undefined) return undefined;
  let stats: BigIntStats | undefined;
  try {
    stats = fstatSync(descriptor, { bigint: true });
    const same = stats.dev === seen.dev && stats.ino === seen.ino && stats.isFile();
    if (!same || (boundary !== undefined && !isStillInside(boundary, descriptor, path))) {
      stats = undefined;
    }
  } finally {
    if (stats === undefined) closeSync(descriptor);
  }
  return stats && { descriptor, stats };
}

/** A text that differs after every change of a file's content, inode or attributes. */
export function fileVersion({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}-${ino}-${size}-${mtimeNs}-${ctimeNs}`;
}

function isStillInside(boundary: string, descriptor: number, path: string): boolean {
  let actual: string | undefined;
  try {
    actual = readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // Only Linux has /proc/self/fd; other systems resolve the path once more.
    actual = undefinedIfMissing(() => realpathSync.native(path));
  }
  return actual !== undefined && isInside(boundary, actual);
}

function isInside(boundary: string, path: string): boolean {
  return path === boundary || path.startsWith(boundary === '/' ? '/' : `${boundary}/`);
}
