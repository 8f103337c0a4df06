import type { AttemptRecord } from '../store/deliveries.ts';
import type { Attempted } from './attempt.ts';
import type { HookMessage } from './message.ts';
import type { Verdict } from './outcome.ts';
import { retryDelayMs } from './schedule.ts';

/** An attempt that is over, with what decides whether another one follows. */
interface Judged {
  /** Milliseconds since 1970: when it began. */
  readonly at: number;
  readonly attempted: Attempted;
  readonly verdict: Verdict;
  /** The hook's `retry_limit`. */
  readonly attemptsMax: number;
  /** `[webhook] retry`. */
  readonly retryMs: readonly number[];
  /** Whether it is sent otherwise from now on, and never again as it was. */
  readonly isSplit: boolean;
  /** 0 to 1, for the jitter. */
  readonly random: number;
  /** By the clock that never jumps. */
  readonly clockMs: number;
}

/** What is kept of an attempt: how it ended, and when the next one is due. */
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
