import { type BigIntStats, opendirSync } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path/posix';
import type { DiskMount } from '../../core/config/config.ts';
import {
  undefinedIfMissing,
  undefinedIfMissingAsync,
} from '../../core/http/content/file-errors.ts';
import { Failure } from '../../core/values/failure.ts';
import { canonicalPath, encodePath, pathInFolder } from '../../core/values/path.ts';
import { diskReadAttemptsMax, listingEntriesMax } from './limits.ts';
import { isMountFile, isServableName } from './mount-path.ts';
import { locate } from './precompressed.ts';

/** Entries of a folder whose file status is read at the same time. */
const listingStatsAtOnceMax = 128;

/** The entries of a folder: folders first, then by name, with numbers in numerical order. */
export interface Listing {
  /** Canonical path of the folder, with its final slash. */
  readonly path: string;
  readonly entries: readonly ListingEntry[];
  /** Whether the folder has more entries than the listing. */
  readonly truncated: boolean;
}

/** A file or folder of a listing. */
export interface ListingEntry {
  readonly name: string;
  readonly type: 'file' | 'directory';
  /** Bytes; null for a folder. */
  readonly size: number | null;
  /** ISO 8601, UTC. */
  readonly modified: string;
}

/**
 * Reads the folder of a request path; undefined if there is none. Fails as undefinedIfMissing does,
 * and with `unavailable` if another folder replaces it each time while it is read.
 */
export async function readListing(
  mount: DiskMount,
  { relativePath, path }: { readonly relativePath: string; readonly path: string },
): Promise<Listing | undefined> {
  const found = await readFolder(mount, relativePath, (folder) =>
    readEntries(mount, relativePath, folder),
  );
  return found && { path, ...found };
}

/**
 * Reads a folder below the root of a mount, by its absolute path; undefined if there is none. Fails
 * as readListing does.
 */
export async function readFolder<T>(
  mount: DiskMount,
  relativePath: string,
  read: (folder: string) => Promise<T>,
): Promise<T | undefined> {
  for (let attempt = 0; attempt < diskReadAttemptsMax; attempt += 1) {
    const before = locate(mount, relativePath);
    if (before?.stats.isDirectory() !== true) return undefined;
    const found = await undefinedIfMissingAsync(() => read(before.path));
    // The path still leads to the same folder: no symlink replaced it while it was read.
    const after = locate(mount, relativePath);
    if (after?.path === before.path && after.stats.ino === before.stats.ino) return found;
  }
  throw new Failure('unavailable', 'This folder is being replaced; try again in a moment.', {
    retryAfterSeconds: 1,
  });
}

/** Whether readListing can read a folder; opens it only. Fails as undefinedIfMissing does. */
export function canList(mount: DiskMount, relativePath: string): boolean {
  const located = locate(mount, relativePath);
  if (located?.stats.isDirectory() !== true) return false;
  const opened = undefinedIfMissing(() => opendirSync(located.path));
  opened?.closeSync();
  return opened !== undefined;
}

async function readEntries(
  mount: DiskMount,
  relativePath: string,
  path: string,
): Promise<Omit<Listing, 'path'>> {
  const names: string[] = [];
  let truncated = false;
  for await (const { name } of await opendir(path, { bufferSize: 256 })) {
    if (!isServableName(name, mount.dotfiles) || !isReachable(name)) continue;
    if (isMountFile(mount, relativePath === '' ? name : `${relativePath}/${name}`)) continue;
    truncated = names.length === listingEntriesMax;
    if (truncated) break;
    names.push(name);
  }
  const entries: ListingEntry[] = [];
  while (names.length > 0) {
    // In slices, so that one large folder does not keep the thread pool busy.
    const slice = names.splice(-listingStatsAtOnceMax);
    const found = await Promise.all(
      slice.map((name) => readEntry(mount, { relativePath, path, name })),
    );
    entries.push(...found.filter((entry) => entry !== undefined));
  }
  return { entries: entries.sort(compareEntries), truncated };
}

/** An entry that the mount would serve; undefined for any other, and for one that is gone. */
async function readEntry(
  mount: DiskMount,
  {
    relativePath,
    path,
    name,
  }: { readonly relativePath: string; readonly path: string; readonly name: string },
): Promise<ListingEntry | undefined> {
  try {
    const stats = await lstat(join(path, name), { bigint: true });
    if (!stats.isSymbolicLink()) return describe(name, stats);
    const target = locate(mount, join(relativePath, name));
    return target && describe(name, target.stats);
  } catch {
    return undefined;
  }
}

function describe(name: string, stats: BigIntStats): ListingEntry | undefined {
  const modifiedMs = Math.min(Math.max(Number(stats.mtimeMs), 0), lastMs);
  const modified = new Date(modifiedMs).toISOString();
  if (stats.isDirectory()) return { name, type: 'directory', size: null, modified };
  return stats.isFile() ? { name, type: 'file', size: Number(stats.size), modified } : undefined;
}

const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59);

/**
 * Whether a request can name this file. Node replaces bytes of a name that are not UTF-8 by U+FFFD,
 * so such a name leads nowhere.
 */
export function isReachable(name: string): boolean {
  const path = pathInFolder('/', name);
  return !name.includes('\ufffd') && canonicalPath(encodePath(path)) === path;
}

const nameOrder = new Intl.Collator('en', { numeric: true });

function compareEntries(one: ListingEntry, other: ListingEntry): number {
  if (one.type !== other.type) return one.type === 'directory' ? -1 : 1;
  return nameOrder.compare(one.name, other.name) || (one.name < other.name ? -1 : 1);
}
