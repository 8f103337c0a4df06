import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
  type BigIntStats,
} from 'node:fs';
import { join } from 'node:path/posix';
import type { DiskMount } from '../../core/config/config.ts';
import { undefinedIfMissing } from '../../core/http/content/file-errors.ts';

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
