import { finished, type Readable } from 'node:stream';
import {
  arrivingBytesMax,
  arrivingFilesMax,
  arrivingHeldBytesMax,
  arrivingLagBytesMax,
  arrivingScarceBytesMax,
} from '../../model/limits.ts';
import type { NewContent } from '../../store/cache/cache.ts';
import { ArrivingFile, type FilePlace } from './arriving-file.ts';
import { ArrivingReader, type ArrivingContent } from './arriving-reader.ts';

/**
 * The content of an answer on its way from its source: kept as it comes, so that any number of
 * readers get all of it, each at its own pace, whenever they come and go.
 */
export interface Intake {
  /** The content from its beginning; it fails as the source fails. */
  read(): Readable;
  /**
   * All of it when it is there; undefined where it broke off, was more than is kept, or could not
   * be written.
   */
  readonly whole: Promise<Whole | undefined>;
}

/** Content that is there as a whole: at hand where it is short, else in its file. */
export interface Whole {
  readonly content: NewContent;
  readonly bytesLength: number;
}

/** What is at hand in this process of all content on its way, and what is, or will be, in files. */
let arrivingBytes = 0;
let filedBytes = 0;

/** How much is taken in. */
export interface IntakeLimits {
  /** The longest content that is kept. */
  readonly bytesMax: number;
  /** How long the content is, as far as its source has said so; 0 where it has not. */
  readonly bytesLength: number;
}

/**
 * Takes content in: as fast as its source sends it while it is short, and as fast as the disk takes
 * it from there on. What is longer than is kept, or than there is room for, is not: then the
 * fastest reader sets the pace, and one that falls too far behind it, and behind what is in the
 * file, is cut off.
 */
export function takeIn(source: Readable, limits: IntakeLimits, place: FilePlace): Intake {
  return new SharedContent(source, limits, place);
}

class SharedContent implements Intake, ArrivingContent {
  readonly whole: Promise<Whole | undefined>;
  readonly file: ArrivingFile;
  readonly #source: Readable;
  readonly #limits: IntakeLimits;
  readonly #report: (error: unknown) => void;
  readonly #readers = new Set<ArrivingReader>();
  readonly #settle: PromiseWithResolvers<Whole | undefined>;
  /** The last of what has come: each chunk with its position. */
  readonly #window: { readonly start: number; readonly bytes: Buffer }[] = [];
  #windowBytes = 0;
  #arrived = 0;
  /** In the room for files. */
  #roomTaken = 0;
  #isKept = true;
  #isFiled = false;
  #isWriting = false;
  #isReleased = false;
  #end: { readonly error: Error | undefined } | undefined;

