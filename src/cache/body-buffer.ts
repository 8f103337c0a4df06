import { arrivingPieceBytes } from '../model/limits.ts';

/** Bytes that follow each other in content, and the position of the first one. */
interface Piece {
  readonly start: number;
  readonly bytes: Buffer;
}

/**
 * The last of content on its way. However small the chunks are that a source sends it in, its
 * pieces are few: those that are short are put together.
 */
export class BodyBuffer {
  readonly #pieces: Piece[] = [];
  /** What the last piece is the beginning of, where it was put together. */
  #joined: Buffer | undefined;
  #end = 0;
  #bytes = 0;

  /** The position behind all that has come. */
  get end(): number {
    return this.#end;
  }

  /** The bytes at hand. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Where the last piece begins. */
  get lastStart(): number {
    return this.#pieces.at(-1)?.start ?? 0;
  }

  /** Where the first piece ends; undefined where it is the last one as well. */
  get firstEnd(): number | undefined {
    const [first] = this.#pieces;
    return first === undefined || this.#pieces.length === 1
      ? undefined
      : first.start + first.bytes.length;
  }

  /** Takes in what has come. */
  push(bytes: Buffer): void {
    const start = this.#end;
    this.#end += bytes.length;
    this.#bytes += bytes.length;
    const rest = this.#joinLast(bytes);
    if (rest.length === 0) return;
    this.#joined = undefined;
    this.#pieces.push({ start: start + bytes.length - rest.length, bytes: rest });
  }

  /** Lets go of the first piece; returns its length. */
  shift(): number {
    const length = this.#pieces.shift()?.bytes.length ?? 0;
    this.#bytes -= length;
    return length;
  }

  /** What is at hand from a position on, so many pieces at most; nothing where that is not. */
  from(position: number, piecesMax: number): readonly Buffer[] {
    const at = this.#indexOf(position);
    if (at === -1) return [];
    const pieces = this.#pieces.slice(at, at + piecesMax);
    return pieces.map(({ start, bytes }) => bytes.subarray(Math.max(0, position - start)));
  }

  /** Puts what it can of short content behind a short last piece; returns the rest. */
  #joinLast(bytes: Buffer): Buffer {
    const last = this.#pieces.at(-1);
    if (last === undefined || last.bytes.length >= arrivingPieceBytes) return bytes;
    if (bytes.length >= arrivingPieceBytes) return bytes;
    const filled = last.bytes.length;
    if (this.#joined === undefined) {
      this.#joined = Buffer.allocUnsafeSlow(arrivingPieceBytes);
      last.bytes.copy(this.#joined);
    }
    // What others have of it already stays as it is.
    const taken = bytes.copy(this.#joined, filled);
    const joined = this.#joined.subarray(0, filled + taken);
    this.#pieces[this.#pieces.length - 1] = { start: last.start, bytes: joined };
    return bytes.subarray(taken);
  }

  /** The piece that has a position in it; -1 where that is not at hand. */
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
