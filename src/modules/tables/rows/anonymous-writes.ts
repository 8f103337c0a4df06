import { type TokenCounter, takeAll } from '../../../core/fair/token-buckets.ts';
import type { Metric } from '../../../core/report/metrics.ts';
import { Failure } from '../../../core/values/failure.ts';
import { addressNetwork } from '../../../core/values/network/cidr.ts';

/** Writes without a key or user that one address may send in a minute. */
export const anonymousWritesPerMinuteMax = 30;

/** Limits the writes of callers without a key or user, and counts the discarded ones. */
export interface AnonymousWrites {
  /** Counts a write. Throws `rate_limited` if its address has sent too many in the last minute. */
  count(address: string): void;
  /** Counts a write that had a value in the field that people leave empty. */
  discard(): void;
  metrics(): readonly Metric[];
}

const minuteMs = 60_000;

/**
 * Limits the anonymous writes of each address, or IPv6 network of 64 bits. It outlives a reload of
 * the configuration.
 */
export function createAnonymousWrites(counter: TokenCounter): AnonymousWrites {
  let discarded = 0;
  const intervalMs = minuteMs / anonymousWritesPerMinuteMax;
  return {
    count(address) {
      const client = addressNetwork(address);
      const order = { rate: 'forms', client, intervalMs, burst: anonymousWritesPerMinuteMax };
      const retryAfterSeconds = takeAll(counter, [order]);
      if (retryAfterSeconds === 0) return;
      const message = 'This address has sent too many forms. Wait a minute.';
      throw new Failure('rate_limited', message, { retryAfterSeconds, limit: 'anonymous_writes' });
    },
    discard() {
      discarded += 1;
    },
    metrics: () => [
      {
        name: 'waymark_discarded_forms_total',
        help: 'Forms that were not stored because their honeypot field had a value.',
        type: 'counter',
        samples: [{ labels: {}, value: discarded }],
      },
    ],
  };
}
