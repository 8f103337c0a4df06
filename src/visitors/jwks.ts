import type { JWTVerifyGetKey } from 'jose';
import { JWKSNoMatchingKey } from 'jose/errors';
import { createLocalJWKSet } from 'jose/jwks/local';
import { jwksFreshMs, jwksRetryMs, jwksStaleMs } from '../model/limits.ts';

/** The keys by which tokens are verified (RFC 7517). */
export interface KeySet {
  /** The key of a token; rejects where there is none, or nobody knows the keys. */
  readonly keyOf: JWTVerifyGetKey;
}

/** Keys as they were fetched. */
interface Fetched {
  readonly keys: JWTVerifyGetKey;
  readonly atMs: number;
}

/**
 * Keeps the keys that `fetchKeys` brings, an unparsed JWK Set: fetched when they are first needed,
 * and again when they are old or a token asks for one that is not among them (RFC 7517 does not say
 * when keys change). Who verifies meanwhile has the former ones. A source that fails is left alone
 * for a while; `failed` is told.
 */
export function createKeySet({
  fetchKeys,
  now,
  failed,
}: {
  readonly fetchKeys: () => Promise<unknown>;
  readonly now: () => number;
  readonly failed: (error: unknown) => void;
}): KeySet {
  let current: Fetched | undefined;
  let triedMs = -Infinity;
  let pending: Promise<void> | undefined;

  async function fetchOnce(): Promise<void> {
    triedMs = now();
    try {
      const keys = createLocalJWKSet(
        (await fetchKeys()) as Parameters<typeof createLocalJWKSet>[0],
      );
      current = { keys, atMs: now() };
    } catch (error) {
      failed(error);
    }
  }

  /** Fetches the keys, unless that was tried a moment ago. */
  function refresh(): Promise<void> {
    if (pending === undefined && now() - triedMs >= jwksRetryMs) {
      pending = fetchOnce().finally(() => {
        pending = undefined;
      });
    }
    return pending ?? Promise.resolve();
  }

  async function keysNow(): Promise<JWTVerifyGetKey> {
    if (current === undefined || now() - current.atMs >= jwksStaleMs) {
      current = undefined;
      await refresh();
    } else if (now() - current.atMs >= jwksFreshMs) {
      void refresh();
    }
    if (current === undefined) throw new JWKSNoMatchingKey('the keys are not known');
    return current.keys;
  }

  return {
    async keyOf(header, token) {
      const keys = await keysNow();
      try {
        return await keys(header, token);
      } catch (error) {
        if (!(error instanceof JWKSNoMatchingKey)) throw error;
        await refresh();
        return (current?.keys ?? keys)(header, token);
      }
    },
  };
}