  constructor(source: Readable, limits: IntakeLimits, place: FilePlace) {
    this.#source = source;
    this.#limits = limits;
    this.#report = place.report;
    this.file = new ArrivingFile(place);
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
    const reader = new ArrivingReader(this);
    if (this.#isReleased && this.#isFiled) reader.destroy(new Error('It is not there any more.'));
    else this.#readers.add(reader);
    return reader;
  }

  at(position: number): Buffer | number | 'end' | 'gone' | undefined {
    if (position === this.#arrived) {
      if (this.#end !== undefined) return 'end';
      if (!this.#isKept) this.#source.resume();
      return undefined;
    }
    const chunk = this.#window[this.#indexOf(position)];
    if (chunk !== undefined) return chunk.bytes.subarray(position - chunk.start);
    return position < this.file.bytes ? this.file.bytes - position : 'gone';
  }

  leave(reader: ArrivingReader): void {
    if (!this.#readers.delete(reader)) return;
    if (!this.#isKept && this.#readers.size === 0) this.#source.destroy();
    this.#release();
  }

  #take(bytes: Buffer): void {
    this.#window.push({ start: this.#arrived, bytes });
    this.#arrived += bytes.length;
    this.#count(bytes.length);
    if (this.#isKept && this.#arrived > this.#limits.bytesMax) this.#keepNoLonger();
    if (this.#isKept && (this.#isFiled || this.#windowBytes > atHandMax())) void this.#write();
    this.#letGo();
    for (const reader of this.#readers) reader.wake();
    this.#setPace();
  }

  /** Writes what has come and is not in the file yet, until there is no more. */
  async #write(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#isFiled = true;
    try {
      while (this.#isKept && this.file.bytes < this.#arrived) {
        const from = this.#indexOf(this.file.bytes);
        const pieces = this.#window.slice(from, from + chunksPerWrite).map(bytesOf);
        if (!this.#hasRoom()) this.#keepNoLonger();
        else await this.file.write(pieces);
        this.#letGo();
        this.#setPace();
      }
    } catch (error) {
      this.#report(error);
      this.#keepNoLonger();
      this.#setPace();
    } finally {
      this.#isWriting = false;
    }
    this.#settleWhole();
    this.#release();
  }

  /** Whether there is room for the file: what is not kept yet is within no budget. */
  #hasRoom(): boolean {
    const { bytesLength, bytesMax } = this.#limits;
    const needed = Math.max(bytesLength, this.#arrived) - this.#roomTaken;
    if (filedBytes + needed > arrivingFilesMax * bytesMax) return false;
    filedBytes += needed;
    this.#roomTaken += needed;
    return true;
  }

  #keepNoLonger(): void {
    if (!this.#isKept) return;
    this.#isKept = false;
    this.#settle.resolve(undefined);
    // Whoever reads it has it open.
    void this.file.remove();
    if (this.#readers.size === 0) this.#source.destroy();
  }

  /** The source may send more while there is room for it, or somebody waits for it. */
  #setPace(): void {
    if (this.#end !== undefined) return;
    const isWanted = this.#isKept
      ? this.#arrived - this.file.bytes <= 2 * atHandMax()
      : [...this.#readers].some(({ isWaiting }) => isWaiting);
    if (isWanted) this.#source.resume();
    else this.#source.pause();
  }

  /** Lets go of what is at hand and need not be: it is in the file, or all have it. */
  #letGo(): void {
    while (this.#window.length > 1) {
      const [{ start, bytes } = nothing] = this.#window;
      const end = start + bytes.length;
      const isInFile = end <= this.file.bytes && this.#windowBytes > atHandMax();
      if (!isInFile && (this.#isKept || !this.#isOver(end))) return;
      this.#window.shift();
      this.#count(-bytes.length);
      for (const reader of this.#readers) reader.miss(end, this.file.bytes);
    }
  }

  /** Of content that is not kept, whether all readers have it up to here, or are too slow. */
  #isOver(end: number): boolean {
    const positions = [...this.#readers].map(({ position }) => position);
    if (Math.min(...positions) >= end) return true;
    // What nobody has read yet was taken in ahead of all of them: nobody is slow for that.
    const last = this.#window.at(-1)?.start ?? 0;
    const isOneAtEnd = Math.max(...positions) >= last;
    const isScarce = isOneAtEnd && isCrowded();
    return this.#windowBytes > (isScarce ? arrivingLagBytesMax : arrivingBytesMax);
  }

  /** The chunk that has a position in it; -1 where that is not at hand. */
  #indexOf(position: number): number {
    let [low, high] = [0, this.#window.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const { start, bytes } = this.#window[middle] ?? nothing;
      if (position < start) high = middle - 1;
      else if (position >= start + bytes.length) low = middle + 1;
      else return middle;
    }
    return -1;
  }

  #count(bytes: number): void {
    this.#windowBytes += bytes;
    arrivingBytes += bytes;
  }

  #finish(error: Error | undefined): void {
    this.#end = { error };
    if (error !== undefined) this.#keepNoLonger();
    this.#settleWhole();
    for (const reader of this.#readers) {
      if (error === undefined) reader.wake();
      else reader.destroy(error);
    }
    this.#release();
  }

  #settleWhole(): void {
    if (this.#end === undefined || !this.#isKept || this.#isWriting) return;
    if (this.#isFiled && this.file.bytes < this.#arrived) return;
    const bytesLength = this.#arrived;
    const content: NewContent = this.#isFiled
      ? { kind: 'file', crc: this.file.crc }
      : { kind: 'bytes', bytes: Buffer.concat(this.#window.map(bytesOf)) };
    this.#settle.resolve({ content, bytesLength });
  }

  /** Counts it no more, and closes the file, once it has ended and nobody reads it. */
  #release(): void {
    if (this.#end === undefined || this.#isWriting || this.#readers.size > 0) return;
    // Those who have waited for the answer begin to read in this very turn.
    setImmediate(() => {
      if (this.#isReleased || this.#readers.size > 0) return;
      this.#isReleased = true;
      this.#count(-this.#windowBytes);
      filedBytes -= this.#roomTaken;
      void this.file.close();
    });
  }
}

const nothing = { start: 0, bytes: Buffer.alloc(0) };
/** How many chunks are written at once: fewer than any system takes. */
const chunksPerWrite = 256;

function bytesOf({ bytes }: { readonly bytes: Buffer }): Buffer {
  return bytes;
}

/** Whether enough is at hand of all content that is on its way. */
function isCrowded(): boolean {
  return arrivingBytes > arrivingBytesMax;
}

/** What may be at hand of content that goes to a file. */
function atHandMax(): number {
  return isCrowded() ? arrivingScarceBytesMax : arrivingHeldBytesMax;
}
