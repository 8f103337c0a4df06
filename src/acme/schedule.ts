import { acmeRestartMs, acmeRetryMs } from './limits.ts';

/** When a certificate begins and ends, in milliseconds since 1970. */
export interface Lifetime {
  readonly beginsMs: number;
  readonly endsMs: number;
}

/** The latest try to get a certificate. */
interface LatestTry {
  /** When it ended, in milliseconds since 1970; undefined where there was none. */
  readonly lastMs: number | undefined;
  /** When the next one was to be, as it was settled then. */
  readonly nextMs: number | undefined;
}

/**
 * When a certificate is renewed: with a third of its life left, or up to a twentieth of it earlier,
 * so that those who got theirs together do not come again together. `random` is in 0..1.
 */
export function renewalMs({ beginsMs, endsMs }: Lifetime, random: number): number {
  const lifeMs = endsMs - beginsMs;
  return endsMs - lifeMs / 3 - (lifeMs / 20) * random;
}

/**
 * When to renew a certificate that was just issued: as renewalMs, but no sooner than after a tenth
 * of its life, for with a clock that is wrong each new one would seem to be due at once.
 */
export function afterIssueMs(lifetime: Lifetime, nowMs: number, random: number): number {
  return Math.max(renewalMs(lifetime, random), earliestMs(lifetime, nowMs));
}

/**
 * When to renew a certificate that is there at a start: when it was settled, `nextMs`, but no later
 * than with a third of its life left, should the clock have been set back.
 */
export function afterStartMs(
  lifetime: Lifetime,
  nextMs: number | undefined,
  now: { readonly nowMs: number; readonly random: number },
): number {
  if (nextMs === undefined) return renewalMs(lifetime, now.random);
  return Math.min(nextMs, Math.max(renewalMs(lifetime, 0), earliestMs(lifetime, now.nowMs)));
}

function earliestMs({ beginsMs, endsMs }: Lifetime, nowMs: number): number {
  return nowMs + (endsMs - beginsMs) / 10;
}

/** How long to wait after so many failures in a row, a fifth more or less. `random` is in 0..1. */
export function retryDelayMs(failures: number, random: number): number {
  const step = acmeRetryMs[Math.min(failures, acmeRetryMs.length) - 1] ?? 0;
  return step * (0.8 + 0.4 * random);
}

/**
 * When to try after a start: sooner than was settled before it, for whoever starts a server again
 * may have put right what was wrong; but not so soon that a server which keeps ending and starting
 * would use up what an ACME server allows.
 */
export function tryAfterStartMs({ lastMs, nextMs }: LatestTry, nowMs: number): number {
  if (lastMs === undefined || nextMs === undefined) return nowMs;
  // A clock that was set back does not put it off.
  return Math.max(nowMs, Math.min(nextMs, Math.min(lastMs, nowMs) + acmeRestartMs));
}
