import { hash } from 'node:crypto';
import { Failure } from '../../model/failure.ts';
import { canonicalJson, type Json } from '../../model/json.ts';
import type { Reads, StoredVkClaim } from '../../store/store.ts';

/** Lower-case hex SHA-256 of a request in canonical form, by which two requests are the same. */
export function requestHashOf(request: Json): string {
  return hash('sha256', canonicalOf(request));
}

/** Only Unicode text and numbers that JSON can write have a canonical form (RFC 8785 §3.2). */
function canonicalOf(request: Json): string {
  try {
    return canonicalJson(request);
  } catch (error) {
    throw new Failure(
      'invalid',
      'A text is not Unicode (it has half a surrogate pair), or a number is too large.',
      { cause: error },
    );
  }
}

/**
 * What an earlier request with the same vk wrote; undefined where there was none. Fails with
 * `conflict` where that was another request (docs/design/history.md#idempotency-and-concurrency).
 */
export function earlierClaim(
  reads: Reads,
  { vk, requestHash }: { readonly vk: string; readonly requestHash: string },
): StoredVkClaim | undefined {
  const claim = reads.vkClaim(vk);
  if (claim === undefined || claim.requestHash === requestHash) return claim;
  throw new Failure('conflict', 'This vk was used before, for another request.', { field: 'vk' });
}
