import { keyOf } from './encoding.ts';
import type { VkClaim } from './store.ts';

const derivedPrefix = 'fields:';
const hashHex = /^[0-9a-f]{64}$/;
/** This byte never occurs in UTF-8, so derived keys cannot collide with other vks. */
const derivedMark = 'ff';

/** A claim with the change that it belongs to. */
export interface SeqClaim extends VkClaim {
  readonly seq: number;
}

/**
 * The key under which a vk is stored. A derived vk is stored as the bytes of its hash: almost every
 * insert has one, in random order, so shorter keys let a large import write fewer pages of the
 * tree.
 */
export function claimKey(vk: string): Buffer {
  return keyFor(vk, derivedHash(vk));
}

function keyFor(vk: string, hex: string | undefined): Buffer {
  return hex === undefined ? keyOf(vk) : Buffer.from(derivedMark + hex, 'hex');
}

/** A claim as it is stored: its key, then its seq, and its hash if the key does not hold it. */
export function packClaim({ vk, requestHash, seq }: SeqClaim): readonly [Buffer, string] {
  const hex = derivedHash(vk);
  return [keyFor(vk, hex), hex === requestHash ? String(seq) : `${seq} ${requestHash}`];
}

/** The claim that is stored under a vk. */
export function unpackClaim(vk: string, value: string): SeqClaim {
  const space = value.indexOf(' ');
  if (space < 0) return { vk, seq: Number(value), requestHash: derivedHash(vk) ?? '' };
  return { vk, seq: Number(value.slice(0, space)), requestHash: value.slice(space + 1) };
}

/** Returns the request hash that a vk derived from the fields of an insert contains. */
function derivedHash(vk: string): string | undefined {
  if (!vk.startsWith(derivedPrefix)) return undefined;
  const hex = vk.slice(derivedPrefix.length);
  return hashHex.test(hex) ? hex : undefined;
}
