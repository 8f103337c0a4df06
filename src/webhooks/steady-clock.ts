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
