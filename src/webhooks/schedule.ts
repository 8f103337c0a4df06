import { retryAfterMsMax } from './limits.ts';

/** The largest deviation of a wait from the configured one, as a fraction. */
const jitter = 0.2;

/** A delivery whose latest attempt failed. */
export interface FailedDelivery {
  /** Attempts made so far, including the failed one. */
  readonly attempts: number;
  /** The hook's `retry_limit`: the number of attempts after which the delivery is given up. */
  readonly attemptsMax: number;
  /** `[webhook] retry`: the waits before the second attempt, the third …; the last one repeats. */
  readonly retryMs: readonly number[];
  /** The answer's Retry-After, as readRetryAfter parses it. */
  readonly retryAfterMs: number | undefined;
  /** 0 to 1, for the jitter. */
  readonly random: number;
}

/**
 * How long a failed delivery waits before its next attempt, in milliseconds
 * (docs/design/webhooks.md#deliveries): the scheduled time, 20 % more or less, and at least the
 * Retry-After of the receiver. Undefined after the last attempt.
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
  // The jitter only lengthens Retry-After, and spreads deliveries that got the same one.
  const asked = Math.ceil(Math.min((retryAfterMs ?? 0) * (1 + jitter * random), retryAfterMsMax));
  return Math.max(spread, asked);
}
