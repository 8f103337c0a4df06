import type { FieldList } from '../../../http/reply.ts';
import { huffmanLength, staticTable, writeHuffman } from './huffman.ts';

/** Encoded response fields that are kept, and the longest value of one. */
const encodedFieldsMax = 4_096;
const encodedValueCharactersMax = 256;

/**
 * Encodes response fields (RFC 7541) with the static table only: a block is the same bytes on every
 * connection, so it can be kept, and no client can make the server hold a table for it.
 */

/** A literal that no intermediary may put into a table (§6.2.3): for fields with secrets. */
const neverIndexed = 0x10;
const secretFields: ReadonlySet<string> = new Set(['set-cookie', 'authorization']);

/** The index of a name, and of a whole field, in the static table. */
const nameIndexes = new Map<string, number>();
const fieldIndexes = new Map<string, number>();
for (let at = staticTable.length - 2; at >= 0; at -= 2) {
  const [name = '', value = ''] = [staticTable[at], staticTable[at + 1]];
  nameIndexes.set(name, at / 2 + 1);
  if (value !== '') fieldIndexes.set(`${name}\n${value}`, at / 2 + 1);
}

/** Fields that were encoded before, by their text; emptied when it is full. */
const encoded = new Map<string, Buffer>();

/** Returns the block of a response's head, or of trailer fields, which have no status. */
export function encodeFields(status: number | undefined, fields: FieldList): Buffer {
  const parts: Buffer[] = status === undefined ? [] : [encodeField(':status', String(status))];
  for (let at = 0; at < fields.length; at += 2) {
    parts.push(encodeField(fields[at] ?? '', fields[at + 1] ?? ''));
  }
  return Buffer.concat(parts);
}

function encodeField(name: string, value: string): Buffer {
  if (value.length > encodedValueCharactersMax) return literal(name.toLowerCase(), value);
  const text = `${name}\n${value}`;
  const before = encoded.get(text);
  if (before !== undefined) return before;
  const lower = name.toLowerCase();
  const index = fieldIndexes.get(`${lower}\n${value}`);
  const bytes = index === undefined ? literal(lower, value) : Buffer.of(0x80 | index);
  if (secretFields.has(lower)) return bytes;
  if (encoded.size >= encodedFieldsMax) encoded.clear();
  encoded.set(text, bytes);
  return bytes;
}

function literal(name: string, value: string): Buffer {
  const index = nameIndexes.get(name) ?? 0;
  const longest = 16 + 4 * (name.length + value.length);
  const into = Buffer.allocUnsafe(longest);
  let at = writeInteger(into, 0, index, {
    bits: 4,
    first: secretFields.has(name) ? neverIndexed : 0,
  });
  if (index === 0) at = writeText(into, at, name);
  at = writeText(into, at, value);
  return Buffer.from(into.subarray(0, at));
}

/** Writes a latin1 text as it is or as Huffman code, whichever is shorter (§5.2). */
function writeText(into: Buffer, start: number, text: string): number {
  const packed = huffmanLength(text);
  if (packed < text.length) {
    return writeHuffman(text, into, writeInteger(into, start, packed, { bits: 7, first: 0x80 }));
  }
  const at = writeInteger(into, start, text.length, { bits: 7, first: 0 });
  return at + into.write(text, at, 'latin1');
}

/** Writes an integer (§5.1) whose prefix has a number of bits, behind the bits of `first`. */
function writeInteger(
  into: Buffer,
  start: number,
  value: number,
  { bits, first }: { readonly bits: number; readonly first: number },
): number {
  const max = (1 << bits) - 1;
  let at = start;
  if (value < max) {
    into[at++] = first | value;
    return at;
  }
  into[at++] = first | max;
  let rest = value - max;
  for (; rest >= 0x80; rest >>>= 7) into[at++] = (rest & 0x7f) | 0x80;
  into[at++] = rest;
  return at;
}
