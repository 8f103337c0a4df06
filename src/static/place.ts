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
