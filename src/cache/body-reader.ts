import { Readable } from 'node:stream';
import { arrivingReadBytes } from '../model/limits.ts';
import { notePassedBytes } from '../outbound/passed-bytes.ts';
import type { BodyFile } from './body-file.ts';

/** Content on its way, as one who reads it sees it. */
export interface ReadableBody {
  /** What is not at hand any more. */
  readonly file: Pick<BodyFile, 'read'>;
  /**
   * What is at a position: bytes at hand, how many of them there are in the file, the end, nothing
   * for what is still to come, or `gone`.
   */
  at(position: number): Buffer | number | 'end' | 'gone' | undefined;
  /** Is told of a reader that has had enough. */
  removeReader(reader: SharedBodyReader): void;
}

/** One reader of content that is on its way. */
export class SharedBodyReader extends Readable {
  readonly #content: ReadableBody;
  #position = 0;
  #isWaiting = false;
  #isReadingFile = false;

  constructor(content: ReadableBody) {
    super();
    this.#content = content;
    // A failure may come before anybody listens; who reads later finds the stream destroyed.
    this.on('error', () => undefined);
  }

  /** Where in the content it reads next. */
  get position(): number {
    return this.#position;
  }

  /** Whether it would read on if there were more. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Is told that more has come. */
  noteMore(): void {
    if (this.#isWaiting) this._read();
  }

  /** Is told up to where content is at hand no more, and up to where it is in the file. */
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
      notePassedBytes(bytes.length);
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
