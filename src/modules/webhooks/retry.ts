import { durationMs } from '../../core/values/units.ts';
import type { Hook } from './hook.ts';
import type { AttemptRecord } from './log/deliveries.ts';
import type { AttemptResult } from './attempt.ts';
import type { HookMessage } from './message.ts';
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
  /** As retrySchedule returns it. */
  readonly retryMs: readonly number[];
  /** Whether the batch was split: the halves replace it, and it is not retried. */
  readonly isSplit: boolean;
  /** 0 to 1, for the jitter. */
  readonly random: number;
  /** On the steady clock. */
  readonly clockMs: number;
}

/** Makes the record of an attempt: its outcome, and when the next attempt is due. */
export function attemptRecord({ logSeqs, before }: HookMessage, judged: Judged): AttemptRecord {
  const { status, answer, answerFields, ms, problem, retryAfterMs } = judged.result;
  const { outcome, isGone } = judged.verdict;
  // A person decides whether a paused hook sends again, so 410 uses up no attempt of `retry_limit`.
  const tries = (before?.tries ?? 0) + (isGone ? 0 : 1);
  const isAgain = outcome === 'failed' && !judged.isSplit && !isGone;
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
    // It is due at once, and waits until the hook is resumed.
    ...(isGone && { dueMs: Math.trunc(judged.clockMs) }),
    ...(delayMs !== undefined && {
      dueMs: Math.trunc(judged.clockMs + delayMs),
      dueAt: new Date(judged.at + ms + delayMs).toISOString(),
    }),
  };
}

/** The waits of a hook between attempts, in milliseconds: its own, or else `[webhook] retry`. */
export function retrySchedule(
  { retry }: Pick<Hook, 'retry'>,
  standardMs: readonly number[],
): readonly number[] {
  return retry?.map((wait) => durationMs(wait) ?? 0) ?? standardMs;
}

/** Jitter changes a scheduled wait by at most this fraction. */
const jitter = 0.2;

/** A delivery whose latest attempt failed. */
export interface FailedDelivery {
  /** Attempts made so far, including the failed one. */
  readonly attempts: number;
  /** The hook's `retry_limit`: the number of attempts after which the delivery is given up. */
  readonly attemptsMax: number;
  /** The waits before the second attempt, the third …; the last one repeats. */
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
 * Undefined if no attempt follows: `retry_limit` is reached, or the schedule is empty.
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

/** The meaning of the status of one attempt (docs/design/webhooks.md#deliveries). */
export interface Verdict {
  /**
   * `failed` deliveries are retried until the schedule ends; after 410, when the hook is resumed.
   */
  readonly outcome: 'completed' | 'completed_404' | 'failed';
  /**
   * The state of the receiver: `healthy`; `failing` if it is overloaded, broken or unreachable;
   * `refusing` if it refused this message with a 4xx status.
   */
  readonly receiver: 'healthy' | 'refusing' | 'failing';
  /** Whether the receiver answered 410 (Gone): the hook is paused. */
  readonly isGone: boolean;
  /** Whether the receiver answered 413 (Content Too Large): a batch is split. */
  readonly isTooLarge: boolean;
}

const completed: Verdict = {
  outcome: 'completed',
  receiver: 'healthy',
  isGone: false,
  isTooLarge: false,
};
const completed404: Verdict = { ...completed, outcome: 'completed_404' };
const refused: Verdict = { ...completed, outcome: 'failed', receiver: 'refusing' };
/** Only 2xx and 404 complete a delivery. The receiver works: a resume sends at full pace. */
const gone: Verdict = { ...completed, outcome: 'failed', isGone: true };
const tooLarge: Verdict = { ...refused, isTooLarge: true };
const failed: Verdict = { ...completed, outcome: 'failed', receiver: 'failing' };

/**
 * The verdict on an attempt by the status of its response. Undefined stands for no response: a
 * refused address, a TLS failure, a broken connection or a timeout.
 */
export function verdictOn(status: number | undefined): Verdict {
  if (status === undefined || status < 200 || status > 499) return failed;
  if (status < 300) return completed;
  switch (status) {
    case 404:
      return completed404;
    case 408:
    case 425:
    case 429:
      return failed;
    case 410:
      return gone;
    case 413:
      return tooLarge;
    default:
      return refused;
  }
}

/** A clock that changes of the system time do not affect, in milliseconds since about 1970. */
export type SteadyClock = () => number;

/**
 * Makes the clock that schedules deliveries. It starts at the system time, or at its last stored
 * value if that is later, and does not read the system time again. So a change of the system time,
 * before or after the start, never makes all deliveries due at once and never delays them by a day.
 */
export function createSteadyClock({
  now,
  monotonicMs,
  lastMs,
}: {
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly lastMs: number;
}): SteadyClock {
  const startMs = Math.max(now(), lastMs) - monotonicMs();
  return () => startMs + monotonicMs();
}
