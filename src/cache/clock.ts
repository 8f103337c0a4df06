import type { Freshness } from './freshness.ts';
import { clockJitterMs } from './limits.ts';

/** A reading of the clock. */
export interface ClockReading {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /**
   * When the machine started, in milliseconds since 1970. It changes only when the clock is set.
   */
  readonly startMs: number;
}

/** Makes a clock reader; `uptimeMs` gives milliseconds since the machine started. */
export function clockReader(now: () => number, uptimeMs: () => number): () => ClockReading {
  return () => {
    const nowMs = now();
    return { nowMs, startMs: nowMs - uptimeMs() };
  };
}

/** Whether the clock was set to another time between two readings. */
export function wasSet(before: ClockReading, after: ClockReading): boolean {
  return Math.abs(before.startMs - after.startMs) > clockJitterMs;
}

/** The times of a stored response. */
interface DatedResponse {
  readonly freshness: Freshness;
  readonly storedAt?: ClockReading;
}

/**
 * Corrects the age of a stored response after the clock was set back: its age counts from as much
 * earlier. A response that was stored in the future is stale.
 */
export function byClock<T extends DatedResponse>(answer: T, clock: ClockReading): T {
  const { storedAt, freshness } = answer;
  const setBackMs = storedAt === undefined ? 0 : storedAt.startMs - clock.startMs;
  const bornMs = freshness.bornMs - (setBackMs > clockJitterMs ? setBackMs : 0);
  const isFuture = Math.max(bornMs, storedAt?.nowMs ?? bornMs) > clock.nowMs;
  if (bornMs === freshness.bornMs && !isFuture) return answer;
  const lifetimeMs = isFuture ? 0 : freshness.lifetimeMs;
  return { ...answer, freshness: { ...freshness, bornMs, lifetimeMs } };
}
