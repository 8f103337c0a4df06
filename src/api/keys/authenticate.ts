import { createHash, timingSafeEqual } from 'node:crypto';
import { Failure } from '../../model/failure.ts';
import { addressNetwork } from '../../model/cidr.ts';
import type { Caller, ApiKey, Scope } from '../../model/key.ts';
import { wrongKeyAddressesMax, wrongKeysPerMinuteMax } from './limits.ts';
import { createLruCache } from '../../model/lru-cache.ts';

const minuteMs = 60_000;

/** The reads that authentication needs. */
interface KeyReads {
  keyByHash(hash: string): ApiKey | undefined;
}

/** The form in which an API key is stored: its SHA-256 in lower-case hex. */
export function keyHash(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Counts wrong keys by address over a sliding minute; outlives a reload of the configuration. */
interface WrongKeys {
  /** Counts one. Throws `rate_limited` if its address has sent too many in the last minute. */
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
        throw new Failure(
          'rate_limited',
          'This address has sent too many wrong API keys. Send the right one, or wait.',
          {
            retryAfterSeconds: Math.max(1, Math.ceil((oldest + minuteMs - now()) / 1000)),
            limit: 'wrong_keys',
          },
        );
      }
      times.set(client, [...recent, now()]);
    },
  };
}

/** The caller of a request by its API key; without a key, one with the anonymous scopes. */
export type Authenticate = (sent: {
  readonly apikey: string | undefined;
  readonly address: string;
}) => Caller;

/**
 * Makes the check of API keys (docs/design/failures.md#keys). It throws `unauthenticated` for an
 * unknown or revoked key, and `rate_limited` after too many of those from one address. A right key
 * always passes, because any web page can send wrong ones from the address of its visitor.
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
    // A caller with a key may do all that anonymous callers may do.
    const scopes = new Set([...anonymous, ...key.scopes]);
    return { scopes, keyId: key.id, rate: key.rate ?? keyRate, address };
  };
}

/**
 * Checks the caller of a long connection again: throws `unauthenticated` if its key has been
 * revoked since.
 */
export function requireUnrevoked(
  keys: { key(id: string): ApiKey | undefined },
  caller: Caller,
): void {
  if (caller.keyId === undefined || keys.key(caller.keyId) !== undefined) return;
  throw new Failure('unauthenticated', 'The API key has been revoked.');
}
