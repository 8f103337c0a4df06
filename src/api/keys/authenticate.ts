import { createHash, timingSafeEqual } from 'node:crypto';
import { Failure } from '../../model/failure.ts';
import { addressNetwork } from '../../model/cidr.ts';
import type { Caller, ApiKey, Scope } from '../../model/key.ts';
import { wrongKeyAddressesMax, wrongKeysPerMinuteMax } from './limits.ts';
import { createLruCache } from '../../model/lru-cache.ts';

const minuteMs = 60_000;

/** What authentication reads of the store. */
interface KeyReads {
  keyByHash(hash: string): ApiKey | undefined;
}

/** The kept form of an API key: its SHA-256 in lower-case hex. */
export function keyHash(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Counts wrong keys by address over a sliding minute; outlives a reload of the configuration. */
interface WrongKeys {
  /** Counts one. Throws `rate_limited` where its address has sent too many of late. */
  count(address: string): void;
}

/**
 * Counts wrong keys (docs/design/failures.md#keys: 20 a minute from one address, or IPv6 network of
 * 64 bits), for a bounded number of addresses.
 */
export function createWrongKeys({ now }: { readonly now: () => number }): WrongKeys {
  const times = createLruCache<readonly number[]>(wrongKeyAddressesMax);
  return {
    count(address) {
      const client = addressNetwork(address);
      const recent = (times.get(client) ?? []).filter((time) => time > now() - minuteMs);
      const [oldest = now()] = recent;
      if (recent.length >= wrongKeysPerMinuteMax) {
        throw new Failure('rate_limited', 'This address has sent too many wrong API keys.', {
          retryAfterSeconds: Math.max(1, Math.ceil((oldest + minuteMs - now()) / 1000)),
          limit: 'wrong_keys',
        });
      }
      times.set(client, [...recent, now()]);
    },
  };
}

/** Tells who a caller is by the API key sent; without one, a caller with the anonymous scopes. */
export type Authenticate = (sent: {
  readonly apikey: string | undefined;
  readonly address: string;
}) => Caller;

/**
 * Makes the check of API keys (docs/design/failures.md#keys). It throws `unauthenticated` for a key
 * that is unknown or revoked, and `rate_limited` after too many of those from one address. A right
 * key always passes: a page of any other site can send wrong ones from the address of its visitor.
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
export function requireUnrevoked(
  keys: { key(id: string): ApiKey | undefined },
  caller: Caller,
): void {
  if (caller.keyId === undefined || keys.key(caller.keyId) !== undefined) return;
  throw new Failure('unauthenticated', 'The API key has been revoked.');
}
