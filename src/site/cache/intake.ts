import { finished, Readable } from 'node:stream';
import { arrivingBytesMax, arrivingLagBytesMax } from '../../model/limits.ts';

/**
 * The content of an answer on its way from its source: kept as it comes, so that any number of
 * readers get all of it, each at its own pace, whenever they come and go.
 */
export interface Intake {
  /** The content from its beginning; it fails as the source fails. */
  read(): Readable;
  /**
   * All of it when it is there; undefined where it broke off, or was more than is kept or than
   * there is room for.
   */
  readonly whole: Promise<Buffer | undefined>;
}

/** What is at hand in this process of all content on its way, for whichever cache. */
let arrivingBytes = 0;

/**
 * Takes content in as fast as its source sends it, up to so many bytes. What is longer is not kept:
 * from there on the fastest reader sets the pace, and one that falls further behind than that is
 * cut off. Nor is what comes while too much is at hand of other content that is on its way.
 */
export function takeIn(source: Readable, bytesMax: number): Intake {
  return new SharedContent(source, bytesMax);
}

class SharedContent implements Intake {
  readonly whole: Promise<Buffer | undefined>;
  readonly #source: Readable;
  readonly #bytesMax: number;
  readonly #readers = new Set<Reader>();
  readonly #settle: PromiseWithResolvers<Buffer | undefined>;
  /** What is at hand, and where in the content it begins. */
  #chunks: Buffer[] = [];
  #firstChunk = 0;
  #bytes = 0;
  #isTooLong = false;
  #end: { readonly error: Error | undefined } | undefined;

  constructor(source: Readable, bytesMax: number) {
    this.#source = source;
    this.#bytesMax = bytesMax;
    this.#settle = Promise.withResolvers();
    this.whole = this.#settle.promise;
    source.on('data', (chunk: Buffer) => {
      this.#take(chunk);
    });
    finished(source, { writable: false }, (error) => {
      this.#finish(error ?? undefined);
    });
  }

  read(): Readable {
    const reader = new Reader(this);
    if (this.#firstChunk > 0) reader.destroy(new Error('The beginning is not there any more.'));
    else this.#readers.add(reader);
    return reader;
  }

  /** The chunk of a number, `end` behind the last one, undefined for one that is still to come. */
  chunk(number: number): Buffer | 'end' | undefined {
    const chunk = this.#chunks[number - this.#firstChunk];
    if (chunk !== undefined) return chunk;
    if (this.#end !== undefined) return 'end';
    this.#source.resume();
    return undefined;
  }

  leave(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#isTooLong && this.#readers.size === 0) this.#source.destroy();
    this.#release();
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#count(chunk.length);
    if (!this.#isTooLong && (this.#bytes > this.#bytesMax || this.#isCrowded())) {
      this.#isTooLong = true;
      this.#settle.resolve(undefined);
    }
    if (this.#isTooLong) this.#letGo();
    for (const reader of this.#readers) reader.wake();
  }

  /** Of content that is not kept, only what readers still have to read is at hand. */
  #letGo(): void {
    if (this.#readers.size === 0) {
      this.#source.destroy();
      return;
    }
    this.#source.pause();
    let slowest = Math.min(...[...this.#readers].map(({ next }) => next));
    const lagBytesMax = this.#lagBytesMax();
    while (slowest > this.#firstChunk || this.#bytes > lagBytesMax) {
      const [chunk] = this.#chunks;
      // The chunk that has come just now is for everybody.
      if (chunk === undefined || this.#chunks.length === 1) break;
      this.#chunks.shift();
      this.#firstChunk += 1;
      this.#count(-chunk.length);
      for (const reader of this.#readers) {
        if (reader.next < this.#firstChunk) reader.destroy(new Error('It was read too slowly.'));
      }
      slowest = Math.max(slowest, this.#firstChunk);
    }
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    arrivingBytes += bytes;
  }

  /** Whether there is more at hand than the longest content, or than is allowed in any case. */
  #isCrowded(): boolean {
    return arrivingBytes > Math.max(arrivingBytesMax, this.#bytesMax);
  }

  /** How far a reader may be behind the one that sets the pace. */
  #lagBytesMax(): number {
    const fastest = Math.max(...[...this.#readers].map(({ next }) => next));
    const isAtEnd = fastest >= this.#firstChunk + this.#chunks.length - 1;
    // What nobody has read yet was taken in ahead of all of them: nobody is slow for that.
    return isAtEnd && this.#isCrowded() ? arrivingLagBytesMax : this.#bytesMax;
  }

  /** Counts it no more, once nobody who reads it keeps it at hand. */
  #release(): void {
    if (this.#end !== undefined && this.#readers.size === 0) this.#count(-this.#bytes);
  }

  #finish(error: Error | undefined): void {
    this.#end = { error };
    const isWhole = error === undefined && !this.#isTooLong;
    this.#settle.resolve(isWhole ? Buffer.concat(this.#chunks) : undefined);
    for (const reader of this.#readers) {
      if (error === undefined) reader.wake();
      else reader.destroy(error);
    }
    this.#release();
  }
}

/** One reader of shared content. */
class Reader extends Readable {
  readonly #content: SharedContent;
  /** The number of the chunk that it reads next. */
  next = 0;
  #isWaiting = false;

  constructor(content: SharedContent) {
    super();
    this.#content = content;
    // A failure may come before anybody listens; who reads later finds the stream destroyed.
    this.on('error', () => undefined);
  }

  wake(): void {
    if (this.#isWaiting) this._read();
  }

  override _read(): void {
    const chunk = this.#content.chunk(this.next);
    this.#isWaiting = chunk === undefined;
    if (chunk === undefined) return;
    if (chunk === 'end') {
      this.push(null);
      return;
    }
    this.next += 1;
    this.push(chunk);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#content.leave(this);
    done(error);
  }
}
