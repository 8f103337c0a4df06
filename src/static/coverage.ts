import type { DiskMount } from '../config/config.ts';
import type { ContentRequest } from '../http/request.ts';
import { listingType } from './listing-content.ts';
import { placeBelow } from './place.ts';

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

/** The shelf's key of a folder's listing in the form that is asked for. */
export function listingKey(mount: DiskMount, { path, fields }: Asked): string {
  return shelfKey(mount, path, listingType(fields.accept));
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
