import { readHuffman, staticEntries, staticTable } from './huffman.ts';

/** A field block that cannot be decoded: a connection error COMPRESSION_ERROR (RFC 9113 §4.3). */
export class HpackError extends Error {}

/** The decoded fields of a block. */
interface FieldBlock {
  /** Flat list of name, value, name, value; latin1. Not complete if the block is too large. */
  readonly fields: string[];
  /** The size of all fields as §4.1 counts it, with 32 bytes for each. */
  readonly bytes: number;
  /** The number of all fields. */
  readonly count: number;
}

/** The first fields of a request say what it asks for: they are kept at any length. */
const firstFields = 5;

/** Up to where other fields are kept. */
interface BlockLimits {
  readonly bytesMax: number;
  readonly fieldsMax: number;
}

/** The bytes that an entry costs besides name and value (§4.1). */
const entryOverhead = 32;
/** SETTINGS_HEADER_TABLE_SIZE, which the server leaves at its initial value (RFC 9113 §6.5.2). */
const tableBytesMax = 4_096;
/** Integers are lengths and indexes: four bytes after the prefix are more than enough. */
const integerShiftMax = 21;

const noBlock: Buffer = Buffer.alloc(0);

/** Decodes the field blocks of a connection, in order (RFC 7541). */
export class HpackDecoder {
  /** Names and values of the dynamic table, the newest entry last. */
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  #tableBytes = 0;
  #tableMax = tableBytesMax;
  #block = noBlock;
  #at = 0;
  #end = 0;

  /**
   * Decodes a block, which updates the table. Fields past the limits are left out of
   * the list, so that a short block cannot fill the memory; `bytes` counts all of them. Throws an
   * HpackError.
   */
  decode(block: Buffer, limits: BlockLimits): FieldBlock {
    this.#block = block;
    this.#at = 0;
    this.#end = block.length;
    const fields: string[] = [];
    let bytes = 0;
    let count = 0;
    while (this.#at < this.#end) {
      const first = block[this.#at] ?? 0;
      // A change of the table's size comes before all fields (§4.2).
      if ((first & 0xe0) === 0x20) {
        if (count > 0) throw new HpackError('The size of the table changes within a block.');
        this.#resize(this.#integer(5));
        continue;
      }
      let name: string;
      let value: string;
      if ((first & 0x80) !== 0) {
        const index = this.#integer(7);
        name = this.#name(index);
        value = this.#value(index);
      } else {
        const isIndexed = (first & 0x40) !== 0;
        const index = this.#integer(isIndexed ? 6 : 4);
        name = index === 0 ? this.#text() : this.#name(index);
        value = this.#text();
        if (isIndexed) this.#add(name, value);
      }
      count += 1;
      bytes += name.length + value.length + entryOverhead;
      const isKept = bytes <= limits.bytesMax && count <= limits.fieldsMax;
      if (isKept || count <= firstFields) fields.push(name, value);
    }
    this.#block = noBlock;
    return { fields, bytes, count };
  }

  #integer(prefixBits: number): number {
    const max = (1 << prefixBits) - 1;
    let value = (this.#block[this.#at++] ?? 0) & max;
    if (value < max) return value;
    for (let shift = 0; ; shift += 7) {
      if (this.#at >= this.#end) throw new HpackError('An integer ends with the block.');
      if (shift > integerShiftMax) throw new HpackError('An integer is too large.');
      const byte = this.#block[this.#at++] ?? 0;
      value += (byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return value;
    }
  }

  #text(): string {
    if (this.#at >= this.#end) throw new HpackError('The block ends within a field.');
    const isHuffman = ((this.#block[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#at;
    const end = start + length;
    if (end > this.#end) throw new HpackError('A text is longer than the block.');
    this.#at = end;
    if (!isHuffman) {
      return this.#block.toString('latin1', start, end);
    }
    const text = readHuffman(this.#block, start, end);
    if (text === undefined) throw new HpackError('A text is no valid Huffman code.');
    return text;
  }

  #name(index: number): string {
    const name =
      index <= staticEntries ? staticTable[2 * index - 2] : this.#names[this.#place(index)];
    if (index === 0 || name === undefined) throw new HpackError('An index is not in the table.');
    return name;
  }

  #value(index: number): string {
    if (index <= staticEntries) return staticTable[2 * index - 1] ?? '';
    return this.#values[this.#place(index)] ?? '';
  }

  #place(index: number): number {
    return this.#names.length - (index - staticEntries);
  }

  #add(name: string, value: string): void {
    this.#tableBytes += name.length + value.length + entryOverhead;
    this.#names.push(name);
    this.#values.push(value);
    this.#evict();
  }

  #resize(bytes: number): void {
    if (bytes > tableBytesMax) throw new HpackError('The table is larger than allowed.');
    this.#tableMax = bytes;
    this.#evict();
  }

  /** Drops the oldest entries; also an entry that is larger than the table (§4.4). */
  #evict(): void {
    while (this.#tableBytes > this.#tableMax) {
      const [name = '', value = ''] = [this.#names.shift(), this.#values.shift()];
      this.#tableBytes -= name.length + value.length + entryOverhead;
    }
  }
}
