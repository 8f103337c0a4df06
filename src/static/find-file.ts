import type { MountLoss } from '../model/explanation.ts';
import type { Place } from './mount-path.ts';
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
import type { DiskMount } from '../config/config.ts';
import { unlessAbsent } from './file-errors.ts';

// Looking at names and numbers of files is synchronous: the kernel answers it from memory in 2 µs,
// a hop to the thread pool costs 30 µs of CPU time, and most requests for stored pages end with the
// answer that no such file exists. Bytes are never read here.

/** A file or folder that a mount may serve, as it was when it was looked at. */
export interface Located {
  /** Path below the root, as it was asked for. */
  readonly below: string;
  /** The path behind all symlinks. */
  readonly path: string;
  readonly stats: BigIntStats;
  /**
   * The folder that holds it, behind all symlinks; undefined where a mount follows symlinks
   * anywhere.
   */
  readonly boundary: string | undefined;
}

/** An open regular file; whoever asked for it closes its descriptor. */
export interface OpenFile {
  readonly descriptor: number;
  readonly stats: BigIntStats;
}

type Root = Pick<DiskMount, 'root' | 'symlinks'>;

/**
 * Finds what a path below the root leads to; undefined where nothing is or a symlink leads where it
 * may not.
 */
export function locate({ root, symlinks }: Root, below: string): Located | undefined {
  const asked = join(root, below);
  return unlessAbsent(() => {
    // Says without an exception, which costs ten times as much, that nothing is there.
    if (statSync(asked, { throwIfNoEntry: false }) === undefined) return undefined;
    const path = realpathSync.native(asked);
    const boundary = symlinks === 'follow' ? undefined : realpathSync.native(root);
    if (boundary !== undefined && !isInside(boundary, path)) return undefined;
    if (symlinks === 'deny' && path !== join(boundary ?? root, below)) return undefined;
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return stats && { below, path, stats, boundary };
  });
}

/** Finds a regular file as locate does; undefined for anything else. */
export function locateFile(root: Root, below: string): Located | undefined {
  const located = locate(root, below);
  return located?.stats.isFile() === true ? located : undefined;
}

/**
 * Opens a located regular file; undefined when something else has taken its place since. What
 * counts is where the open file turns out to be, so a symlink slipped in between the look and the
 * opening gains nothing; and opening never waits for the other end of a FIFO.
 */
export function openLocated({ path, stats: seen, boundary }: Located): OpenFile | undefined {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const descriptor = unlessAbsent(() => openSync(path, flags));
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

/**
 * A text that is another one after every change of a file's content, name of its inode or
 * attributes.
 */
export function identityOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}-${ino}-${size}-${mtimeNs}-${ctimeNs}`;
}

function isStillInside(boundary: string, descriptor: number, path: string): boolean {
  let actual: string | undefined;
  try {
    actual = readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // Only Linux has this name for an open file; elsewhere the path is looked at once more.
    actual = unlessAbsent(() => realpathSync.native(path));
  }
  return actual !== undefined && isInside(boundary, actual);
}

function isInside(boundary: string, path: string): boolean {
  return path === boundary || path.startsWith(boundary === '/' ? '/' : `${boundary}/`);
}

/**
 * What a place below a mount's root comes to: a file, the final slash that is missing from a
 * folder's path, the folder's listing, or why nothing is served there.
 */
export type Finding = Located | 'slash' | 'listing' | FindingLoss;

/** Why nothing is served at a place. */
export type FindingLoss = Extract<
  MountLoss,
  'no_file' | 'not_a_file' | 'not_a_folder' | 'no_index'
>;

/**
 * Looks what a mount has at a place: the one decision of serving and explaining. Fails as locate
 * does.
 */
export function findAt(mount: DiskMount, { below, slash }: Place): Finding {
  const located = locate(mount, below);
  if (located === undefined) return 'no_file';
  if (located.stats.isFile()) return slash ? 'not_a_folder' : located;
  if (!located.stats.isDirectory()) return 'not_a_file';
  const index = findIndex(mount, below);
  if (index === undefined && !mount.listing) return 'no_index';
  return slash ? (index ?? 'listing') : 'slash';
}

function findIndex(mount: DiskMount, below: string): Located | undefined {
  for (const name of mount.index) {
    const file = locateFile(mount, below === '' ? name : `${below}/${name}`);
    if (file !== undefined) return file;
  }
  return undefined;
}
