import type { DiskMount } from '../../core/config/config.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { type CanonicalPath, pathOfText, textOfPath } from '../../core/values/path.ts';

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
  if (origin !== '*' && origin !== request.origin) return 'other_origin';
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
export function tryPaths(mount: DiskMount, { relativePath }: MountPath): readonly string[] {
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
