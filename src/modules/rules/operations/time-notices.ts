import type { Reads, Store } from '../../../core/log/store.ts';
import type { StoredRule } from '../rule.ts';
import { storedRules } from '../log/family.ts';

/** How long a subscriber to the moments of page rules waits before it reads the clock again. */
const timeNoticeWaitMsMax = 60_000;

/** Page rules of one moment that a subscriber looks at; for more, it counts as concerned. */
const timeNoticeRulesMax = 100;

/** What the notices read, and the clock in milliseconds since 1970. */
export interface TimedLog {
  readonly store: Pick<Reads, 'seq' | 'of'> & Pick<Store, 'waitForRows'>;
  readonly now: () => number;
}

/**
 * The moments at which a page rule begins or ceases to answer by its `from` or `until`, as they
 * come: ISO 8601 in UTC. `isWanted` chooses the rules. Several of them at a time are one moment.
 * Ends when the signal aborts; throws as waitForRows rejects.
 */
export async function* ruleMoments(
  { store, now }: TimedLog,
  isWanted: (stored: StoredRule) => boolean,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  // A moment that is just now counts as seen: the subscriber reads the page after its subscription.
  let seenMs = now();
  while (!signal.aborted) {
    const nowMs = now();
    const nextMs = store.of(storedRules).nextRuleTimeMs(seenMs);
    if (nextMs === undefined || nowMs < nextMs) {
      // A clock that is set back passes the same moments again.
      seenMs = Math.min(seenMs, nowMs);
      await changeOrTime(store, nextMs === undefined ? undefined : nextMs - nowMs, signal);
      continue;
    }
    const at = momentIn({ store, isWanted, fromMs: seenMs, nowMs });
    seenMs = nowMs;
    if (at !== undefined) yield at;
  }
}

/** Resolves when the log has a further row, after a time, or when the signal aborts. */
async function changeOrTime(
  store: TimedLog['store'],
  ms: number | undefined,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  // The clock of the machine may be set forward meanwhile.
  const waitMs = Math.min(ms ?? Infinity, timeNoticeWaitMsMax);
  const timer =
    ms === undefined
      ? undefined
      : setTimeout(() => {
          over.abort();
        }, waitMs);
  try {
    await store.waitForRows(store.seq(), AbortSignal.any([signal, over.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** The newest moment after one, up to another, at which a wanted rule begins or ceases. */
function momentIn({
  store,
  isWanted,
  fromMs,
  nowMs,
}: {
  readonly store: Pick<Reads, 'of'>;
  readonly isWanted: (stored: StoredRule) => boolean;
  readonly fromMs: number;
  readonly nowMs: number;
}): string | undefined {
  const range = { from: isoOf(fromMs + 1), until: isoOf(nowMs + 1) };
  let examined = 0;
  let found: string | undefined;
  for (const { at, stored } of store.of(storedRules).ruleTimes(range)) {
    examined += 1;
    // A page that asks once too often costs less than to look at all rules of the moment.
    if (isWanted(stored) || examined >= timeNoticeRulesMax) found = at;
    if (examined >= timeNoticeRulesMax) return found;
  }
  return found;
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
