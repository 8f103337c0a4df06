/** A clock that goes forward with time alone, in milliseconds since about 1970. */
export type SteadyClock = () => number;

/**
 * Makes the clock by which deliveries are due: it starts from the time of day, or from where it was
 * when it was last written down if that is later, and from then on does not look at the time of day
 * again. So nothing that is done to that, while it runs or while it does not, makes deliveries come
 * all at once or wait for a day.
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
