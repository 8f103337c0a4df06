import { hash } from 'node:crypto';
import type { Scalar } from '../row.ts';
import { indexedStringBytesMax } from '../../../core/log/limits.ts';

/**
 * Keys of the databases of tables and rows: the name of the table, then what the database orders
 * by. Each part is delimited, so that the keys of one part never mix with those of another.
 */

/** Marks a hash that replaces a name. */
const hashMark = '\x01';
/** Bytes of UTF-8 for one unit of UTF-16, at most. */
const bytesPerUnitMax = 3;
/** The first byte of a value: values of different types sort in this order. */
const tags = { null: 1, false: 2, true: 3, number: 4, string: 5 } as const;
/** Follow the NUL that ends a string. A NUL within a string is followed by `escaped`. */
const [complete, cut, escaped] = [1, 2, 0xff] as const;
const numberBytes = 8;
const hashBytes = 32;
const partBytesMax = 200;

/** The start of all keys of a table, or of a part of them, such as a field or a word. */
export function keyPrefix(table: string, part?: string): Buffer {
  return Buffer.from(prefixText(table, part));
}

/** The key of a row of a table. */
export function rowInTable(table: string, id: string): Buffer {
  return Buffer.from(prefixText(table) + id);
}

/** The key of a value in `rowkey`: unique, except for rows without a key. */
export function rowKey(table: string, value: Scalar, id: string): Buffer {
  return valueKey(prefixText(table), value, value === null ? id : '');
}

/** The key of a value and a row in `rowindex`. */
export function indexKey(table: string, field: string, value: Scalar, id: string): Buffer {
  return valueKey(prefixText(table, field), value, id);
}

/** The key of a word and a row in `rowword`. */
export function wordKey(table: string, word: string, id: string): Buffer {
  return Buffer.from(prefixText(table, word) + id);
}

function valueKey(prefix: string, value: Scalar, id: string): Buffer {
  const bytes = orderedValue(value);
  const prefixBytes = Buffer.byteLength(prefix);
  const key = Buffer.allocUnsafe(prefixBytes + bytes.length + id.length);
  key.write(prefix);
  key.set(bytes, prefixBytes);
  key.write(id, prefixBytes + bytes.length, 'latin1');
  return key;
}

function prefixText(table: string, part?: string): string {
  return part === undefined ? `${table}\0` : `${table}\0${delimited(part)}\0`;
}

/** The end of all keys with a prefix, which is greater than each of them. */
export function prefixEnd(prefix: Buffer): Buffer {
  return Buffer.concat([prefix, Buffer.from([0xff])]);
}

/** A name as it is in a key: of a long one, or one with a control character, a hash. */
function delimited(part: string): string {
  const isShort = part.length * bytesPerUnitMax <= partBytesMax;
  const isPlain =
    (isShort || Buffer.byteLength(part) <= partBytesMax) &&
    !part.includes('\0') &&
    !part.includes(hashMark) &&
    part.isWellFormed();
  return isPlain ? part : hashMark + hash('sha256', JSON.stringify(part));
}

/**
 * The bytes of a value, which sort as the values do: by type, then numbers by size and strings by
 * code points. Different values have different bytes; of long strings, the order is that of their
 * first bytes.
 */
export function orderedValue(value: Scalar): Buffer {
  if (value === null) return Buffer.from([tags.null]);
  if (typeof value === 'boolean') return Buffer.from([value ? tags.true : tags.false]);
  return typeof value === 'number' ? orderedNumber(value) : orderedString(value);
}

/** The bytes with which the values of the type of a value begin. */
export function typeTag(value: Scalar): number {
  if (value === null) return tags.null;
  if (typeof value === 'boolean') return value ? tags.true : tags.false;
  return typeof value === 'number' ? tags.number : tags.string;
}

/** Whether the bytes of a value lack the end of its text, so that they do not decide its order. */
export function isCut(bytes: Uint8Array): boolean {
  const end = bytes.length - hashBytes;
  return bytes[0] === tags.string && end > 1 && bytes[end - 1] === cut && bytes[end - 2] === 0;
}

/** The bytes with which all strings of a prefix begin. */
export function orderedPrefix(prefix: string): Buffer {
  const { bytes } = contentOf(prefix);
  return Buffer.concat([Buffer.from([tags.string]), bytes]);
}

/** The end of an ordered value at the start of bytes. */
export function orderedValueEnd(bytes: Uint8Array): number {
  if (bytes[0] === tags.number) return 1 + numberBytes;
  if (bytes[0] !== tags.string) return 1;
  let at = 1;
  while (bytes[at] !== 0 || bytes[at + 1] === escaped) at += bytes[at] === 0 ? 2 : 1;
  return at + 2 + (bytes[at + 1] === cut ? hashBytes : 0);
}

/** Compares two values in the order of an index, also beyond the first bytes of strings. */
export function compareValues(one: Scalar, other: Scalar): number {
  if (typeof one === 'string' && typeof other === 'string') {
    return Buffer.compare(Buffer.from(one), Buffer.from(other));
  }
  return Buffer.compare(orderedValue(one), orderedValue(other));
}

function orderedNumber(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(1 + numberBytes);
  bytes[0] = tags.number;
  // 0 and -0 are one value.
  bytes.writeDoubleBE(value === 0 ? 0 : value, 1);
  if (value < 0) for (let at = 1; at <= numberBytes; at += 1) bytes[at] = ~(bytes[at] ?? 0) & 0xff;
  else bytes[1] = (bytes[1] ?? 0) | 0x80;
  return bytes;
}

function orderedString(text: string): Buffer {
  // Most strings are short and have no NUL.
  if (text.length * bytesPerUnitMax <= indexedStringBytesMax && !text.includes('\0')) {
    if (text.isWellFormed()) return Buffer.from(`\x05${text}\0\x01`);
  }
  const { bytes, isWhole } = contentOf(text);
  const end = isWhole
    ? [Buffer.from([0, complete])]
    : [Buffer.from([0, cut]), hash('sha256', JSON.stringify(text), 'buffer')];
  return Buffer.concat([Buffer.from([tags.string]), bytes, ...end]);
}

/** The bytes of a text up to the limit, with its NULs escaped; lone surrogates are not whole. */
function contentOf(text: string): { readonly bytes: Buffer; readonly isWhole: boolean } {
  // A code unit has at least one byte.
  const all = Buffer.from(text.slice(0, indexedStringBytesMax + 1));
  const isWhole = all.length <= indexedStringBytesMax && text.isWellFormed();
  const bytes = all.subarray(0, indexedStringBytesMax);
  if (!bytes.includes(0)) return { bytes, isWhole };
  const escapedBytes = [...bytes].flatMap((byte) => (byte === 0 ? [0, escaped] : [byte]));
  return { bytes: Buffer.from(escapedBytes), isWhole };
}
