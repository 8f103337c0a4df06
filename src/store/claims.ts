import { keyOf } from './key-bytes.ts';
import type { VkClaim } from './store.ts';

const derivedPrefix = 'fields:';
const hashHex = /^[0-9a-f]{64}$/;
/** No UTF-8 has this byte, so that no other vk stands where the derived ones do. */
const derivedMark = 'ff';

/** A claim with the change that it was made for. */
export interface SeqClaim extends VkClaim {
  readonly seq: number;
}

/**
 * The bytes under which a vk is remembered. A derived one is kept as the bytes of its hash: there
 * is one to almost every insert, in no order, so that the shorter they are, the fewer pages of the
 * tree a large import has to write.
 */
export function claimKey(vk: string): Buffer {
  const hex = derivedHash(vk);
  return hex === undefined ? keyOf(vk) : Buffer.from(derivedMark + hex, 'hex');
}

/** A claim as it is kept: its seq, and its hash where the key does not say it. */
export function packClaim({ vk, requestHash, seq }: SeqClaim): string {
  return derivedHash(vk) === requestHash ? String(seq) : `${seq} ${requestHash}`;
}

/** The claim that is kept under a vk. */
export function unpackClaim(vk: string, value: string): SeqClaim {
  const space = value.indexOf(' ');
  if (space < 0) return { vk, seq: Number(value), requestHash: derivedHash(vk) ?? '' };
  return { vk, seq: Number(value.slice(0, space)), requestHash: value.slice(space + 1) };
}

/** The hash in a vk made of the fields of an insert, which is that of the request itself. */
function derivedHash(vk: string): string | undefined {
  if (!vk.startsWith(derivedPrefix)) return undefined;
  const hex = vk.slice(derivedPrefix.length);
  return hashHex.test(hex) ? hex : undefined;
}
