import { Failure } from '../../model/failure.ts';
import type { Caller } from '../../model/key.ts';
import { keyRatesRemembered } from './limits.ts';
import { createLruCache } from '../../model/lru-cache.ts';

/** How many operations each key has called of late; outlives a reload of the configuration. */
export interface KeyRates {
  /** Counts an operation of a caller. Throws `rate_limited` when its key has used up its rate. */
  count(caller: Pick<Caller, 'keyId' | 'rate'>): void;
}

const secondMs = 1000;

/**
 * Holds keys to their rates (docs/design/failures.md#keys): a key may save up the operations of one
 * second and spend them at once, over however many connections. The state of a key is the moment at
 * which it will have saved them all up again, known as GCRA; a refused operation does not move it.
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
        throw new Failure('rate_limited', `This key may call ${rate} operations a second.`, {
          retryAfterSeconds: Math.ceil(waitMs / secondMs),
        });
      }
      restedAtMs.set(keyId, restedMs);
    },
  };
}
