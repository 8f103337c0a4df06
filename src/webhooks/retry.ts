import type { AttemptRecord } from '../store/deliveries/deliveries.ts';
import type { AttemptResult } from './attempt.ts';
import type { HookMessage } from './message.ts';
import type { Verdict } from './outcome.ts';
import { retryAfterMsMax } from './limits.ts';

/** A finished attempt, with the facts that decide whether another attempt follows. */
interface Judged {
  /** The start of the attempt, in milliseconds since 1970. */
  readonly at: number;
  readonly result: AttemptResult;
  /** Version of the hook that the attempt was made for. */
  readonly hookSeq: number;
  readonly verdict: Verdict;
  /** The hook's `retry_limit`. */
  readonly attemptsMax: number;
  /** `[webhook] retry`. */
  readonly retryMs: readonly number[];
  /** Whether the batch was split: the halves replace it, and it is not retried. */
  readonly isSplit: boolean;
  /** 0 to 1, for the jitter. */
  readonly random: number;
  /** On the steady clock (steady-clock.ts). */
  readonly clockMs: number;
}

/** Makes the record of an attempt: its outcome, and when the next attempt is due. */
export function attemptRecord({ logSeqs, before }: HookMessage, judged: Judged): AttemptRecord {
  const { status, answer, answerFields, ms, problem, retryAfterMs } = judged.result;
  const { outcome } = judged.verdict;
  const tries = (before?.tries ?? 0) + 1;
  const isAgain = outcome === 'failed' && !judged.isSplit;
  const delayMs = isAgain ? retryDelayMs({ ...judged, attempts: tries, retryAfterMs }) : undefined;
  return {
    logSeqs,
    ...(before?.batch && { batch: true }),
    attempt: (before?.attempt ?? 0) + 1,
    tries,
    at: new Date(judged.at).toISOString(),
    outcome: isAgain && delayMs === undefined ? 'exhausted' : outcome,
    ...(status !== undefined && { status }),
    ...(problem !== undefined && { error: problem.message }),
    ms: Math.round(ms),
    ...(answer !== '' && { answer }),
    ...(answerFields.length > 0 && { answerFields }),
    hookSeq: judged.hookSeq,
    ...(delayMs !== undefined && {
      dueMs: Math.trunc(judged.clockMs + delayMs),
      dueAt: new Date(judged.at + ms + delayMs).toISOString(),
    }),
  };
}

/** Jitter changes a scheduled wait by at most this fraction. */
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
 * Retry-After of the receiver. `hasRoom` (concurrency-window.ts) may delay it further.
 * Undefined if no attempt follows: `retry_limit` is reached, or `[webhook] retry` is empty.
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
  // Jitter never shortens a Retry-After. It spreads deliveries that got the same one.
  const required = Math.ceil(
    Math.min((retryAfterMs ?? 0) * (1 + jitter * random), retryAfterMsMax),
  );
  return Math.max(spread, required);
}
