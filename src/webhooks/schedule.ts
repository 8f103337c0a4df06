import { retryAfterMsMax } from '../model/limits.ts';

/** How far a wait may be from what the ini file says, to either side. */
const jitter = 0.2;

/** A delivery whose latest attempt has failed. */
export interface FailedDelivery {
  /** Attempts made so far, the failed one included: from 1. */
  readonly attempts: number;
  /** Attempts after which it is given up, the first one included: the hook's `retry_limit`. */
  readonly attemptsMax: number;
  /** `[webhook] retry`: the waits before the second attempt, the third …; the last one repeats. */
  readonly retryMs: readonly number[];
  /** What the receiver asked for, as readRetryAfter has it. */
  readonly retryAfterMs: number | undefined;
  /** 0 to 1, for the jitter. */
  readonly random: number;
}

/**
 * How long a failed delivery waits, in milliseconds, before it is tried again
 * (docs/design/webhooks.md#deliveries): as the schedule says, 20 % more or less, and no shorter
 * than the receiver asked for. Undefined when it is exhausted.
 */
export function retryDelayMs({
  attempts,
  attemptsMax,
  retryMs,
  retryAfterMs,
  random,
}: FailedDelivery): number | undefined {
  const planned = retryMs[Math.min(attempts, retryMs.length) - 1];
  if (attempts >= attemptsMax || planned === undefined) return undefined;
  const spread = Math.round(planned * (1 - jitter + 2 * jitter * random));
  // Those that were all told the same do not come back all at once, and none before its time.
  const asked = Math.ceil(Math.min((retryAfterMs ?? 0) * (1 + jitter * random), retryAfterMsMax));
  return Math.max(spread, asked);
}
