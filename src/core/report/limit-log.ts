import { limitMessages, type LimitName } from '../values/limit.ts';
import { limitLogMs } from './limits.ts';
import type { Log } from './log.ts';
import type { ClientAddress } from '../values/network/peer.ts';

/** Logs that clients have exceeded limits, in a bounded number of lines. */
export interface LimitLog {
  /**
   * The client at an address, or something else, has exceeded a limit; `why` adds details that the
   * name of the limit lacks.
   */
  readonly passed: (limit: LimitName, address: ClientAddress | undefined, why?: string) => void;
}

/** The latest log line of a limit. */
interface LatestLine {
  readonly atMs: number;
  /** How often clients have exceeded the limit since then. */
  more: number;
}

/**
 * Makes a log that has at most one line a minute for each limit. The next line has the number of
 * further cases as `more`. `now` gives milliseconds since 1970.
 */
export function createLimitLog({
  log,
  now,
}: {
  readonly log: Log;
  readonly now: () => number;
}): LimitLog {
  const latest = new Map<LimitName, LatestLine>();
  return {
    passed(limit, address, why) {
      const nowMs = now();
      const before = latest.get(limit);
      const sinceMs = before === undefined ? Infinity : Math.abs(nowMs - before.atMs);
      if (before !== undefined && sinceMs < limitLogMs) {
        before.more += 1;
        return;
      }
      latest.set(limit, { atMs: nowMs, more: 0 });
      const { more = 0 } = before ?? {};
      const known = { ...(why !== undefined && { why }), ...(more > 0 && { more }) };
      log.warn({ limit, address, ...known }, limitMessages[limit]);
    },
  };
}
