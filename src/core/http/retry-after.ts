import { parseHttpDate } from './date.ts';

/**
 * Parses Retry-After (RFC 9110 §10.2.3) into milliseconds to wait, at most `msMax`; undefined if it
 * is missing or malformed. A date counts from `nowMs`, milliseconds since 1970.
 */
export function readRetryAfter(
  field: string | undefined,
  { nowMs, msMax }: { readonly nowMs: number; readonly msMax: number },
): number | undefined {
  if (field === undefined) return undefined;
  const text = field.trim();
  const waitMs = /^\d+$/.test(text)
    ? Number(text) * 1000
    : (parseHttpDate(text, nowMs) ?? NaN) - nowMs;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), msMax);
}
