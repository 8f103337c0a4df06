/** When a certificate is valid, as server.status says it. */
export interface Validity {
  readonly valid_from: string | null;
  readonly valid_until: string | null;
}

const warnMs = 14 * 86_400_000;

/**
 * Whether a certificate should have been renewed: in the last sixth of its time, and not before its
 * last 14 days. The server renews one of ACME when a third is left.
 */
export function endsSoon({ valid_from: from, valid_until: until }: Validity): boolean {
  if (until === null) return false;
  const endMs = Date.parse(until);
  const lifeMs = from === null ? Infinity : endMs - Date.parse(from);
  return endMs - Date.now() < Math.min(warnMs, lifeMs / 6);
}
