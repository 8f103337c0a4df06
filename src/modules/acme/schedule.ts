import { acmeRestartMs } from './limits.ts';

/** How long after each consecutive failure a certificate is ordered again. */
export const acmeRetryMs = [1, 5, 15, 60, 180, 360, 720, 1_440].map((minutes) => minutes * 60_000);

/** A certificate is not renewed by such a suggestion sooner after its issue. */
const acmeSuggestedMs = 86_400_000;

/** The wait after a failure that is never shortened, however soon the certificate ends. */
const acmeRetryMsKept = 3_600_000;

/** The validity of a certificate, in milliseconds since 1970. */
export interface Lifetime {
  readonly beginsMs: number;
  readonly endsMs: number;
}

/** The latest order of a certificate, with times in milliseconds since 1970. */
interface LatestOrder {
  /** When it ended; undefined if there was none. */
  readonly lastMs: number | undefined;
  /** When the next one was planned at that time. */
  readonly nextMs: number | undefined;
}

/**
 * When to renew a certificate: when a third of its validity is left, or up to a twentieth of it
 * earlier, so that certificates that were issued together are not renewed together. `random` is in
 * 0..1.
 */
export function renewalMs({ beginsMs, endsMs }: Lifetime, random: number): number {
  const lifeMs = endsMs - beginsMs;
  return endsMs - lifeMs / 3 - (lifeMs / 20) * random;
}

/**
 * When to renew a certificate that was just issued: as renewalMs, but not before a tenth of its
 * validity has passed, because with a wrong clock each new certificate could be due at once.
 */
export function renewalAfterIssueMs(lifetime: Lifetime, nowMs: number, random: number): number {
  return Math.max(renewalMs(lifetime, random), earliestMs(lifetime, nowMs));
}

/**
 * When to renew a certificate that exists at the start: at the planned time `nextMs`, but not after
 * two thirds of its validity, in case the clock was set back.
 */
export function renewalAfterStartMs(
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

/**
 * When to renew a certificate in the window that its ACME server suggests (RFC 9773 §4.2): at a
 * random time in it, but not when less than a sixth of its validity is left, nor in a day or a
 * tenth of it after `issuedMs`, so that a server in a hurry, or a wrong clock, does not lead to one
 * order after the other.
 */
export function suggestedMs(
  { beginsMs, endsMs }: Lifetime,
  window: { readonly startMs: number; readonly endMs: number },
  { issuedMs, random }: { readonly issuedMs: number; readonly random: number },
): number {
  const lifeMs = endsMs - beginsMs;
  const chosenMs = window.startMs + (window.endMs - window.startMs) * random;
  const earliest = issuedMs + Math.min(lifeMs / 10, acmeSuggestedMs);
  return Math.max(earliest, Math.min(chosenMs, endsMs - lifeMs / 6));
}

/**
 * The wait after consecutive failures, 20 % more or less. `random` is in 0..1. It leaves time for
 * more orders before a certificate ends, of which `leftMs` are left.
 */
export function retryDelayMs(failures: number, random: number, leftMs = Infinity): number {
  const step = acmeRetryMs[Math.min(failures, acmeRetryMs.length) - 1] ?? 0;
  const shorter = Math.max(leftMs / 6, acmeRetryMsKept);
  return Math.min(step, shorter) * (0.8 + 0.4 * random);
}

/**
 * When to order a missing certificate after a start: sooner than planned before, because an
 * operator who restarts the server may have corrected an error; but not at once, so that a server
 * that restarts again and again does not exceed the rate limit of the ACME server.
 */
export function orderAfterStartMs({ lastMs, nextMs }: LatestOrder, nowMs: number): number {
  if (lastMs === undefined || nextMs === undefined) return nowMs;
  // A clock that was set back must not delay the order.
  return Math.max(nowMs, Math.min(nextMs, Math.min(lastMs, nowMs) + acmeRestartMs));
}
