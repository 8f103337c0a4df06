import { createHash } from 'node:crypto';

/** A JSON value with its text, which is created once. */
export class PreparedJson {
  readonly #value: unknown;
  readonly bytes: Buffer;
  #digest: string | undefined;

  constructor(value: unknown, bytes = unpooled(Buffer.from(JSON.stringify(value)))) {
    this.#value = value;
    this.bytes = bytes;
  }

  /** A digest of the text, for validators. */
  get digest(): string {
    this.#digest ??= createHash('sha256').update(this.bytes).digest('base64url');
    return this.#digest;
  }

  /** JSON.stringify uses this: it writes the value. */
  toJSON(): unknown {
    return this.#value;
  }
}

/** From this length on, texts share the bytes of a prepared value; shorter ones are copied. */
const sharedBytesMin = 65_536;

/**
 * The JSON text of an object as UTF-8, in pieces. A large prepared value among its members, or
 * their members, is a piece of its own, whose bytes all texts share.
 */
export function jsonPieces(object: object): readonly Buffer[] {
  if (!hasPrepared(object, preparedLevels + 1)) return [Buffer.from(JSON.stringify(object))];
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

/** The JSON text of an object as UTF-8; the bytes of prepared members are only copied. */
export function jsonBytes(object: object): Buffer {
  return joined(jsonPieces(object));
}

function joined(pieces: readonly Buffer[]): Buffer {
  const [only, ...others] = pieces;
  return only !== undefined && others.length === 0 ? only : Buffer.concat(pieces);
}

/** An object as a prepared value: the bytes of its prepared members are only copied. */
export function preparedObject(object: object): PreparedJson {
  return new PreparedJson(object, jsonBytes(object));
}

/** A list of prepared values as one. */
export function preparedList(values: readonly PreparedJson[]): PreparedJson {
  const pieces = values.flatMap(({ bytes }, at) => [Buffer.from(at === 0 ? '[' : ','), bytes]);
  const opening = values.length === 0 ? [Buffer.from('[')] : [];
  return new PreparedJson(values, Buffer.concat([...opening, ...pieces, Buffer.from(']')]));
}

/** A digest of the JSON text of an object, in base64url. */
export function jsonDigest(object: object): string {
  const hash = createHash('sha256');
  // A digest cannot be mistaken for JSON text, so two different texts cannot have equal input.
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

/** How many levels below the object prepared values are found. */
const preparedLevels = 2;

function hasPrepared(value: unknown, levels: number): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  for (const name in value) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    if (member instanceof PreparedJson) return true;
    if (levels > 1 && hasPrepared(member, levels - 1)) return true;
  }
  return false;
}

/** Returns a function that calls `make` once for each owner, as long as the owner is in memory. */
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

/**
 * Copies bytes out of Node's buffer pool, for keeping them: a small buffer of the pool keeps the
 * whole pool buffer in memory. Bytes with memory of their own are returned unchanged.
 */
export function unpooled(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}
