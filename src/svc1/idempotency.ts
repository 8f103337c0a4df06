import { createHash } from 'node:crypto';
import { Failure } from '../model/failure.ts';
import { canonicalJson, type Json } from '../model/json.ts';
import type { Reads, StoredVkClaim } from '../store/store.ts';

/** Lower-case hex SHA-256 of a request in canonical form, by which two requests are the same. */
export function requestHashOf(request: Json): string {
  return createHash('sha256').update(canonicalJson(request)).digest('hex');
}

/**
 * What an earlier request with the same vk wrote; undefined where there was none. Fails with
 * `conflict` where that was another request (contract §4.4).
 */
export function earlierClaim(
  reads: Reads,
  { vk, requestHash }: { readonly vk: string; readonly requestHash: string },
): StoredVkClaim | undefined {
  const claim = reads.vkClaim(vk);
  if (claim === undefined || claim.requestHash === requestHash) return claim;
  throw new Failure('conflict', 'This vk was used before, for another request.', { field: 'vk' });
}
