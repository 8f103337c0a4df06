import type { DiskMount } from '../config/config.ts';
import type { MountLoss } from '../model/explanation.ts';
import {
  fallbackBelow,
  notCovered,
  placeBelow,
  shelfKey,
  type Asked,
  type Place,
} from './mount-path.ts';
import { unlessForbidden } from './file-errors.ts';
import { besideNotes } from './precompressed.ts';
import type { Files } from './file-sender.ts';
import { findAt, locateFile, type Finding } from './find-file.ts';
import { listingKey } from './listing-content.ts';
import { canList } from './listing.ts';
import type { DiskMemory } from './file-cache.ts';
import { heldOf } from './cached-file.ts';

/** The status of an answer to a GET without preconditions and ranges, or why there is none. */
export type MountLook =
  | { readonly status: number; readonly notes?: readonly string[] }
  | { readonly loss: MountLoss };

/** Looks what a mount would answer, by the decisions that it answers by; content is never read. */
export interface Looks {
  /** What Mount.respond would answer; fails as it does. */
  look(asked: Asked): MountLook;
  /** What Mount.fallback would answer; fails as it does. */
  lookFallback(asked: Asked): MountLook;
}

const gone: MountLook = { loss: 'no_file' };

/** Makes the looks into a mount; what it remembers of the disk is what it answers by. */
export function createLooks(
  mount: DiskMount,
  { shelf, missing, files }: DiskMemory & { readonly files: Files },
): Looks {
  const fallbackFile = fallbackBelow(mount);

  const isHeld = (key: string, { fields }: Asked): boolean =>
    heldOf(shelf.fresh(key), fields) !== undefined;

  /** The look at something that is sent, with what is to be said of the file where it is one. */
  function sent(find: () => Finding | undefined): MountLook {
    const finding = unlessForbidden(find);
    const notes = typeof finding === 'object' ? besideNotes(mount, finding) : [];
    return { status: 200, ...(notes.length > 0 && { notes }) };
  }

  function lookAt(place: Place, key: string, asked: Asked): MountLook {
    const finding = findAt(mount, place);
    if (finding === 'slash') return { status: 301 };
    if (typeof finding === 'object') {
      return files.canSend(finding, key) ? sent(() => finding) : gone;
    }
    if (finding !== 'listing') return { loss: finding };
    const isThere = isHeld(listingKey(mount, asked), asked) || canList(mount, place.below);
    return isThere ? sent(() => finding) : gone;
  }

  return {
    look(asked) {
      const loss = notCovered(mount, asked);
      if (loss !== undefined) return { loss };
      const place = placeBelow(mount, asked.path);
      if (place === undefined) return { loss: 'hidden_name' };
      const key = shelfKey(mount, asked.path);
      if (isHeld(key, asked)) return sent(() => findAt(mount, place));
      const missed = missing.at(key);
      return missed === undefined ? lookAt(place, key, asked) : { loss: missed };
    },
    lookFallback(asked) {
      const loss = notCovered(mount, asked);
      if (loss !== undefined) return { loss };
      if (fallbackFile === undefined) return gone;
      const find = () => locateFile(mount, fallbackFile);
      const key = shelfKey(mount, fallbackFile, 'fallback');
      if (isHeld(key, asked)) return sent(find);
      const file = find();
      return file !== undefined && files.canSend(file, key) ? sent(() => file) : gone;
    },
  };
}
