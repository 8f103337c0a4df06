import { hash } from 'node:crypto';
import { Failure } from '../../model/failure.ts';
import { canonicalJson, type Json } from '../../model/json.ts';
import type { Reads, StoredVkClaim, VkClaim } from '../../store/store.ts';

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

/** A request with its vk, and the id of the key that sent it. */
interface KeyedRequest extends VkClaim {
  readonly by: string;
}

/**
 * The name under which a vk is remembered: each key has vks of its own, and one that the server
 * makes of the fields is the same for all (docs/design/history.md#idempotency-and-concurrency).
 */
export function claimName({ by, vk, requestHash }: KeyedRequest): string {
  return vk === `fields:${requestHash}` ? vk : `${by}\n${vk}`;
}

/** What a key has used a vk for, if anything. */
export function findClaim(
  reads: Pick<Reads, 'vkClaim'>,
  request: KeyedRequest,
): StoredVkClaim | undefined {
  const claim = reads.vkClaim(claimName(request));
  if (claim !== undefined) return claim;
  // Waymark 0.1 remembered a vk without the key that sent it.
  const unnamed = reads.vkClaim(request.vk);
  return unnamed?.by === request.by ? unnamed : undefined;
}

/**
 * What an earlier request of the same key with the same vk wrote; undefined where there was none.
 * Fails with `conflict` where that was another request.
 */
export function earlierClaim(
  reads: Pick<Reads, 'vkClaim'>,
  request: KeyedRequest,
): StoredVkClaim | undefined {
  const claim = findClaim(reads, request);
  if (claim === undefined || claim.requestHash === request.requestHash) return claim;
  throw new Failure('conflict', 'This vk was used before, for another request.', { field: 'vk' });
}
