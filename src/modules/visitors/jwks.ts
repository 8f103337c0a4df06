import { Readable } from 'node:stream';
import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { jwksBytesMax } from '../../core/config/limits.ts';
import type { Dialler } from '../../core/outbound/dialler.ts';
import type { SourceResponse } from '../../core/outbound/exchange.ts';
import { loadJose } from '../../core/values/lazy-packages.ts';

/** Keys are fetched again at this age … */
export const jwksFreshMs = 600_000;

/** … for a token with an unknown key, or after a failure, no sooner than after this time … */
export const jwksRetryMs = 30_000;

/** … and are not used beyond this age if they cannot be fetched. */
export const jwksStaleMs = 86_400_000;

/** The keys that tokens are verified with (RFC 7517). */
export interface KeySet {
  /** The key of a token; rejects if there is none, or if the keys are not available. */
  readonly keyOf: JWTVerifyGetKey;
}

/** Fetched keys and their time. */
interface FetchedKeys {
  readonly keys: JWTVerifyGetKey;
  readonly atMs: number;
}

/**
 * Creates a key set that calls `fetchKeys`, which resolves to an unparsed JWK Set: for the first
 * token, and again when the keys are old or a token names an unknown one, since issuers do not
 * announce when keys change. Meanwhile it uses the previous keys. After a failure it waits a while
 * before it tries again; it reports each failure to `failed`.
 */
export function createRemoteKeySet({
  fetchKeys,
  now,
  failed,
}: {
  readonly fetchKeys: () => Promise<unknown>;
  readonly now: () => number;
  readonly failed: (error: unknown) => void;
}): KeySet {
  let current: FetchedKeys | undefined;
  let triedMs = -Infinity;
  let pending: Promise<void> | undefined;

  async function fetchOnce(): Promise<void> {
    triedMs = now();
    try {
      const keys = loadJose().createLocalJWKSet((await fetchKeys()) as JSONWebKeySet);
      current = { keys, atMs: now() };
    } catch (error) {
      failed(error);
    }
  }

  /** Fetches the keys, unless the last attempt was too recent. */
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
    if (current === undefined) throw keysUnknown();
    return current.keys;
  }

  return {
    async keyOf(header, token) {
      const keys = await keysNow();
      try {
        return await keys(header, token);
      } catch (error) {
        if (!(error instanceof loadJose().JWKSNoMatchingKey)) throw error;
        await refresh();
        return (current?.keys ?? keys)(header, token);
      }
    },
  };
}

/** The error for a token while there are no keys. */
export function keysUnknown(): Error {
  return new (loadJose().JWKSNoMatchingKey)('the keys are not known');
}

/**
 * Fetches a JWK Set (RFC 7517 §5) from its URL; does not follow redirects. Rejects as the dialler
 * does, and for an answer that is not 200, too large, too slow or not JSON.
 */
export async function fetchJwks(
  dialler: Dialler,
  url: URL,
  { timeoutMs }: { readonly timeoutMs: number },
): Promise<unknown> {
  const signal = AbortSignal.timeout(timeoutMs);
  const answer = await dialler.send({
    origin: url.origin,
    target: url.pathname + url.search,
    method: 'GET',
    fields: ['Accept', 'application/jwk-set+json, application/json'],
    body: undefined,
    signal,
  });
  if (answer.status !== 200) {
    answer.discard();
    throw new Error(`${url.href} answered ${answer.status}`);
  }
  return JSON.parse((await contentOf(answer, url)).toString()) as unknown;
}

async function contentOf(answer: SourceResponse, url: URL): Promise<Buffer> {
  const content = answer.content();
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop early destroys the stream, and so aborts the request.
  for await (const chunk of Readable.from(content) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > jwksBytesMax) throw new Error(`${url.href} has more than ${jwksBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
