import { hash } from 'node:crypto';
import { Failure } from '../model/failure.ts';
import type { VkClaim } from './store.ts';

/** The longest key or sorted value that LMDB allows with pages of 4 KiB. */
export const keyBytesMax = 1978;

/** The greatest seq that keys have room for. */
export const seqMax = 0xffff_ffff;

/** Marks a hash where a key starts, and ends an id in front of a seq. */
const nul = Buffer.from([0]);
const seqBytes = 4;
/** A NUL and a SHA-256. */
const hashedBytes = 33;

/**
 * The key for a text: its UTF-8, or a mark and its SHA-256 if it is too long for LMDB or not
 * encodable in UTF-8 (lone surrogates). Different texts have different keys.
 */
export function keyOf(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > 0 && bytes.length <= keyBytesMax && bytes[0] !== 0 && text.isWellFormed()) {
    return bytes;
  }
  return hashed(text);
}

/** The common prefix of all history keys of a record; no other key starts with it. */
export function historyPrefix(id: string): Buffer {
  const bytes = keyOf(id);
  // NUL ends the id. An id that contains NUL or is too long is replaced by its hash.
  const fits = bytes.length < keyBytesMax - seqBytes && !id.includes('\0');
  const prefix = Buffer.allocUnsafe((fits ? bytes.length : hashedBytes) + 1);
  prefix.set(fits ? bytes : hashed(id));
  prefix[prefix.length - 1] = 0;
  return prefix;
}

/** The key of one row in the history of a record, in the order of seq. */
export function historyKey(prefix: Buffer, seq: number): Buffer {
  const key = Buffer.allocUnsafe(prefix.length + seqBytes);
  key.set(prefix);
  key.writeUInt32BE(seq, prefix.length);
  return key;
}

function hashed(text: string): Buffer {
  return Buffer.concat([nul, hash('sha256', JSON.stringify(text), 'buffer')]);
}

/** Parses a value of the store. Throws `unavailable` for a value that is damaged on the disk. */
export function storedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Failure(
      'unavailable',
      'Stored data is damaged and cannot be read. Run `waymark check --data` to find the place.',
      { cause },
    );
  }
}

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
  const hex = derivedHash(vk);
  return hex === undefined ? keyOf(vk) : Buffer.from(derivedMark + hex, 'hex');
}

/** A claim as it is stored: its seq, and its hash if the key does not hold it. */
export function packClaim({ vk, requestHash, seq }: SeqClaim): string {
  return derivedHash(vk) === requestHash ? String(seq) : `${seq} ${requestHash}`;
}

/** The claim that is stored under a vk. */
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
