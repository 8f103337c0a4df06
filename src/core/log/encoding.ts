import { hash } from 'node:crypto';
import { Failure } from '../values/failure.ts';
import { parseJson } from '../values/json/parse.ts';

/** The longest key or sorted value that LMDB allows with pages of 4 KiB. */
export const keyBytesMax = 1978;

/** The greatest seq that keys have room for. */
export const seqMax = 0xffff_ffff;

/** Marks a hash where a key starts, and ends an id in front of a seq. */
const nul = Buffer.from([0]);
/** The bytes of a seq in a key. */
export const seqBytes = 4;
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

/** `historyKey` of an id with its prefix; most ids are UUIDs, which need no hash. */
export function historyKeyOf(id: string, seq: number): Buffer {
  if (!plainId.test(id)) return historyKey(historyPrefix(id), seq);
  const key = Buffer.allocUnsafe(id.length + 1 + seqBytes);
  key.write(id, 'latin1');
  key[id.length] = 0;
  key.writeUInt32BE(seq, id.length + 1);
  return key;
}

const plainId = /^[0-9a-z-]{1,100}$/;

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
    return parseJson(text);
  } catch (cause) {
    throw new Failure(
      'unavailable',
      'Stored data is damaged and cannot be read. Run `waymark check --data` to find the place.',
      { cause },
    );
  }
}
