import {
  hookRetryAfterMsMax,
  probePauseMs,
  probePauseMsMax,
  refusalsInARow,
  windowSizeFirst,
} from './limits.ts';
import type { Verdict } from './outcome.ts';

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
  readonly restsUntilMs: number;
  /** Until this time the hook sends nothing, because the receiver answered with Retry-After. */
  readonly heldUntilMs: number;
}

/** The initial window of a hook. */
export const newLane: ConcurrencyWindow = {
  inFlight: 0,
  width: windowSizeFirst,
  threshold: Infinity,
  shrinks: 0,
  failures: 0,
  failedProbes: 0,
  restsUntilMs: 0,
  heldUntilMs: 0,
};

/** A finished attempt. */
export interface Ended {
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
 * Whether another attempt may begin; `isFirst` marks the first attempt of a message. The retry
 * schedule alone decides when a retry is due, so the rest after a failed probe delays only first
 * attempts.
 */
export function hasRoom(
  { inFlight, width, restsUntilMs, heldUntilMs }: ConcurrencyWindow,
  {
    isFirst,
    nowMs,
    widthMax,
  }: { readonly isFirst: boolean; readonly nowMs: number; readonly widthMax: number },
): boolean {
  if (inFlight >= Math.min(Math.floor(width), widthMax) || nowMs < heldUntilMs) return false;
  return !isFirst || nowMs >= restsUntilMs;
}

/** The window after the start of an attempt. */
export function laneWithBegun(lane: ConcurrencyWindow): ConcurrencyWindow {
  return { ...lane, inFlight: lane.inFlight + 1 };
}

/** The window after the end of an attempt. */
export function laneWithEnded(lane: ConcurrencyWindow, ended: Ended): ConcurrencyWindow {
  const after = ended.receiver === 'well' ? withSuccess(lane, ended) : withFailure(lane, ended);
  return { ...after, inFlight: lane.inFlight - 1 };
}

function withSuccess(lane: ConcurrencyWindow, { widthMax }: Ended): ConcurrencyWindow {
  const { inFlight, width, threshold } = lane;
  // Successes at less than half the width do not show that the receiver can take more.
  const isUsed = 2 * inFlight >= width;
  const grown = isUsed ? width + (width < threshold ? 1 : 1 / width) : width;
  return {
    ...lane,
    width: Math.min(grown, widthMax),
    failures: 0,
    failedProbes: 0,
    restsUntilMs: 0,
  };
}

function withFailure(lane: ConcurrencyWindow, ended: Ended): ConcurrencyWindow {
  const { receiver, shrinksBefore, retryAfterMs = 0, nowMs } = ended;
  const held: ConcurrencyWindow = {
    ...lane,
    failures: lane.failures + 1,
    heldUntilMs:
      receiver === 'sick'
        ? Math.max(lane.heldUntilMs, nowMs + Math.min(retryAfterMs, hookRetryAfterMsMax))
        : lane.heldUntilMs,
  };
  // A single refusal concerns the message; several in a row concern the receiver.
  if (receiver === 'unwilling' && held.failures < refusalsInARow) return held;
  // Several failures in one round shrink the window only once.
  if (lane.failures === 0 && shrinksBefore !== lane.shrinks) return held;
  const width = Math.max(1, Math.floor(lane.width / 2));
  const isProbe = lane.width < 2;
  return {
    ...held,
    width,
    threshold: lane.failures === 0 ? width : lane.threshold,
    shrinks: lane.shrinks + 1,
    failedProbes: lane.failedProbes + (isProbe ? 1 : 0),
    restsUntilMs: isProbe
      ? nowMs + Math.min(probePauseMs * 2 ** lane.failedProbes, probePauseMsMax)
      : lane.restsUntilMs,
  };
}
