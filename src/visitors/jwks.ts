import { Readable } from 'node:stream';
import { jwksBytesMax } from '../model/limits.ts';
import { jwksFreshMs, jwksRetryMs, jwksStaleMs } from './limits.ts';
import type { Dialler } from '../outbound/dialler.ts';
import type { SourceResponse } from '../outbound/exchange.ts';
import type { JWTVerifyGetKey } from 'jose';
import { JWKSNoMatchingKey } from 'jose/errors';
import { createLocalJWKSet } from 'jose/jwks/local';

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

/**
 * Fetches a JWK Set (RFC 7517 §5) from its URL. Rejects with what the dialler refuses, and for an
 * answer that is not 200, too large, not whole in time or no JSON; redirects are not followed.
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
  // Leaving the loop early destroys the stream, and with it the exchange.
  for await (const chunk of Readable.from(content) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > jwksBytesMax) throw new Error(`${url.href} has more than ${jwksBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
