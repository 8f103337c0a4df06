import { limitSentences, type LimitName } from '../model/limit.ts';
import { limitLogMs } from './limits.ts';
import type { Log } from './log.ts';

/** Tells of clients that run into limits, in a bounded number of lines. */
export interface LimitLog {
  /** A client has; `why` is what exactly it did, where the name of the limit does not say so. */
  readonly passed: (limit: LimitName, address: string, why?: string) => void;
}

/** What has been told of a limit. */
interface Told {
  readonly atMs: number;
  /** How often it was passed since. */
  more: number;
}

/**
 * Makes a log that has a line a minute for each limit, however often it is passed: that the next
 * one tells. `now` gives milliseconds since 1970.
 */
export function createLimitLog({
  log,
  now,
}: {
  readonly log: Log;
  readonly now: () => number;
}): LimitLog {
  const told = new Map<LimitName, Told>();
  return {
    passed(limit, address, why) {
      const nowMs = now();
      const before = told.get(limit);
      const sinceMs = before === undefined ? Infinity : Math.abs(nowMs - before.atMs);
      if (before !== undefined && sinceMs < limitLogMs) {
        before.more += 1;
        return;
      }
      told.set(limit, { atMs: nowMs, more: 0 });
      const { more = 0 } = before ?? {};
      const known = { ...(why !== undefined && { why }), ...(more > 0 && { more }) };
      log.warn({ limit, address, ...known }, limitSentences[limit]);
    },
  };
}
