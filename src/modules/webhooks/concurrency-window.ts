import type { Verdict } from './retry.ts';

/** The longest time that a Retry-After pauses a whole hook. */
const hookRetryAfterMsMax = 3_600_000;

/** The size of the window of a hook without a history. */
const windowSizeFirst = 4;

/** Refusals without a success between them after which a receiver counts as failing. */
const refusalsInARow = 8;

/** The pause after the first failed probe. Each further failure doubles it, up to the maximum. */
const probePauseMs = 1_000;
const probePauseMsMax = 60_000;

/**
 * How many attempts of one hook may be in flight at once: the window grows while the receiver
 * accepts messages and shrinks when it fails, down to a single probe
 * (docs/design/webhooks.md#deliveries). Times are on the steady clock, in milliseconds.
 */
export interface ConcurrencyWindow {
  readonly inFlight: number;
  /**
   * How many attempts may be in flight, at least 1; the fraction is growth towards the next one.
   */
  readonly width: number;
  /** Below this width each round of successes doubles it; above, each round adds one. */
  readonly threshold: number;
  /** How often the window has shrunk. */
  readonly shrinks: number;
  /** Failures since the last success. */
  readonly failures: number;
  /** How many of these failures were single probes. */
  readonly failedProbes: number;
  /** Until this time the hook sends no new messages: the retries probe the receiver. */
  readonly pausedUntilMs: number;
  /** Until this time the hook sends nothing, because the receiver answered with Retry-After. */
  readonly retryAfterUntilMs: number;
}

/** The initial window of a hook. */
export const initialWindow: ConcurrencyWindow = {
  inFlight: 0,
  width: windowSizeFirst,
  threshold: Infinity,
  shrinks: 0,
  failures: 0,
  failedProbes: 0,
  pausedUntilMs: 0,
  retryAfterUntilMs: 0,
};

/** A finished attempt. */
export interface AttemptEnd {
  readonly receiver: Verdict['receiver'];
  /** The window's `shrinks` when the attempt began. */
  readonly shrinksBefore: number;
  /** The answer's Retry-After, as readRetryAfter parses it. */
  readonly retryAfterMs: number | undefined;
  readonly nowMs: number;
  /** `[webhook] concurrency`. */
  readonly widthMax: number;
}

/**
 * Whether another attempt may begin; `isFirst` marks the first attempt of a message. A Retry-After
 * of the receiver delays all attempts, the pause after a failed probe only first ones.
 */
export function hasRoom(
  { inFlight, width, pausedUntilMs, retryAfterUntilMs }: ConcurrencyWindow,
  {
    isFirst,
    nowMs,
    widthMax,
  }: { readonly isFirst: boolean; readonly nowMs: number; readonly widthMax: number },
): boolean {
  if (inFlight >= Math.min(Math.floor(width), widthMax) || nowMs < retryAfterUntilMs) return false;
  return !isFirst || nowMs >= pausedUntilMs;
}

/** The window after the start of an attempt. */
export function windowAfterStart(window: ConcurrencyWindow): ConcurrencyWindow {
  return { ...window, inFlight: window.inFlight + 1 };
}

/** The window after the end of an attempt. */
export function windowAfterEnd(window: ConcurrencyWindow, ended: AttemptEnd): ConcurrencyWindow {
  const after =
    ended.receiver === 'healthy' ? withSuccess(window, ended) : withFailure(window, ended);
  return { ...after, inFlight: window.inFlight - 1 };
}

function withSuccess(window: ConcurrencyWindow, { widthMax }: AttemptEnd): ConcurrencyWindow {
  const { inFlight, width, threshold } = window;
  // Successes at less than half the width do not show that the receiver can take more.
  const isUsed = 2 * inFlight >= width;
  const grown = isUsed ? width + (width < threshold ? 1 : 1 / width) : width;
  return {
    ...window,
    width: Math.min(grown, widthMax),
    failures: 0,
    failedProbes: 0,
    pausedUntilMs: 0,
  };
}

function withFailure(window: ConcurrencyWindow, ended: AttemptEnd): ConcurrencyWindow {
  const { receiver, shrinksBefore, retryAfterMs = 0, nowMs } = ended;
  const held: ConcurrencyWindow = {
    ...window,
    failures: window.failures + 1,
    retryAfterUntilMs:
      receiver === 'failing'
        ? Math.max(window.retryAfterUntilMs, nowMs + Math.min(retryAfterMs, hookRetryAfterMsMax))
        : window.retryAfterUntilMs,
  };
  // A single refusal concerns the message; several in a row concern the receiver.
  if (receiver === 'refusing' && held.failures < refusalsInARow) return held;
  // Several failures in one round shrink the window only once.
  if (window.failures === 0 && shrinksBefore !== window.shrinks) return held;
  const width = Math.max(1, Math.floor(window.width / 2));
  const isProbe = window.width < 2;
  return {
    ...held,
    width,
    threshold: window.failures === 0 ? width : window.threshold,
    shrinks: window.shrinks + 1,
    failedProbes: window.failedProbes + (isProbe ? 1 : 0),
    pausedUntilMs: isProbe
      ? nowMs + Math.min(probePauseMs * 2 ** window.failedProbes, probePauseMsMax)
      : window.pausedUntilMs,
  };
}
