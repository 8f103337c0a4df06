import { newId } from '../clock.ts';
import { KIB } from '../units.ts';
import { parseNumbers } from './exact-number.ts';
import { endOfString } from './json-outline.ts';
import { parseJson, refusedNumber } from './parse.ts';

/** A piece of a long text ends with the first value behind so many bytes, or values. */
interface PieceSize {
  readonly bytes: number;
  readonly values: number;
}

const pieceSize: PieceSize = { bytes: 128 * KIB, values: 8_192 };

/** An array or object that is open at some place of the text. */
interface Level {
  readonly isObject: boolean;
  /** Where the name of its newest member stands. */
  nameStart: number;
  nameEnd: number;
}

/** The array or object of a level, as far as it is parsed. */
type Container = unknown[] | Record<string, unknown>;

/** The names of the members before and behind a piece, which no client can know. */
const [before, behind] = [newId(), newId()];

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * As parseJson, for a long text in UTF-8, which is parsed piece by piece: JSON.parse alone would
 * hold the event loop for a fifth of a second. A piece ends with a comma. What is open there is
 * closed behind the piece, and opened before the next one, whose members are then added to it.
 * Throws a TypeError for a text that is not UTF-8.
 */
export function* parseJsonSteps(
  bytes: Buffer,
  size = pieceSize,
): Generator<undefined, unknown, undefined> {
  const pieces = new Pieces(bytes);
  try {
    for (const at of scan(bytes, pieces.levels, size)) {
      pieces.add(at, closingOf(pieces.levels));
      yield;
    }
    pieces.add(bytes.length, '');
  } catch (error) {
    // The message of the error tells the place in the whole text.
    if (error instanceof SyntaxError) return parseJson(new TextDecoder().decode(bytes));
    throw error;
  }
  if (pieces.hasRefused) throw refusedNumber(pieces.root);
  return pieces.root;
}

/** Reads a text, keeps `levels` current, and yields each comma that ends a piece. */
function* scan(
  bytes: Buffer,
  levels: Level[],
  size: PieceSize,
): Generator<number, undefined, undefined> {
  let [begin, values, start, end] = [0, 0, 0, 0];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) {
      [start, end] = [at, endOfString(bytes, at)];
      at = end - 1;
    } else if (byte === colon) {
      const level = levels.at(-1);
      if (level !== undefined) [level.nameStart, level.nameEnd] = [start, end];
    } else if (byte === openBracket || byte === openBrace) {
      levels.push({ isObject: byte === openBrace, nameStart: 0, nameEnd: 0 });
    } else if (byte === closeBracket || byte === closeBrace) levels.pop();
    else if (byte === comma) {
      values += 1;
      const isLong = at - begin >= size.bytes || values >= size.values;
      if (!isLong || levels.length === 0) continue;
      yield at;
      [begin, values] = [at + 1, 0];
    }
  }
}

/** The value that the pieces of a text make. */
class Pieces {
  root: unknown;
  /** What is open where the text has been read to. */
  readonly levels: Level[] = [];
  hasRefused = false;
  readonly #bytes: Buffer;
  #begin = 0;
  /** What was open where the piece begins, and its values. */
  #before: readonly Level[] = [];
  #containers: Container[] = [];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Parses the piece that ends at an index, and adds it to what is open. */
  add(end: number, closing: string): void {
    const { levels } = this;
    const text = this.#decoded(this.#begin, end, this.#begin > 0);
    const value = parseNumbers(openingOf(this.#before) + text + closing, () => {
      this.hasRefused = true;
    });
    if (this.#before.length === 0) this.root = value;
    let part = value;
    for (const container of this.#containers) part = addTo(container, part);
    const kept = this.#before.findIndex((level, depth) => level !== levels[depth]);
    const open = kept === -1 ? this.#containers : this.#containers.slice(0, kept);
    for (let depth = open.length; depth < levels.length; depth += 1) {
      open.push(this.#newest(open.at(-1), levels[depth - 1]));
    }
    // The member that closingOf has added.
    const deepest = open.at(-1);
    if (Array.isArray(deepest)) deepest.pop();
    else if (deepest !== undefined) Reflect.deleteProperty(deepest, behind);
    this.#containers = open;
    this.#before = [...levels];
    this.#begin = end + 1;
  }

  /** The newest value of a container, which is open; the whole value without a container. */
  #newest(container: Container | undefined, level: Level | undefined): Container {
    if (container === undefined || level === undefined) return this.root as Container;
    if (Array.isArray(container)) return container.at(-1) as Container;
    const name = JSON.parse(this.#decoded(level.nameStart, level.nameEnd, true)) as string;
    return container[name] as Container;
  }

  /** Only the whole text may begin with a byte order mark. */
  #decoded(start: number, end: number, ignoreBOM: boolean): string {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM }).decode(
      this.#bytes.subarray(start, end),
    );
  }
}

/** Opens levels before a piece; a first member stands for what each has already. */
function openingOf(levels: readonly Level[]): string {
  const names = levels.map(({ isObject }) => (isObject ? `{"${before}":` : '['));
  return levels.length === 0 ? '' : `${names.join('')}0,`;
}

/** Closes levels behind a piece, after one more member: the comma must have a value before it. */
function closingOf(levels: readonly Level[]): string {
  const member = levels.at(-1)?.isObject === true ? `,"${behind}":0` : ',0';
  const ends = levels.map(({ isObject }) => (isObject ? '}' : ']'));
  return member + ends.toReversed().join('');
}

const ownMember = { configurable: true, enumerable: true, writable: true };

/** Adds the members of a part to a container; returns the first one, which stands for others. */
function addTo(container: Container, part: unknown): unknown {
  if (Array.isArray(container)) {
    const values = part as readonly unknown[];
    for (let at = 1; at < values.length; at += 1) container.push(values[at]);
    return values[0];
  }
  const members = part as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(members)) {
    if (name === before || name === behind) continue;
    const value = members[name];
    if (name !== '__proto__') container[name] = value;
    // An assignment would take it for the prototype.
    else Object.defineProperty(container, name, { value, ...ownMember });
  }
  return members[before];
}
