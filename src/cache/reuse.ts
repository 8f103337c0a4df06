import { staleUnreachableMsMax } from './limits.ts';
import { ageMs, remainingMs, type Freshness } from './freshness.ts';
import type { RequestDirectives } from './request-directives.ts';

/**
 * How a stored response is used (RFC 9111 §4): fresh, stale, stale while it is validated (RFC 5861
 * §3), or only after validation.
 */
export type Reuse = 'fresh' | 'stale' | 'while_revalidating' | 'validate';

/** Decides how a stored response is used at a moment. */
export function reuseOf(freshness: Freshness, directives: RequestDirectives, nowMs: number): Reuse {
  if (freshness.isValidatedAlways || directives.noCache) return 'validate';
  if (ageMs(freshness, nowMs) > directives.maxAgeMs) return 'validate';
  const remaining = remainingMs(freshness, nowMs);
  if (remaining > 0 && remaining >= directives.minFreshMs) return 'fresh';
  // A request with min-fresh accepts no stale response.
  if (directives.minFreshMs > 0 || freshness.isNeverStale) return 'validate';
  if (directives.maxStaleMs > 0 && -remaining <= directives.maxStaleMs) return 'stale';
  return -remaining < freshness.staleWhileRevalidateMs ? 'while_revalidating' : 'validate';
}

/**
 * Whether a stale response may be served because the source is unreachable or returned an error
 * (RFC 9111 §4.2.4, RFC 5861 §4).
 */
export function mayServeStale(
  freshness: Freshness,
  failure: 'unreachable' | 'error',
  directives: RequestDirectives,
  nowMs: number,
): boolean {
  if (freshness.isNeverStale || directives.noCache) return false;
  if (ageMs(freshness, nowMs) > directives.maxAgeMs) return false;
  const staleMs = -remainingMs(freshness, nowMs);
  const unreachableMs = failure === 'unreachable' ? staleUnreachableMsMax : 0;
  const allowedMs = Math.max(freshness.staleIfErrorMs, directives.staleIfErrorMs, unreachableMs);
  return staleMs <= allowedMs && allowedMs > 0;
}
