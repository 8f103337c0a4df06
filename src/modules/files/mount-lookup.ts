import type { DiskMount } from '../../core/config/config.ts';
import type { MountLoss } from '../../core/pipeline/explanation.ts';
import { locate, locateFile, type LocatedFile } from './find-file.ts';
import { tryPaths, type MountPath } from './mount-path.ts';

/**
 * The answer of a mount to a path: a file, a redirect to another path of the same content, the
 * folder's listing, or the reason for no answer.
 */
export type MountLookup = LocatedFile | MountRedirect | 'listing' | NotFoundReason;

/** A redirect, by what it changes in the path (see redirectPath). */
interface MountRedirect {
  readonly redirect: 'add_slash' | 'drop_slash' | 'drop_extension' | 'drop_index';
}

/** Why a mount has nothing to serve at a path. */
export type NotFoundReason = Extract<
  MountLoss,
  'no_file' | 'not_a_file' | 'not_a_folder' | 'no_index'
>;

const extension = '.html';

/** Decides what a mount answers a path with, for visitors and for explain. Fails as locate does. */
export function lookUpInMount(mount: DiskMount, path: MountPath): MountLookup {
  const found = (mount.cleanUrls ? lookUpClean(mount, path) : undefined) ?? lookUp(mount, path);
  if (typeof found === 'object' || found === 'listing') return found;
  for (const other of tryPaths(mount, path)) {
    const file = locateFile(mount, other);
    if (file !== undefined) return file;
  }
  return found;
}

function lookUp(mount: DiskMount, { relativePath, trailingSlash }: MountPath): MountLookup {
  const located = locate(mount, relativePath);
  if (located === undefined) return 'no_file';
  if (located.stats.isFile()) return trailingSlash ? 'not_a_folder' : located;
  if (!located.stats.isDirectory()) return 'not_a_file';
  const index = findIndex(mount, relativePath);
  if (index === undefined && !mount.listing) return 'no_index';
  return trailingSlash ? (index ?? 'listing') : { redirect: 'add_slash' };
}

function findIndex(mount: DiskMount, relativePath: string): LocatedFile | undefined {
  for (const name of mount.index) {
    const file = locateFile(mount, relativePath === '' ? name : `${relativePath}/${name}`);
    if (file !== undefined) return file;
  }
  return undefined;
}

/**
 * What `clean_urls` changes: `/about` has the content of `about.html` or of the index of `about/`,
 * and the other paths of that content redirect to it. Undefined for all other paths. A path never
 * redirects to one with other content.
 */
function lookUpClean(
  mount: DiskMount,
  { relativePath, trailingSlash }: MountPath,
): MountLookup | undefined {
  if (relativePath === '') return undefined;
  const page = locateFile(mount, relativePath + extension);
  const located = locate(mount, relativePath);
  if (located?.stats.isFile() === true) {
    return trailingSlash ? undefined : otherPathOf(mount, relativePath);
  }
  const index = located?.stats.isDirectory() === true ? findIndex(mount, relativePath) : undefined;
  if (!trailingSlash) return page ?? index;
  if (page !== undefined && index !== undefined) return index;
  return (page ?? index) === undefined ? undefined : { redirect: 'drop_slash' };
}

/** The redirect from the path of a file to its clean path; undefined if it has none. */
function otherPathOf(mount: DiskMount, relativePath: string): MountRedirect | undefined {
  if (!relativePath.endsWith(extension)) return undefined;
  const clean = relativePath.slice(0, -extension.length);
  const folder = relativePath.slice(0, Math.max(0, relativePath.lastIndexOf('/')));
  if (findIndex(mount, folder)?.relativePath === relativePath) {
    const hasPage = folder !== '' && locateFile(mount, folder + extension) !== undefined;
    return hasPage ? undefined : { redirect: 'drop_index' };
  }
  if (clean === '' || clean.endsWith('/')) return undefined;
  return locate(mount, clean)?.stats.isFile() === true ? undefined : { redirect: 'drop_extension' };
}

/** The path that a redirect leads to, from the path of the request. */
export function redirectPath(
  { path: prefix }: Pick<DiskMount, 'path'>,
  { redirect }: MountRedirect,
  path: string,
): string {
  switch (redirect) {
    case 'add_slash':
      return `${path}/`;
    case 'drop_slash':
      return path.slice(0, -1);
    case 'drop_extension':
      return path.slice(0, -extension.length);
    case 'drop_index': {
      const folder = path.slice(0, path.lastIndexOf('/'));
      return folder.length < prefix.length ? prefix : folder;
    }
  }
}
