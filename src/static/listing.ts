import { opendirSync, type BigIntStats } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path/posix';
import type { DiskMount } from '../config/config.ts';
import { canonicalPath, encodePath } from '../model/path.ts';
import { Failure } from '../model/failure.ts';
import { diskAttemptsMax, listingEntriesMax } from '../model/limits.ts';
import { unlessAbsent, unlessAbsentLater } from './file-errors.ts';
import { isServableName } from './mount-path.ts';
import { locate } from './find-file.ts';

/** What a folder holds, folders first, in the order in which people count and spell. */
export interface Listing {
  /** Canonical path of the folder, with its final slash. */
  readonly path: string;
  readonly entries: readonly ListingEntry[];
  /** Whether the folder holds more than is listed. */
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
 * Reads a folder below the root that a request path names; undefined when there is none. Fails as
 * unlessAbsent does, and with `unavailable` when the folder never stays the same while it is read.
 */
export async function readListing(
  mount: DiskMount,
  { below, path }: { readonly below: string; readonly path: string },
): Promise<Listing | undefined> {
  for (let attempt = 0; attempt < diskAttemptsMax; attempt += 1) {
    const before = locate(mount, below);
    if (before?.stats.isDirectory() !== true) return undefined;
    const found = await unlessAbsentLater(() => readEntries(mount, below, before.path));
    // The folder that was read is the one that may be: no symlink took its place meanwhile.
    const after = locate(mount, below);
    if (after?.path === before.path && after.stats.ino === before.stats.ino)
      return found && { path, ...found };
  }
  throw new Failure('unavailable', 'This folder is being replaced; try again in a moment.', {
    retryAfterSeconds: 1,
  });
}

/** Whether readListing would have a folder to read; opens it only. Fails as unlessAbsent does. */
export function canList(mount: DiskMount, below: string): boolean {
  const located = locate(mount, below);
  if (located?.stats.isDirectory() !== true) return false;
  const opened = unlessAbsent(() => opendirSync(located.path));
  opened?.closeSync();
  return opened !== undefined;
}

async function readEntries(
  mount: DiskMount,
  below: string,
  path: string,
): Promise<Omit<Listing, 'path'>> {
  const names: string[] = [];
  let truncated = false;
  for await (const { name } of await opendir(path, { bufferSize: 256 })) {
    if (!isServableName(name, mount.dotfiles) || !isReachable(name)) continue;
    truncated = names.length === listingEntriesMax;
    if (truncated) break;
    names.push(name);
  }
  const entries: ListingEntry[] = [];
  while (names.length > 0) {
    // In slices, so that a large folder leaves the thread pool to others now and then.
    const slice = names.splice(-lookedAtOnce);
    const looked = await Promise.all(slice.map((name) => readEntry(mount, { below, path, name })));
    entries.push(...looked.filter((entry) => entry !== undefined));
  }
  return { entries: entries.sort(compareEntries), truncated };
}

const lookedAtOnce = 128;

/**
 * An entry that would be served if it were asked for; undefined for any other, and for what has
 * just gone.
 */
async function readEntry(
  mount: DiskMount,
  { below, path, name }: { readonly below: string; readonly path: string; readonly name: string },
): Promise<ListingEntry | undefined> {
  try {
    const stats = await lstat(join(path, name), { bigint: true });
    if (!stats.isSymbolicLink()) return describe(name, stats);
    const target = locate(mount, join(below, name));
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
 * Whether the door lets a request for this name in; a name that is not UTF-8 has lost itself
 * already.
 */
function isReachable(name: string): boolean {
  return !name.includes('\ufffd') && canonicalPath(encodePath(`/${name}`)) === `/${name}`;
}

const spelling = new Intl.Collator('en', { numeric: true });

function compareEntries(one: ListingEntry, other: ListingEntry): number {
  if (one.type !== other.type) return one.type === 'directory' ? -1 : 1;
  return spelling.compare(one.name, other.name) || (one.name < other.name ? -1 : 1);
}
