import { Failure } from '../../values/failure.ts';
import type { Caller } from '../../values/key.ts';
import { takeAll, type TokenCounter, type TokenOrder } from '../../fair/token-buckets.ts';

/** Sessions that may be made of a key in a minute: the log has each, whatever the key may write. */
export const sessionsPerMinuteMax = 60;

type Rated = Pick<Caller, 'keyId' | 'rate'>;

/** Counts the operations of each key; outlives a reload of the configuration. */
export interface KeyRates {
  /** Counts an operation. Throws `rate_limited` if the caller's key has used up its rate. */
  count(caller: Rated): void;
  /** Counts a sign-in with a key, also as an operation. Throws `rate_limited`. */
  countSignIn(caller: Rated): void;
}

/**
 * Limits the rate of each key (docs/design/failures.md#keys): a key may call the operations of one
 * second at once, over any number of connections; a refused operation does not count.
 */
export function createKeyRates(counter: TokenCounter): KeyRates {
  const take = (order: TokenOrder, message: string): void => {
    const retryAfterSeconds = takeAll(counter, [order]);
    if (retryAfterSeconds > 0) throw new Failure('rate_limited', message, { retryAfterSeconds });
  };
  const count = ({ keyId: client, rate }: Rated): void => {
    if (client === undefined || rate === undefined) return;
    take(
      { rate: 'operations of a key', client, intervalMs: 1_000 / rate, burst: rate },
      `This key may call ${rate} operations a second. Wait, or call fewer.`,
    );
  };
  return {
    count,
    countSignIn(caller) {
      count(caller);
      const { keyId: client } = caller;
      if (client === undefined) return;
      const burst = sessionsPerMinuteMax;
      take(
        { rate: 'sessions of a key', client, intervalMs: 60_000 / burst, burst },
        `${burst} sessions in a minute have been made of this key. Wait, or use one of them.`,
      );
    },
  };
}
