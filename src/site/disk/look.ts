import type { DiskMount } from '../../config/config.ts';
import type { MountLoss } from '../../model/explanation.ts';
import { fallbackBelow, listingKey, notCovered, shelfKey, type Asked } from './coverage.ts';
import type { Files } from './files.ts';
import { findAt } from './finding.ts';
import { canList } from './listing.ts';
import { placeBelow, type Place } from './place.ts';
import { locateFile } from './regular-file.ts';
import type { Held } from './replies.ts';
import type { Shelf } from './shelf.ts';

/** The status of an answer to a GET without preconditions and ranges, or why there is none. */
export type MountLook = { readonly status: number } | { readonly loss: MountLoss };

/** Looks what a mount would answer, by the decisions that it answers by; content is never read. */
export interface Looks {
  /** What Mount.respond would answer; fails as it does. */
  look(asked: Asked): MountLook;
  /** What Mount.fallback would answer; fails as it does. */
  lookFallback(asked: Asked): MountLook;
}

const sent: MountLook = { status: 200 };
const gone: MountLook = { loss: 'no_file' };

/** Makes the looks into a mount; what lies on its shelf is what it answers with. */
export function createLooks(
  mount: DiskMount,
  { shelf, files }: { readonly shelf: Shelf<Held>; readonly files: Files },
): Looks {
  const fallbackFile = fallbackBelow(mount);

  function lookAt(place: Place, key: string, asked: Asked): MountLook {
    const finding = findAt(mount, place);
    if (finding === 'slash') return { status: 301 };
    if (typeof finding === 'object') return files.canSend(finding, key) ? sent : gone;
    if (finding !== 'listing') return { loss: finding };
    const isHeld = shelf.fresh(listingKey(mount, asked)) !== undefined;
    return isHeld || canList(mount, place.below) ? sent : gone;
  }

  return {
    look(asked) {
      const loss = notCovered(mount, asked);
      if (loss !== undefined) return { loss };
      const key = shelfKey(mount, asked.path);
      if (shelf.fresh(key) !== undefined) return sent;
      const place = placeBelow(mount, asked.path);
      return place === undefined ? { loss: 'hidden_name' } : lookAt(place, key, asked);
    },
    lookFallback(asked) {
      const loss = notCovered(mount, asked);
      if (loss !== undefined) return { loss };
      if (fallbackFile === undefined) return gone;
      const key = shelfKey(mount, fallbackFile, 'fallback');
      if (shelf.fresh(key) !== undefined) return sent;
      const file = locateFile(mount, fallbackFile);
      return file !== undefined && files.canSend(file, key) ? sent : gone;
    },
  };
}
