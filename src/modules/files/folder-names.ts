import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join } from 'node:path/posix';
import type { DiskMount } from '../../core/config/config.ts';
import {
  undefinedIfForbidden,
  undefinedIfForbiddenAsync,
} from '../../core/http/content/file-errors.ts';
import { type CanonicalPath, pathInFolder } from '../../core/values/path.ts';
import { listingEntriesMax } from './limits.ts';
import { isReachable, readFolder } from './listing.ts';
import { lookUpInMount, resolveMountPath } from './mount-path.ts';
import { locate } from './precompressed.ts';

/** A name directly below a path that a mount serves. */
export interface FolderName {
  /** With a `/` at its end for a folder; empty for the path itself. */
  readonly name: string;
  readonly mount: string;
}

/** The names of all mounts directly below a path. */
export interface FolderNames {
  /** In the order of their bytes; each is that of the first mount that has it. */
  readonly names: readonly FolderName[];
  /** Whether a folder has more names than are read of it. */
  readonly isTruncated: boolean;
  /** The mounts that have the folder, but whose names the caller may not see. */
  readonly hidden: readonly string[];
}

/** A path of an origin, up to a `/`. */
interface FolderPlace {
  readonly origin: string;
  readonly path: string;
}

/**
 * The files and folders directly below a path that the mounts of exactly this origin serve, by the
 * same rules as for visitors. A caller who does not see all gets the names in a folder only if the
 * mount lists them to visitors, too. Fails as readListing does.
 */
export async function namesBelow(
  mounts: readonly DiskMount[],
  { origin, path }: FolderPlace,
  { seesAll }: { readonly seesAll: boolean },
): Promise<FolderNames> {
  const found = new Map<string, FolderName>();
  const hidden: string[] = [];
  let isTruncated = false;
  for (const mount of mounts) {
    if (mount.origin !== origin) continue;
    const read = await namesOfMount(mount, path, seesAll);
    if (read === 'hidden') hidden.push(mount.name);
    else if (read !== undefined) {
      isTruncated ||= read.isTruncated;
      for (const name of read.names) {
        if (!found.has(name)) found.set(name, { name, mount: mount.name });
      }
    }
  }
  const names = [...found.values()].map((one) => ({ one, bytes: Buffer.from(one.name) }));
  names.sort((one, other) => Buffer.compare(one.bytes, other.bytes));
  return { names: names.map(({ one }) => one), isTruncated, hidden };
}

interface ReadNames {
  readonly names: readonly string[];
  readonly isTruncated: boolean;
}

async function namesOfMount(
  mount: DiskMount,
  path: string,
  seesAll: boolean,
): Promise<ReadNames | 'hidden' | undefined> {
  if (mount.path.startsWith(path) && mount.path !== path) {
    const rest = mount.path.slice(path.length);
    return { names: [rest.slice(0, rest.indexOf('/') + 1)], isTruncated: false };
  }
  const place = path.startsWith(mount.path)
    ? resolveMountPath(mount, path as CanonicalPath)
    : undefined;
  if (place?.trailingSlash !== true) return undefined;
  const { relativePath } = place;
  // A folder that the server may not read has nothing to show.
  const answer = undefinedIfForbidden(() => lookUpInMount(mount, place)) ?? 'no_file';
  if (answer === 'no_file' || answer === 'not_a_file' || answer === 'not_a_folder') {
    return undefined;
  }
  const own = answer === 'no_index' ? [] : [''];
  if (!seesAll && answer !== 'listing') return 'hidden';
  const read = await undefinedIfForbiddenAsync(() =>
    readFolder(mount, relativePath, (folder) => readNames(mount, { relativePath, path, folder })),
  );
  return { names: [...own, ...(read?.names ?? [])], isTruncated: read?.isTruncated === true };
}

async function readNames(
  mount: DiskMount,
  place: { readonly relativePath: string; readonly path: string; readonly folder: string },
): Promise<ReadNames> {
  const { relativePath, path, folder } = place;
  const names: string[] = [];
  for await (const entry of await opendir(folder, { bufferSize: 256 })) {
    const { name } = entry;
    const named = pathInFolder(path, name);
    if (resolveMountPath(mount, named) === undefined || !isReachable(name)) continue;
    if (names.length === listingEntriesMax) return { names, isTruncated: true };
    const type = entryType(mount, join(relativePath, name), entry);
    const segment = named.slice(path.length);
    if (type !== undefined) names.push(type === 'folder' ? `${segment}/` : segment);
  }
  return { names, isTruncated: false };
}

/** The type of an entry that the mount serves; it follows a symlink only as requests do. */
function entryType(
  mount: DiskMount,
  relativePath: string,
  entry: Dirent,
): 'file' | 'folder' | undefined {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'folder';
  // Some file systems do not say the type with the name.
  const stats = undefinedIfForbidden(() => locate(mount, relativePath))?.stats;
  if (stats?.isFile() === true) return 'file';
  return stats?.isDirectory() === true ? 'folder' : undefined;
}
