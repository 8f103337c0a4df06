import { Failure } from '../../values/failure.ts';
import type { Caller } from '../../values/key.ts';
import { keyRatesRemembered } from '../../../modules/keys/limits.ts';
import { createLruCache } from '../../values/lru-cache.ts';

/** Counts the operations of each key; outlives a reload of the configuration. */
export interface KeyRates {
  /** Counts an operation. Throws `rate_limited` if the caller's key has used up its rate. */
  count(caller: Pick<Caller, 'keyId' | 'rate'>): void;
}

const secondMs = 1000;

/**
 * Limits the rate of each key (docs/design/failures.md#keys) by the generic cell rate algorithm
 * (GCRA): a key may call the operations of one second at once, over any number of connections. Its
 * state is the time at which it may do so again; a refused operation does not change it.
 * `monotonicMs` measures durations. Each process counts for itself.
 */
export function createKeyRates({ monotonicMs }: { readonly monotonicMs: () => number }): KeyRates {
  const restedAtMs = createLruCache<number>(keyRatesRemembered);
  return {
    count({ keyId, rate }) {
      if (keyId === undefined || rate === undefined) return;
      const nowMs = monotonicMs();
      const restedMs = Math.max(restedAtMs.get(keyId) ?? nowMs, nowMs) + secondMs / rate;
      const waitMs = restedMs - nowMs - secondMs;
      // Sums of fractions are not exact.
      if (waitMs > secondMs / rate / 2) {
        throw new Failure(
          'rate_limited',
          `This key may call ${rate} operations a second. Wait, or call fewer.`,
          {
            retryAfterSeconds: Math.ceil(waitMs / secondMs),
          },
        );
      }
      restedAtMs.set(keyId, restedMs);
    },
  };
}
