import { Readable } from 'node:stream';
import { countPassedBytes } from '../../core/outbound/passed-bytes.ts';
import { KIB } from '../../core/values/units.ts';
import type { BodyFile } from './body-file.ts';

/** Bytes that a reader takes at a time from a file that is still being written. */
const arrivingReadBytes = 128 * KIB;

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
