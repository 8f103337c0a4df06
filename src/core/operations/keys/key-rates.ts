import { Failure } from '../../values/failure.ts';
import type { Caller } from '../../values/key.ts';
import { takeAll, type TokenCounter } from '../../fair/token-buckets.ts';

/** Counts the operations of each key; outlives a reload of the configuration. */
export interface KeyRates {
  /** Counts an operation. Throws `rate_limited` if the caller's key has used up its rate. */
  count(caller: Pick<Caller, 'keyId' | 'rate'>): void;
}

/**
 * Limits the rate of each key (docs/design/failures.md#keys): a key may call the operations of one
 * second at once, over any number of connections; a refused operation does not count.
 */
export function createKeyRates(counter: TokenCounter): KeyRates {
  return {
    count({ keyId: client, rate }) {
      if (client === undefined || rate === undefined) return;
      const intervalMs = 1_000 / rate;
      const order = { rate: 'operations of a key', client, intervalMs, burst: rate };
      const retryAfterSeconds = takeAll(counter, [order]);
      if (retryAfterSeconds === 0) return;
      const message = `This key may call ${rate} operations a second. Wait, or call fewer.`;
      throw new Failure('rate_limited', message, { retryAfterSeconds });
    },
  };
}
