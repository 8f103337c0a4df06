import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';

/** Where the file of content that is on its way belongs. */
export interface BodyFilePlace {
  readonly create: () => Promise<FileHandle>;
  readonly remove: () => Promise<void>;
  /** Told what the disk says where it cannot be written. */
  readonly report: (error: unknown) => void;
}

/** A file that content is written to as it comes, and read from by who is behind. */
export class BodyFile {
  readonly #place: BodyFilePlace;
  #handle: Promise<FileHandle> | undefined;
  #bytes = 0;
  #crc = 0;

  constructor(place: BodyFilePlace) {
    this.#place = place;
  }

  /** The bytes of content that are in it, from the first one on. */
  get bytes(): number {
    return this.#bytes;
  }

  /** CRC-32 of them. */
  get crc(): number {
    return this.#crc;
  }

  /** Writes what comes next, a write at a time. Rejects with what the disk says. */
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

  /** Reads so many bytes from a position, of those that are in it. */
  async read(position: number, length: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafeSlow(length);
    const read = await (await this.#handle)?.read(buffer, 0, length, position);
    if (read === undefined || read.bytesRead === 0) throw new Error('It is not there.');
    return buffer.subarray(0, read.bytesRead);
  }

  /** Takes it out of its folder; who reads it reads on until it is closed. */
  async remove(): Promise<void> {
    if (this.#handle === undefined) return;
    await this.#handle.then(() => this.#place.remove()).catch(this.#place.report);
  }

  /** Closes it when what is under way has ended: some disks tell only then what went wrong. */
  async close(): Promise<void> {
    const handle = await this.#handle?.catch(() => undefined);
    await handle?.close().catch(this.#place.report);
  }
}

/** Pieces without so many bytes of their beginning. */
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
