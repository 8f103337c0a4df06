import { addressNetwork } from '../../../core/values/network/cidr.ts';
import { Failure } from '../../../core/values/failure.ts';
import { createLruCache } from '../../../core/values/lru-cache.ts';
import type { Metric } from '../../../core/report/metrics.ts';
import { anonymousAddressesMax, anonymousWritesPerMinuteMax } from './limits.ts';

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
 * Limits the anonymous writes of each address, or IPv6 network of 64 bits, over a sliding minute,
 * for a bounded number of addresses. It outlives a reload of the configuration; each process counts
 * for itself. `monotonicMs` measures durations.
 */
export function createAnonymousWrites({
  monotonicMs,
}: {
  readonly monotonicMs: () => number;
}): AnonymousWrites {
  const times = createLruCache<readonly number[]>(anonymousAddressesMax);
  let discarded = 0;
  return {
    count(address) {
      const client = addressNetwork(address);
      const nowMs = monotonicMs();
      const recent = (times.get(client) ?? []).filter((time) => time > nowMs - minuteMs);
      const [oldest = nowMs] = recent;
      if (recent.length >= anonymousWritesPerMinuteMax) {
        throw new Failure('rate_limited', 'This address has sent too many forms. Wait a minute.', {
          retryAfterSeconds: Math.max(1, Math.ceil((oldest + minuteMs - nowMs) / 1000)),
          limit: 'anonymous_writes',
        });
      }
      times.set(client, [...recent, nowMs]);
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
