import { diskHeldBytesMax, diskTrustMs } from '../model/limits.ts';
import { createMissing, type Missing } from './missing.ts';
import { createShelf, type Shelf } from './shelf.ts';
import { shownBytes, type Shown } from './shown.ts';

/** What all mounts together remember of the disk, for as long as that is believed. */
export interface DiskMemory {
  /** Small files and listings. */
  readonly shelf: Shelf<Shown>;
  /** Where nothing was found. */
  readonly missing: Missing;
}

/** Makes an empty memory; `now` is in milliseconds. */
export function createDiskMemory(now: () => number): DiskMemory {
  const held = { bytesMax: diskHeldBytesMax, bytesOf: shownBytes };
  return {
    shelf: createShelf<Shown>({ ...held, trustMs: diskTrustMs, now }),
    missing: createMissing({ trustMs: diskTrustMs, now }),
  };
}
