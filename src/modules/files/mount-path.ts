import { coversOrigin } from '../../core/values/network/origin-pattern.ts';
import type { DiskMount } from '../../core/config/config.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import type { MountLoss } from '../../core/pipeline/explanation.ts';
import { type CanonicalPath, pathOfText, textOfPath } from '../../core/values/path.ts';
import { type LocatedFile, locate, locateFile } from './precompressed.ts';

const extension = '.html';

/** A name of a file: NAME_MAX of Linux. */
const fileNameBytesMax = 255;

/** A request path relative to a mount's root folder. */
export interface MountPath {
  /** Path below the root without slashes at its ends; empty for the root itself. */
  readonly relativePath: string;
  /** Whether the path ends with a slash, so that it names a folder. */
  readonly trailingSlash: boolean;
}

/** The parts of a mount that decide which paths it serves. */
type MountedFolder = Pick<DiskMount, 'path' | 'dotfiles'> &
  Partial<Pick<DiskMount, 'redirects' | 'headersFile'>>;

/**
 * Maps a canonical request path to a path below a mount's root; undefined if the mount serves no
 * such path: it has an empty segment, a hidden name, or one that no file can have, or it names the
 * file of the mount's redirects or header fields. The site's `/.well-known` is never hidden (RFC
 * 8615 §3).
 */
export function resolveMountPath(
  { path: prefix, dotfiles, redirects, headersFile }: MountedFolder,
  path: CanonicalPath,
): MountPath | undefined {
  const rest = textOfPath(path.slice(prefix.length));
  if (rest === undefined) return undefined;
  if (rest === '') return { relativePath: '', trailingSlash: path.endsWith('/') };
  const trailingSlash = rest.endsWith('/');
  const relativePath = trailingSlash ? rest.slice(0, -1) : rest;
  if (isMountFile({ redirects, headersFile }, relativePath)) return undefined;
  const servable = relativePath
    .split('/')
    .every(
      (name, at) =>
        isServableName(name, dotfiles) || (at === 0 && prefix === '/' && name === '.well-known'),
    );
  return servable ? { relativePath, trailingSlash } : undefined;
}

/** Whether a path below the root is that of the mount's file of redirects or header fields. */
export function isMountFile(
  { redirects, headersFile }: Partial<Pick<DiskMount, 'redirects' | 'headersFile'>>,
  relativePath: string,
): boolean {
  return relativePath === redirects || relativePath === headersFile;
}

/** Whether a mount serves files and folders of this name. */
export function isServableName(name: string, dotfiles: DiskMount['dotfiles']): boolean {
  if (name === '' || name === '.' || name === '..') return false;
  if (name.startsWith('.') && dotfiles === 'deny') return false;
  if (name.includes('\0') || name.includes('\\')) return false;
  return name.length <= fileNameBytesMax && Buffer.byteLength(name) <= fileNameBytesMax;
}

/** The parts of a request, besides its method, that decide what a mount answers. */
export type MountRequest = Pick<ContentRequest, 'origin' | 'path' | 'fields'>;

/**
 * Why a mount does not apply to a request; undefined if it does. The mount's own path without its
 * final slash belongs to the mount, which then redirects to its root.
 */
export function mountMismatch(
  { origin, path: prefix }: DiskMount,
  request: Pick<MountRequest, 'origin' | 'path'>,
): 'other_origin' | 'other_path' | undefined {
  if (!coversOrigin(origin, request.origin)) return 'other_origin';
  const { path } = request;
  if (path.startsWith(prefix)) return undefined;
  if (path.length === prefix.length - 1 && prefix.startsWith(path)) return undefined;
  return 'other_path';
}

/**
 * The key under which a mount caches its content for a path. `kind` separates listings, fallback
 * files and error pages from the file of the same path. NUL separates the parts unambiguously: no
 * path and no name of a mount contains it.
 */
export function fileCacheKey({ name }: DiskMount, path: string, kind = ''): string {
  return `${name}\0${path}\0${kind}`;
}

/** The path of a mount's fallback file below its root; undefined if it has none. */
export function fallbackPath({ fallback }: DiskMount): string | undefined {
  return fallback === undefined ? undefined : configuredPath(fallback);
}

/**
 * The paths below the root that a mount tries for a path that names no file, by its key `try`.
 * `{path}` stands for the path; hidden names stay hidden.
 */
function tryPaths(mount: DiskMount, { relativePath }: MountPath): readonly string[] {
  return mount.tryPaths.flatMap((pattern) => {
    if (!pattern.includes('{path}')) return [pattern];
    const path = pattern.replaceAll('{path}', relativePath);
    return resolveMountPath({ ...mount, path: '/' }, pathOfText(`/${path}`))?.relativePath ?? [];
  });
}

/**
 * A path below the root that the ini file names; undefined if no file can have it. It may name a
 * hidden file, which no request can reach by its own path.
 */
export function configuredPath(file: string): string | undefined {
  return resolveMountPath({ path: '/', dotfiles: 'allow' }, pathOfText(`/${file}`))?.relativePath;
}

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
