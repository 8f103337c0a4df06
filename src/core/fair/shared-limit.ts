import { addressNetwork } from '../values/network/cidr.ts';
import { Failure } from '../values/failure.ts';
import type { Caller } from '../values/key.ts';
import type { LimitName } from '../values/limit.ts';

/** The sizes of a limit that all clients of a process share. */
export interface Shares {
  /** The limited things in the plural, for messages. */
  readonly what: string;
  /** The name of the limit in the log. */
  readonly limit: LimitName;
  readonly max: number;
  /** For all callers without a key; the rest is for callers with a key. */
  readonly withoutKeyMax: number;
  /** For callers without a key from one address, or IPv6 network of 64 bits. */
  readonly perAddressMax: number;
  readonly perKeyMax: number;
}

/** Counts what clients use of a limit that all of them share. */
export class SharedLimit {
  readonly #shares: Shares;
  readonly #held = new Map<string, number>();
  #all = 0;
  #withoutKey = 0;

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  /** The amount that all clients use together. */
  get size(): number {
    return this.#all;
  }

  /** Creates an allocation of a caller; it is empty at first. */
  allocation(caller: Pick<Caller, 'keyId' | 'address'>): Allocation {
    return new Allocation(this, caller);
  }

  /**
   * Takes an amount for a caller. Throws `rate_limited` if the caller exceeds its share, and
   * `unavailable` if all clients together exceed the limit.
   */
  take({ keyId, address }: Pick<Caller, 'keyId' | 'address'>, amount: number): void {
    const { what, limit, max, withoutKeyMax, perAddressMax, perKeyMax } = this.#shares;
    const client = clientName(keyId, address);
    const held = (this.#held.get(client) ?? 0) + amount;
    const share = keyId === undefined ? perAddressMax : perKeyMax;
    if (held > share) {
      const holder = keyId === undefined ? 'address' : 'key';
      throw new Failure('rate_limited', `This ${holder} has too many ${what} at the same time.`, {
        retryAfterSeconds: 1,
        limit,
      });
    }
    const isFull = this.#all + amount > max;
    if (isFull || (keyId === undefined && this.#withoutKey + amount > withoutKeyMax)) {
      throw new Failure('unavailable', `The server has too many ${what} at the moment.`, {
        retryAfterSeconds: 1,
        limit,
      });
    }
    this.#add(keyId, client, amount);
  }

  /** Releases an amount of a caller. */
  giveBack({ keyId, address }: Pick<Caller, 'keyId' | 'address'>, amount: number): void {
    this.#add(keyId, clientName(keyId, address), -amount);
  }

  #add(keyId: string | undefined, client: string, amount: number): void {
    const held = (this.#held.get(client) ?? 0) + amount;
    if (held > 0) this.#held.set(client, held);
    else this.#held.delete(client);
    this.#all += amount;
    if (keyId === undefined) this.#withoutKey += amount;
  }
}

function clientName(keyId: string | undefined, address: string): string {
  return keyId === undefined ? addressNetwork(address) : `key ${keyId}`;
}

/** The amount that one caller uses of a shared limit, for one purpose. */
export class Allocation {
  readonly #limit: SharedLimit;
  readonly #caller: Pick<Caller, 'keyId' | 'address'>;
  #amount = 0;

  constructor(limit: SharedLimit, caller: Pick<Caller, 'keyId' | 'address'>) {
    this.#limit = limit;
    this.#caller = caller;
  }

  /** Takes more; throws as SharedLimit.take does. */
  grow(amount: number): void {
    this.#limit.take(this.#caller, amount);
    this.#amount += amount;
  }

  /** Releases the whole amount. */
  free(): void {
    if (this.#amount > 0) this.#limit.giveBack(this.#caller, this.#amount);
    this.#amount = 0;
  }
}
