import { Readable } from 'node:stream';
import { jwksBytesMax } from '../model/limits.ts';
import type { Dialler } from '../outbound/dialler.ts';
import type { SourceResponse } from '../outbound/exchange.ts';

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
