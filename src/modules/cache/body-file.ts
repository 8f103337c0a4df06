import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';

/** Creates and removes the file of a response body. */
export interface BodyFilePlace {
  readonly create: () => Promise<FileHandle>;
  readonly remove: () => Promise<void>;
  /** Called with the error when the file cannot be written. */
  readonly report: (error: unknown) => void;
}

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
