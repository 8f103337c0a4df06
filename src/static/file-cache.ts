import { diskHeldBytesMax, diskMissingCharactersMax, diskTrustMs } from '../model/limits.ts';
import { shownBytes, type Shown } from './cached-file.ts';
import type { FindingLoss } from './find-file.ts';
import { LRUCache } from 'lru-cache';
import { cacheUse, type CacheUse } from '../observability/memory-use.ts';

interface Slot<T> {
  readonly thing: T;
  readonly checkedAtMs: number;
}

/** Things read from disk and kept in memory, each believed for a short time. */
export interface Shelf<T> {
  /** What is kept under the key if it was checked recently enough to be believed. */
  fresh(key: string): T | undefined;
  /** What is kept under the key, however old. */
  kept(key: string): T | undefined;
  /** Keeps a thing that was just found to be true. */
  keep(key: string, thing: T): void;
  forget(key: string): void;
  /**
   * Loads a thing and keeps it; everybody who asks while it is being loaded gets the same one. What
   * is loaded as undefined is forgotten. Rejects as `load` does.
   */
  load(key: string, load: () => Promise<T | undefined>): Promise<T | undefined>;
  /** What it holds now. */
  use(name: string): CacheUse;
  /** Waits for what is being loaded, then forgets everything. */
  close(): Promise<void>;
}

/** Makes a shelf bound by the bytes of its things, the least recently used leaving first. */
export function createShelf<T extends object>({
  bytesMax,
  bytesOf,
  trustMs,
  now,
}: {
  readonly bytesMax: number;
  readonly bytesOf: (thing: T) => number;
  /** How long a check is believed. */
  readonly trustMs: number;
  readonly now: () => number;
}): Shelf<T> {
  const slots = new LRUCache<string, Slot<T>>({
    maxSize: bytesMax,
    // What a small entry costs besides its bytes.
    sizeCalculation: ({ thing }, key) => bytesOf(thing) + 2 * key.length + 1024,
  });
  const loads = new Map<string, Promise<T | undefined>>();

  async function loadAndKeep(
    key: string,
    load: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    // The thing is as old as the beginning of its load.
    const checkedAtMs = now();
    try {
      const thing = await load();
      if (thing === undefined) slots.delete(key);
      else slots.set(key, { thing, checkedAtMs });
      return thing;
    } finally {
      loads.delete(key);
    }
  }

  return {
    fresh(key) {
      const slot = slots.get(key);
      if (slot === undefined) return undefined;
      const ageMs = now() - slot.checkedAtMs;
      return ageMs >= 0 && ageMs < trustMs ? slot.thing : undefined;
    },
    kept: (key) => slots.peek(key)?.thing,
    keep(key, thing) {
      slots.set(key, { thing, checkedAtMs: now() });
    },
    forget(key) {
      slots.delete(key);
    },
    load(key, load) {
      let pending = loads.get(key);
      if (pending === undefined) {
        pending = loadAndKeep(key, load);
        loads.set(key, pending);
      }
      return pending;
    },
    use: (name) => cacheUse(name, slots),
    async close() {
      await Promise.allSettled(loads.values());
      slots.clear();
    },
  };
}

/** Places where nothing was to be served when they were looked at, believed for a short time. */
export interface Missing {
  /** Why nothing is served under the key; undefined where it has to be looked. */
  at(key: string): FindingLoss | undefined;
  /** Notes what a look has just found. */
  note(key: string, loss: FindingLoss): void;
}

/**
 * Makes the memory of what is missing; `trustMs` is the longest that a look is believed. Most
 * requests for what is stored or fetched ask the disk first, and a look costs more than a match.
 * All is forgotten at once, when the oldest look is too old or the keys take too much room.
 */
export function createMissing({
  trustMs,
  now,
}: {
  readonly trustMs: number;
  readonly now: () => number;
}): Missing {
  const losses = new Map<string, FindingLoss>();
  let [sinceMs, characters] = [0, 0];

  function forgetAll(): void {
    losses.clear();
    characters = 0;
  }

  return {
    at(key) {
      if (losses.size === 0) return undefined;
      const ageMs = now() - sinceMs;
      if (ageMs < 0 || ageMs >= trustMs) forgetAll();
      return losses.get(key);
    },
    note(key, loss) {
      if (characters + key.length > diskMissingCharactersMax) forgetAll();
      if (losses.size === 0) sinceMs = now();
      if (!losses.has(key)) characters += key.length;
      losses.set(key, loss);
    },
  };
}

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
