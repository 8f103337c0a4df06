import type { DiskMount } from '../config/config.ts';
import type { MountLoss } from '../model/explanation.ts';
import type { Place } from './place.ts';
import { locate, locateFile, type Located } from './regular-file.ts';

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
