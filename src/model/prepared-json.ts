import { createHash } from 'node:crypto';
import { ownBytes } from './own-bytes.ts';

/** A JSON value with its text, made once for as long as its owner is in memory. */
export class PreparedJson {
  readonly #value: unknown;
  readonly bytes: Buffer;
  #digest: string | undefined;

  constructor(value: unknown) {
    this.#value = value;
    this.bytes = ownBytes(Buffer.from(JSON.stringify(value)));
  }

  /** Stands for the text in a validator. */
  get digest(): string {
    this.#digest ??= createHash('sha256').update(this.bytes).digest('base64url');
    return this.#digest;
  }

  /** JSON.stringify writes the value itself. */
  toJSON(): unknown {
    return this.#value;
  }
}

/** From this length on, the bytes of a prepared value are sent as they are: less costs no time. */
const sharedBytesMin = 65_536;

/**
 * The text of an object as UTF-8, in pieces. Where its members, or theirs, are prepared and large,
 * their bytes are pieces of their own, which all texts with them share.
 */
export function jsonPieces(object: object): readonly Buffer[] {
  const pieces: Buffer[] = [];
  let small: Buffer[] = [];
  for (const piece of piecesOf(object)) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece.bytes;
    if (typeof piece === 'string' || bytes.length < sharedBytesMin) {
      small.push(bytes);
      continue;
    }
    pieces.push(joined(small), bytes);
    small = [];
  }
  return small.length === 0 ? pieces : [...pieces, joined(small)];
}

/**
 * The text of an object as UTF-8. Of its members that are prepared, the bytes are taken as they
 * are, so that a large value costs a copy and no more.
 */
export function jsonBytes(object: object): Buffer {
  return joined(jsonPieces(object));
}

function joined(pieces: readonly Buffer[]): Buffer {
  const [only, ...others] = pieces;
  return only !== undefined && others.length === 0 ? only : Buffer.concat(pieces);
}

/** Stands for the text of an object, in base64url: no other text has the same one. */
export function jsonDigest(object: object): string {
  const hash = createHash('sha256');
  // Where a prepared value stands there can be no other text, so its digest is unambiguous.
  for (const piece of piecesOf(object)) {
    hash.update(typeof piece === 'string' ? piece : piece.digest);
  }
  return hash.digest('base64url');
}

function piecesOf(object: object): readonly (string | PreparedJson)[] {
  const pieces: (string | PreparedJson)[] = [];
  addPieces(object, pieces);
  return pieces;
}

function addPieces(object: object, pieces: (string | PreparedJson)[]): void {
  let text = '{';
  let separator = '';
  for (const [name, value] of Object.entries(object) as [string, unknown][]) {
    if (value === undefined) continue;
    text += `${separator}${JSON.stringify(name)}:`;
    separator = ',';
    if (value instanceof PreparedJson) pieces.push(text, value);
    else if (hasPrepared(value, preparedLevels)) {
      pieces.push(text);
      addPieces(value, pieces);
    } else {
      text += JSON.stringify(value);
      continue;
    }
    text = '';
  }
  pieces.push(`${text}}`);
}

/** How deep below a member prepared values are looked for. */
const preparedLevels = 2;

function hasPrepared(value: unknown, levels: number): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).some(
    (member) => member instanceof PreparedJson || (levels > 1 && hasPrepared(member, levels - 1)),
  );
}

/** Prepares what `make` makes of an owner, once for as long as the owner is in memory. */
export function preparedFor<T extends object>(make: (owner: T) => unknown) {
  const prepared = new WeakMap<T, PreparedJson>();
  return (owner: T): PreparedJson => {
    let json = prepared.get(owner);
    if (json === undefined) {
      json = new PreparedJson(make(owner));
      prepared.set(owner, json);
    }
    return json;
  };
}
