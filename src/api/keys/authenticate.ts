import { createHash, timingSafeEqual } from 'node:crypto';
import { Failure } from '../../model/failure.ts';
import type { Caller, Key, Scope } from '../../model/key.ts';
import { wrongKeyAddressesMax, wrongKeysPerMinuteMax } from '../../model/limits.ts';
import { remembered } from '../../model/remembered.ts';

const minuteMs = 60_000;

/** What authentication reads of the store. */
export interface KeyReads {
  keyByHash(hash: string): Key | undefined;
}

/** The kept form of an API key: its SHA-256 in lower-case hex. */
export function keyHash(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Wrong keys by address over a sliding minute; outlives a reload of the configuration. */
export interface WrongKeys {
  /** Throws `rate_limited` when the address has used up its wrong keys. */
  check(address: string): void;
  count(address: string): void;
}

/**
 * Counts wrong keys (contract §9: 20 a minute from one address), for a bounded number of addresses.
 */
export function createWrongKeys({ now }: { readonly now: () => number }): WrongKeys {
  const times = remembered<readonly number[]>(wrongKeyAddressesMax);

  function recent(address: string): readonly number[] {
    return (times.get(address) ?? []).filter((time) => time > now() - minuteMs);
  }

  return {
    check(address) {
      const [oldest, ...others] = recent(address);
      if (oldest === undefined || others.length + 1 < wrongKeysPerMinuteMax) return;
      throw new Failure('rate_limited', 'Too many wrong API keys from this address.', {
        retryAfterSeconds: Math.max(1, Math.ceil((oldest + minuteMs - now()) / 1000)),
      });
    },
    count(address) {
      times.set(address, [...recent(address), now()]);
    },
  };
}

/** Tells who a caller is by the API key sent; without one, a caller with the anonymous scopes. */
export type Authenticate = (sent: {
  readonly apikey: string | undefined;
  readonly address: string;
}) => Caller;

/**
 * Makes the check of API keys (contract §9). It throws `unauthenticated` for a key that is unknown
 * or revoked, and `rate_limited` after too many of those from one address, right keys then
 * included.
 */
export function createAuthenticate({
  keys,
  anonymous,
  keyRate,
  wrongKeys,
}: {
  readonly keys: KeyReads;
  readonly anonymous: readonly Scope[];
  /** Operations a second for a key without a rate of its own; undefined for any number. */
  readonly keyRate: number | undefined;
  readonly wrongKeys: WrongKeys;
}): Authenticate {
  const anonymousScopes: ReadonlySet<Scope> = new Set(anonymous);
  return ({ apikey, address }) => {
    if (apikey === undefined) {
      return { scopes: anonymousScopes, keyId: undefined, rate: undefined, address };
    }
    wrongKeys.check(address);
    const hash = keyHash(apikey);
    const key = keys.keyByHash(hash);
    if (key === undefined || !timingSafeEqual(Buffer.from(key.hash), Buffer.from(hash))) {
      wrongKeys.count(address);
      throw new Failure('unauthenticated', 'The API key is unknown or has been revoked.');
    }
    // A key never takes away what anybody may do without one.
    const scopes = new Set([...anonymous, ...key.scopes]);
    return { scopes, keyId: key.id, rate: key.rate ?? keyRate, address };
  };
}

/**
 * Holds a caller of a long connection against the store again: throws `unauthenticated` when its
 * key has been revoked since it was checked.
 */
export function requireUnrevoked(keys: { key(id: string): Key | undefined }, caller: Caller): void {
  if (caller.keyId === undefined || keys.key(caller.keyId) !== undefined) return;
  throw new Failure('unauthenticated', 'The API key has been revoked.');
}
