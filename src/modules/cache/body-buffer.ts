import { KIB } from '../../core/values/units.ts';

/** Shorter chunks of incoming content are joined. */
export const arrivingPieceBytes = 16 * KIB;

/** Consecutive bytes of a body, and the position of the first one. */
interface Piece {
  readonly start: number;
  readonly bytes: Buffer;
}

/**
 * The latest bytes of a body that arrives. Small chunks are joined, so that many tiny chunks do not
 * make many pieces.
 */
export class BodyBuffer {
  readonly #pieces: Piece[] = [];
  /** The buffer that the last piece is a part of, if that piece was joined. */
  #joined: Buffer | undefined;
  #end = 0;
  #bytes = 0;

  /** The number of bytes that have arrived. */
  get end(): number {
    return this.#end;
  }

  /** The number of bytes in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The start of the last piece. */
  get lastStart(): number {
    return this.#pieces.at(-1)?.start ?? 0;
  }

  /** The end of the first piece; undefined if there is only one. */
  get firstEnd(): number | undefined {
    const [first] = this.#pieces;
    return first === undefined || this.#pieces.length === 1
      ? undefined
      : first.start + first.bytes.length;
  }

  /** Appends bytes. */
  push(bytes: Buffer): void {
    const start = this.#end;
    this.#end += bytes.length;
    this.#bytes += bytes.length;
    const rest = this.#joinLast(bytes);
    if (rest.length === 0) return;
    this.#joined = undefined;
    this.#pieces.push({ start: start + bytes.length - rest.length, bytes: rest });
  }

  /** Removes the first piece and returns its length. */
  shift(): number {
    const length = this.#pieces.shift()?.bytes.length ?? 0;
    this.#bytes -= length;
    return length;
  }

  /** The pieces in memory from a position on, at most `piecesMax`; empty if it is not in memory. */
  from(position: number, piecesMax: number): readonly Buffer[] {
    const at = this.#indexOf(position);
    if (at === -1) return [];
    const pieces = this.#pieces.slice(at, at + piecesMax);
    return pieces.map(({ start, bytes }) => bytes.subarray(Math.max(0, position - start)));
  }

  /** Joins a short chunk to a short last piece; returns the bytes that do not fit. */
  #joinLast(bytes: Buffer): Buffer {
    const last = this.#pieces.at(-1);
    if (last === undefined || last.bytes.length >= arrivingPieceBytes) return bytes;
    if (bytes.length >= arrivingPieceBytes) return bytes;
    const filled = last.bytes.length;
    if (this.#joined === undefined) {
      this.#joined = Buffer.allocUnsafeSlow(arrivingPieceBytes);
      last.bytes.copy(this.#joined);
    }
    // Only unused bytes are written: readers may hold the earlier ones.
    const taken = bytes.copy(this.#joined, filled);
    const joined = this.#joined.subarray(0, filled + taken);
    this.#pieces[this.#pieces.length - 1] = { start: last.start, bytes: joined };
    return bytes.subarray(taken);
  }

  /** The index of the piece that contains a position; -1 if none does. */
  #indexOf(position: number): number {
    let [low, high] = [0, this.#pieces.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const { start, bytes } = this.#pieces[middle] ?? nothing;
      if (position < start) high = middle - 1;
      else if (position >= start + bytes.length) low = middle + 1;
      else return middle;
    }
    return -1;
  }
}

const nothing: Piece = { start: 0, bytes: Buffer.alloc(0) };
