import type { ContentRequest } from '../http/request.ts';
import type { DiskMount } from '../config/config.ts';
import { fileNameBytesMax } from '../model/limits.ts';

/** What a request path means to a mount. */
export interface Place {
  /** Path below the root without slashes at its ends; empty for the root itself. */
  readonly below: string;
  /** Whether the request asked for a directory, by its final slash. */
  readonly slash: boolean;
}

/**
 * The place below a mount's root that a canonical path names; undefined where the mount cannot have
 * it: an empty segment, a hidden name, a name that no file has. `/.well-known` of the site is never
 * hidden (RFC 8615 §3).
 */
export function placeBelow(
  { path: prefix, dotfiles }: Pick<DiskMount, 'path' | 'dotfiles'>,
  path: string,
): Place | undefined {
  const below = path.slice(prefix.length);
  if (below === '') return { below, slash: path.endsWith('/') };
  const slash = below.endsWith('/');
  const bare = slash ? below.slice(0, -1) : below;
  const servable = bare
    .split('/')
    .every(
      (name, at) =>
        isServableName(name, dotfiles) || (at === 0 && prefix === '/' && name === '.well-known'),
    );
  return servable ? { below: bare, slash } : undefined;
}

/** Whether a file or folder of this name may be asked for. */
export function isServableName(name: string, dotfiles: DiskMount['dotfiles']): boolean {
  if (name === '' || name === '.' || name === '..') return false;
  if (name.startsWith('.') && dotfiles === 'deny') return false;
  if (name.includes('\0') || name.includes('\\')) return false;
  return name.length <= fileNameBytesMax && Buffer.byteLength(name) <= fileNameBytesMax;
}

/** What decides of a request, besides its method, whether a mount has an answer. */
export type Asked = Pick<ContentRequest, 'origin' | 'path' | 'fields'>;

/**
 * Why a mount is not to be asked at all; a path that is the mount's but for the final slash is the
 * root's.
 */
export function notCovered(
  { origin, path: prefix }: DiskMount,
  asked: Pick<Asked, 'origin' | 'path'>,
): 'other_origin' | 'other_path' | undefined {
  if (origin !== '*' && origin !== asked.origin) return 'other_origin';
  const { path } = asked;
  if (path.startsWith(prefix)) return undefined;
  if (path.length === prefix.length - 1 && prefix.startsWith(path)) return undefined;
  return 'other_path';
}

/**
 * The shelf's key of what a mount says to a path, in a form of its own or not; no path and no name
 * holds a NUL.
 */
export function shelfKey({ name }: DiskMount, path: string, form = ''): string {
  return `${name}\0${path}\0${form}`;
}

/** A mount's fallback file, below its root; undefined where it has none. */
export function fallbackBelow({ fallback }: DiskMount): string | undefined {
  return fallback === undefined ? undefined : placeOf(fallback);
}

/** Where a mount may have a page for a status, below its root: for this very one first. */
export function errorPagesBelow({ errors }: DiskMount, status: number): readonly string[] {
  if (errors === undefined) return [];
  const names = [status, `${Math.floor(status / 100)}xx`].map((name) => `${errors}/${name}.html`);
  return names.flatMap((name) => placeOf(name) ?? []);
}

function placeOf(file: string): string | undefined {
  return placeBelow({ path: '/', dotfiles: 'allow' }, `/${file}`)?.below;
}
