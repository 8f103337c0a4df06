import {
  laneHoldMsMax,
  laneRestMs,
  laneRestMsMax,
  laneWidthFirst,
  refusalsInARow,
} from '../model/limits.ts';
import type { Verdict } from './outcome.ts';

/**
 * How many attempts of one hook may be under way at the same time: more while its receiver takes
 * what comes, fewer as it fails, down to one, which probes it (docs/design/webhooks.md#deliveries).
 * Times are of a clock that never jumps, in milliseconds.
 */
export interface ConcurrencyWindow {
  readonly inFlight: number;
  /** How many may be in flight, from 1; a fraction is what it has grown on the way to the next. */
  readonly width: number;
  /** Up to here the width doubles with each round of successes, from here it grows by one. */
  readonly threshold: number;
  /** How often it has shrunk. */
  readonly shrinks: number;
  /** Failures since the last success. */
  readonly failures: number;
  /** How many of them were those of a single probe. */
  readonly failedProbes: number;
  /** Until when nothing is sent for the first time: what is to be sent again is probe enough. */
  readonly restsUntilMs: number;
  /** Until when nothing is sent at all, since the receiver asked for it. */
  readonly heldUntilMs: number;
}

/** The lane of a hook of which nothing is known yet. */
export const newLane: ConcurrencyWindow = {
  inFlight: 0,
  width: laneWidthFirst,
  threshold: Infinity,
  shrinks: 0,
  failures: 0,
  failedProbes: 0,
  restsUntilMs: 0,
  heldUntilMs: 0,
};

/** An attempt that is over. */
export interface Ended {
  readonly receiver: Verdict['receiver'];
  /** The lane's `shrinks` when the attempt began. */
  readonly shrinksBefore: number;
  /** What the receiver asked for, as readRetryAfter has it. */
  readonly retryAfterMs: number | undefined;
  readonly nowMs: number;
  /** `[webhook] concurrency`. */
  readonly widthMax: number;
}

/**
 * Whether another attempt may begin; `isFirst` says that of the delivery none was made before. One
 * that is to be made again is due by its own schedule, whatever the lane thinks of the receiver.
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

/** The lane once an attempt has begun. */
export function laneWithBegun(lane: ConcurrencyWindow): ConcurrencyWindow {
  return { ...lane, inFlight: lane.inFlight + 1 };
}

/** The lane once an attempt is over. */
export function laneWithEnded(lane: ConcurrencyWindow, ended: Ended): ConcurrencyWindow {
  const after = ended.receiver === 'well' ? withSuccess(lane, ended) : withFailure(lane, ended);
  return { ...after, inFlight: lane.inFlight - 1 };
}

function withSuccess(lane: ConcurrencyWindow, { widthMax }: Ended): ConcurrencyWindow {
  const { inFlight, width, threshold } = lane;
  // A width that is not used has not been tried either.
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
        ? Math.max(lane.heldUntilMs, nowMs + Math.min(retryAfterMs, laneHoldMsMax))
        : lane.heldUntilMs,
  };
  // A refusal between successes is about the message, a row of them about the receiver.
  if (receiver === 'unwilling' && held.failures < refusalsInARow) return held;
  // Failures of one round that others came through are one sign of too much, not one each.
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
      ? nowMs + Math.min(laneRestMs * 2 ** lane.failedProbes, laneRestMsMax)
      : lane.restsUntilMs,
  };
}
