import type { AttemptRecord } from '../store/deliveries/deliveries.ts';
import type { Attempted } from './attempt.ts';
import type { HookMessage } from './message.ts';
import type { Verdict } from './outcome.ts';
import { retryDelayMs } from './schedule.ts';

/** A finished attempt, with the facts that decide whether another attempt follows. */
interface Judged {
  /** The start of the attempt, in milliseconds since 1970. */
  readonly at: number;
  readonly attempted: Attempted;
  readonly verdict: Verdict;
  /** The hook's `retry_limit`. */
  readonly attemptsMax: number;
  /** `[webhook] retry`. */
  readonly retryMs: readonly number[];
  /** Whether the batch was split: the halves replace it, and it is not retried. */
  readonly isSplit: boolean;
  /** 0 to 1, for the jitter. */
  readonly random: number;
  /** On the steady clock (clock.ts). */
  readonly clockMs: number;
}

/** Makes the record of an attempt: its outcome, and the time of the next one. */
export function attemptRecord({ logSeqs, before }: HookMessage, judged: Judged): AttemptRecord {
  const { status, answer, ms, problem, retryAfterMs } = judged.attempted;
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
    ...(delayMs !== undefined && { dueMs: Math.trunc(judged.clockMs + delayMs) }),
  };
}
