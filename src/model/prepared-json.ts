import { createHash } from 'node:crypto';

/** A JSON value with its text, made once for as long as its owner is in memory. */
export class PreparedJson {
  readonly #value: unknown;
  readonly bytes: Buffer;
  /** Stands for the text in a validator. */
  readonly digest: string;

  constructor(value: unknown) {
    this.#value = value;
    this.bytes = Buffer.from(JSON.stringify(value));
    this.digest = createHash('sha256').update(this.bytes).digest('base64url');
  }

  /** JSON.stringify writes the value itself. */
  toJSON(): unknown {
    return this.#value;
  }
}

/**
 * The text of an object as UTF-8. Where its members, or theirs, are prepared, their bytes are taken
 * as they are, so that a large value costs a copy and no more.
 */
export function jsonBytes(object: object): Buffer {
  const bytes = piecesOf(object).map((piece) =>
    typeof piece === 'string' ? Buffer.from(piece) : piece.bytes,
  );
  const [only, ...others] = bytes;
  return only !== undefined && others.length === 0 ? only : Buffer.concat(bytes);
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
    else if (hasPrepared(value)) {
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

function hasPrepared(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).some((member) => member instanceof PreparedJson);
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
