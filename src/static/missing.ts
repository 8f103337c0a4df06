import { diskMissingCharactersMax } from '../model/limits.ts';
import type { FindingLoss } from './finding.ts';

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
