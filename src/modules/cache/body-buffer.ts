import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { countPassedBytes } from '../../core/outbound/connection.ts';
import { KIB } from '../../core/values/units.ts';

/** A file that a body is written to while it arrives. Slow readers read from it. */
export class BodyFile {
  readonly #place: BodyFilePlace;
  #handle: Promise<FileHandle> | undefined;
  #bytes = 0;
  #crc = 0;

  constructor(place: BodyFilePlace) {
    this.#place = place;
  }

  /** The number of bytes written so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** CRC-32 of the bytes written so far. */
  get crc(): number {
    return this.#crc;
  }

  /** Appends pieces. Only one write may run at a time. Rejects with the error of the disk. */
  async write(pieces: readonly Buffer[]): Promise<void> {
    this.#handle ??= this.#place.create();
    const handle = await this.#handle;
    let position = this.#bytes;
    let crc = this.#crc;
    let rest = pieces;
    while (rest.length > 0) {
      const { bytesWritten } = await handle.writev(rest, position);
      position += bytesWritten;
      rest = withoutBytes(rest, bytesWritten);
    }
    for (const piece of pieces) crc = crc32(piece, crc);
    this.#bytes = position;
    this.#crc = crc;
  }

  /** Reads at most `length` bytes from a position. */
  async read(position: number, length: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafeSlow(length);
    const read = await (await this.#handle)?.read(buffer, 0, length, position);
    if (read === undefined || read.bytesRead === 0) throw new Error('It is not there.');
    return buffer.subarray(0, read.bytesRead);
  }

  /** Deletes the file. Its open descriptor stays readable. */
  async remove(): Promise<void> {
    if (this.#handle === undefined) return;
    await this.#handle.then(() => this.#place.remove()).catch(this.#place.report);
  }

  /** Closes the file. Some file systems report write errors only at this point. */
  async close(): Promise<void> {
    const handle = await this.#handle?.catch(() => undefined);
    await handle?.close().catch(this.#place.report);
  }
}

/** Bytes that a reader takes at a time from a file that is still being written. */
const arrivingReadBytes = 128 * KIB;

/** One reader of a body that arrives. */
export class SharedBodyReader extends Readable {
  readonly #content: ReadableBody;
  #position = 0;
  #isWaiting = false;
  #isReadingFile = false;

  constructor(content: ReadableBody) {
    super();
    this.#content = content;
    // An error may come before a listener is added; later readers see a destroyed stream.
    this.on('error', () => undefined);
  }

  /** The position of the next read. */
  get position(): number {
    return this.#position;
  }

  /** Whether the reader waits for more content. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Reads on after more content has arrived. */
  noteMore(): void {
    if (this.#isWaiting) this._read();
  }

  /** Fails the reader if the content it needs is neither in memory (from `end`) nor in the file. */
  noteFreed(end: number, inFile: number): void {
    if (this.#position < end && this.#position >= inFile) this.#cutOff();
  }

  override _read(): void {
    if (this.#isReadingFile) return;
    const found = this.#content.at(this.#position);
    this.#isWaiting = found === undefined;
    if (found === undefined) return;
    if (found === 'end') this.push(null);
    else if (found === 'gone') this.#cutOff();
    else if (typeof found === 'number') void this.#readFile(Math.min(found, arrivingReadBytes));
    else this.#pass(found);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#isWaiting = false;
    this.#content.removeReader(this);
    done(error);
  }

  async #readFile(bytesMax: number): Promise<void> {
    this.#isReadingFile = true;
    try {
      const bytes = await this.#content.file.read(this.#position, bytesMax);
      countPassedBytes(bytes.length);
      this.#isReadingFile = false;
      if (!this.destroyed) this.#pass(bytes);
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  #pass(bytes: Buffer): void {
    this.#position += bytes.length;
    this.push(bytes);
  }

  #cutOff(): void {
    this.destroy(new Error('It was read too slowly.'));
  }
}

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

/** A body that arrives, as its readers see it. */
export interface ReadableBody {
  /** Holds the bytes that are no longer in memory. */
  readonly file: Pick<BodyFile, 'read'>;
  /**
   * The content at a position: bytes in memory, the number of bytes in the file, `end`, `gone` if
   * it was discarded, or undefined if it has not arrived.
   */
  at(position: number): Buffer | number | 'end' | 'gone' | undefined;
  /** Removes a reader that was destroyed. */
  removeReader(reader: SharedBodyReader): void;
}

/** Creates and removes the file of a response body. */
export interface BodyFilePlace {
  readonly create: () => Promise<FileHandle>;
  readonly remove: () => Promise<void>;
  /** Called with the error when the file cannot be written. */
  readonly report: (error: unknown) => void;
}

/** Removes bytes from the beginning of a list of pieces. */
function withoutBytes(pieces: readonly Buffer[], bytes: number): readonly Buffer[] {
  let left = bytes;
  let at = 0;
  for (let piece = pieces[at]; piece !== undefined && piece.length <= left; piece = pieces[at]) {
    left -= piece.length;
    at += 1;
  }
  const [first, ...others] = pieces.slice(at);
  return first === undefined ? [] : [first.subarray(left), ...others];
}
