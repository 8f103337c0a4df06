import { hash } from 'node:crypto';

/** Keys and sorted values of LMDB, with its pages of 4 KiB, are at most this long. */
export const keyBytesMax = 1978;

/** The greatest seq that keys have room for. */
export const seqMax = 0xffff_ffff;

/** Marks a hash where a key starts, and ends an id in front of a seq. */
const nul = Buffer.from([0]);
const seqBytes = 4;
/** A NUL and a SHA-256. */
const hashedBytes = 33;

/**
 * The bytes under which a text is found: its UTF-8, or a mark and its SHA-256 where LMDB has no
 * room for it or UTF-8 no bytes (lone surrogates). Different texts have different bytes.
 */
export function keyOf(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > 0 && bytes.length <= keyBytesMax && bytes[0] !== 0 && text.isWellFormed()) {
    return bytes;
  }
  return hashed(text);
}

/** What all history keys of a record start with, and no other key does. */
export function historyPrefix(id: string): Buffer {
  const bytes = keyOf(id);
  // NUL ends the id; one that has it itself, or fills the key, is hashed to a fixed length.
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
