import type { RevertibleFamily } from '../../model/change.ts';
import type { PreparedRule } from '../../store/log/prepared-rule.ts';
import type { RequestHashes } from '../records/idempotency.ts';

/** A line of an import, read and ready to be written. */
export interface ImportLine extends RequestHashes {
  readonly vk: string;
  /** Its number, from 1. */
  readonly line: number;
  /** The id of its record, if that gets a new one. */
  readonly newId: string;
  /** The family of its record. */
  readonly family: RevertibleFamily;
  /** The data of the insert as JSON. */
  readonly text: string;
  /**
   * The meaning of the vk: the author of the line chose it for a request, the server derived it
   * from the fields, or an export made it from the id of the record.
   */
  readonly standsFor: 'request' | 'fields' | 'record';
  /** The prepared insert of a page rule; undefined for a hook. */
  readonly ready: PreparedRule | undefined;
}

/**
 * Lines in a form that moves from one thread to another without a copy. The garbage collector does
 * not examine it, so a great many lines may wait.
 */
export interface PackedLines {
  /** All their texts and keys, one after the other. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** `numbersPerLine` of them for each line. */
  readonly numbers: Uint32Array<ArrayBuffer>;
  readonly ids: readonly string[];
  readonly vks: readonly string[];
}

/** Its number, its kinds, the starts of its text, key, traits and hashes, and their end. */
const numbersPerLine = 7;

const families = ['userinterface', 'webhook', 'table', 'record'] as const;
const meanings = ['request', 'fields', 'record'] as const;
const databases = ['exact', 'wildcard'] as const;
const meaningShift = 2;
const databaseShift = 4;

/** Length of a SHA-256 in hex. */
const hashCharacters = 64;

/** Bytes of UTF-8 for one unit of UTF-16, at most. */
const bytesPerUnitMax = 3;

/** Packs lines, one after the other. */
export class LinePacker {
  #bytes: Buffer<ArrayBuffer>;
  #end = 0;
  readonly #numbers: number[] = [];
  readonly #ids: string[] = [];
  readonly #vks: string[] = [];

  /** `bytesExpected` is the estimated size of all texts and keys. */
  constructor(bytesExpected: number) {
    this.#bytes = Buffer.from(new ArrayBuffer(bytesExpected));
  }

  /** Adds the next line. */
  add(added: ImportLine): void {
    const { line, newId, family, text, vk, standsFor, ready } = added;
    const kinds =
      families.indexOf(family) +
      (meanings.indexOf(standsFor) << meaningShift) +
      (databases.indexOf(ready?.database ?? 'exact') << databaseShift);
    this.#numbers.push(line, kinds, this.#end);
    this.#addText(text);
    this.#numbers.push(this.#end);
    if (ready !== undefined) this.#addBytes(ready.key);
    this.#numbers.push(this.#end);
    if (ready !== undefined) this.#addText(ready.traits);
    this.#numbers.push(this.#end);
    this.#addText(`${added.requestHash}${added.formerHash ?? ''}`);
    this.#numbers.push(this.#end);
    this.#ids.push(newId);
    this.#vks.push(vk);
  }

  /** All lines that were added. */
  packed(): PackedLines {
    const bytes = new Uint8Array(this.#bytes.buffer, 0, this.#end);
    const numbers = Uint32Array.from(this.#numbers);
    return { bytes, numbers, ids: this.#ids, vks: this.#vks };
  }

  #addText(text: string): void {
    this.#makeRoom(text.length * bytesPerUnitMax);
    this.#end += this.#bytes.write(text, this.#end);
  }

  #addBytes(bytes: Uint8Array): void {
    this.#makeRoom(bytes.length);
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  #makeRoom(bytesMax: number): void {
    if (this.#end + bytesMax <= this.#bytes.length) return;
    const larger = Buffer.from(new ArrayBuffer(2 * this.#bytes.length + bytesMax));
    larger.set(this.#bytes.subarray(0, this.#end));
    this.#bytes = larger;
  }
}

/** The lines that were packed, in their order. */
export function* unpackedLines({ bytes, ...packed }: PackedLines): Iterable<ImportLine> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const lines = { ...packed, bytes: buffer };
  for (let at = 0; at < lines.vks.length; at += 1) yield new PackedLine(lines, at);
}

interface UnpackedLines extends Omit<PackedLines, 'bytes'> {
  readonly bytes: Buffer;
}

/** A line that unpacks each member when it is read. */
class PackedLine implements ImportLine, PreparedRule {
  readonly #lines: UnpackedLines;
  readonly #at: number;

  constructor(lines: UnpackedLines, at: number) {
    this.#lines = lines;
    this.#at = at;
  }

  get newId(): string {
    return this.#lines.ids[this.#at] ?? '';
  }

  get vk(): string {
    return this.#lines.vks[this.#at] ?? '';
  }

  get line(): number {
    return this.#number(0);
  }

  get family(): ImportLine['family'] {
    return families[this.#number(1) & 3] ?? 'userinterface';
  }

  get standsFor(): ImportLine['standsFor'] {
    return meanings[(this.#number(1) >> meaningShift) & 3] ?? 'request';
  }

  get database(): PreparedRule['database'] {
    return this.#number(1) >> databaseShift === 0 ? 'exact' : 'wildcard';
  }

  get ready(): PreparedRule | undefined {
    return this.family === 'userinterface' ? this : undefined;
  }

  get text(): string {
    return this.#text(2);
  }

  get key(): Buffer {
    return this.#lines.bytes.subarray(this.#number(3), this.#number(4));
  }

  get traits(): string {
    return this.#text(4);
  }

  get requestHash(): string {
    return this.#text(5).slice(0, hashCharacters);
  }

  get formerHash(): string | undefined {
    return this.#text(5).slice(hashCharacters) || undefined;
  }

  #text(start: number): string {
    return this.#lines.bytes.toString('utf8', this.#number(start), this.#number(start + 1));
  }

  #number(offset: number): number {
    return this.#lines.numbers[this.#at * numbersPerLine + offset] ?? 0;
  }
}
