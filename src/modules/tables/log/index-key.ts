import { hash } from 'node:crypto';
import type { IndexBuild } from './reads.ts';
import {
  type ExactNumber,
  decimalOf,
  doublesOf,
  isExactNumber,
} from '../../../core/values/json/exact-number.ts';
import { type Row, type Scalar, rankOf } from '../row.ts';

/** Characters of a field that text search reads … */
const searchedCharactersMax = 100_000;

/** … words of them … */
const wordsPerFieldMax = 10_000;

/** … and characters of each. */
const wordCharactersMax = 64;

/** Made when it is first needed: it loads the dictionaries of all languages. */
let segmenter: Intl.Segmenter | undefined;

/** The name of the index of text search; no property has an empty name in it. */
export const searchIndex = '';

/** Bytes of a string that decide its place in an index. */
const indexedStringBytesMax = 400;

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

/** The end of the keys of a value: that of a double stands before the numbers up to the next. */
export function valueEnd(bytes: Buffer): Buffer {
  const isDouble = bytes[0] === tags.number && bytes.length === 1 + numberBytes;
  return Buffer.concat([bytes, Buffer.from([isDouble ? exactMark : 0xff])]);
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
  if (typeof value === 'number') return orderedNumber(value);
  return isExactNumber(value) ? orderedExact(value) : orderedString(value);
}

/** The bytes with which the values of the type of a value begin. */
export function typeTag(value: Scalar): number {
  return tags.null + rankOf(value);
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
  if (bytes[0] === tags.number) {
    const end = 1 + numberBytes;
    if (bytes[end] !== exactMark) return end;
    const isNegative = (bytes[end + 1] ?? 0) >= 0x80;
    return bytes.indexOf(isNegative ? 0xff : 0, end + 1 + exponentBytes) + 1;
  }
  if (bytes[0] !== tags.string) return 1;
  let at = 1;
  while (bytes[at] !== 0 || bytes[at + 1] === escaped) at += bytes[at] === 0 ? 2 : 1;
  return at + 2 + (bytes[at + 1] === cut ? hashBytes : 0);
}

function orderedNumber(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(1 + numberBytes);
  bytes[0] = tags.number;
  // 0 and -0 are one value.
  bytes.writeDoubleBE(value === 0 ? 0 : value, 1);
  if (value < 0) invert(bytes.subarray(1));
  else bytes[1] = (bytes[1] ?? 0) | 0x80;
  return bytes;
}

/** Follows the double below a number that is no double; greater than the first byte of an id. */
const exactMark = 0xfe;
/** What an exponent is stored with, so that it is positive. */
const exponentBias = 0x4000;
const exponentBytes = 2;

/**
 * The bytes of a number that no double holds: those of the double below it, then its decimal. The
 * numbers between two doubles stand between them, in their own order.
 */
function orderedExact(value: ExactNumber): Buffer {
  const { below, isHeld } = doublesOf(value);
  if (isHeld) return orderedNumber(below);
  const { isNegative, digits, exponent } = decimalOf(value.rawJSON);
  const power = Buffer.allocUnsafe(exponentBytes);
  power.writeUInt16BE(exponent + exponentBias);
  const decimal = Buffer.concat([power, Buffer.from(digits), Buffer.from([0])]);
  if (isNegative) invert(decimal);
  return Buffer.concat([orderedNumber(below), Buffer.from([exactMark]), decimal]);
}

/** Inverts bytes, which reverses their order. */
function invert(bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = ~(bytes[at] ?? 0) & 0xff;
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

/** A build that has not begun. */
export function startedBuild(table: string, index: string, rows: number): IndexBuild {
  return { table, index, phase: 'empty', after: '', done: 0, of: rows };
}

/** Whether a write maintains the entries of a row: a build reaches the others later. */
export function isMaintained(build: IndexBuild | undefined, id: string): boolean {
  return build === undefined || (build.phase === 'fill' && id <= build.after);
}

/** The key of a build. */
export function buildKey(table: string, index: string): Buffer {
  return keyPrefix(table, index);
}

/** The value of a word of a row: how often the row has it, and how many words it has. */
export function packWord(count: number, length: number): string {
  return `${count} ${length}`;
}

/** The arguments of packWord, from its result. */
export function unpackWord(value: string): { readonly count: number; readonly length: number } {
  const [count = 0, length = 0] = value.split(' ').map(Number);
  return { count, length };
}

/** The words of a row: how often each occurs, and how many there are. */
interface RowWords {
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

/** The words of a text in their order: NFKC and lower case, so that writing does not matter. */
export function* wordsOf(text: string): Iterable<string> {
  const normal = text.slice(0, searchedCharactersMax).normalize('NFKC').toLowerCase();
  segmenter ??= new Intl.Segmenter('und', { granularity: 'word' });
  for (const { segment, isWordLike } of segmenter.segment(normal)) {
    if (isWordLike === true) yield segment.slice(0, wordCharactersMax).toWellFormed();
  }
}

/** The words of the given fields of a row. */
export function rowWords(row: Row, fields: readonly string[]): RowWords {
  const counts = new Map<string, number>();
  let length = 0;
  for (const field of fields) {
    const value = row[field];
    if (typeof value !== 'string') continue;
    let left = wordsPerFieldMax;
    for (const word of wordsOf(value)) {
      if (left === 0) break;
      left -= 1;
      length += 1;
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  return { counts, length };
}
