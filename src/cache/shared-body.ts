import { finished, type Readable } from 'node:stream';
import {
  arrivingBytesMax,
  arrivingFilesMax,
  arrivingHeldBytesMax,
  arrivingLagBytesMax,
  arrivingScarceBytesMax,
} from '../model/limits.ts';
import type { NewContent } from './storage/cache.ts';
import { BodyFile, type BodyFilePlace } from './body-file.ts';
import { SharedBodyReader, type ReadableBody } from './body-reader.ts';
import { BodyBuffer } from './body-buffer.ts';

/**
 * The content of an answer on its way from its source: kept as it comes, so that any number of
 * readers get all of it, each at its own pace, whenever they come and go.
 */
export interface SharedBody {
  /** The content from its beginning; it fails as the source fails. */
  read(): Readable;
  /**
   * All of it when it is there; undefined where it broke off, was more than is kept, or could not
   * be written.
   */
  readonly whole: Promise<CompleteBody | undefined>;
  /** Lets readers have the end, where that is held back. */
  releaseEnd(): void;
}

/** Content that is there as a whole: at hand where it is short, else in its file. */
interface CompleteBody {
  readonly content: NewContent;
  readonly bytesLength: number;
}

/** What is at hand in this process of all content on its way, and what is, or will be, in files. */
let bufferedBytes = 0;
let reservedDiskBytes = 0;

/** How much is taken in. */
interface SharedBodyLimits {
  /** The longest content that is kept. */
  readonly bytesMax: number;
  /** How long the content is, as far as its source has said so; 0 where it has not. */
  readonly bytesLength: number;
  /** Whether no reader gets the end of content that is kept before passEnd is called. */
  readonly isEndHeld?: boolean;
}

/**
 * Takes content in: as fast as its source sends it while it is short, and as fast as the disk takes
 * it from there on. What is longer than is kept, or than there is room for, is not: then the
 * fastest reader sets the pace, and one that falls too far behind it, and behind what is in the
 * file, is cut off.
 */
export function shareBody(
  source: Readable,
  limits: SharedBodyLimits,
  place: BodyFilePlace,
): SharedBody {
  return new BufferedSharedBody(source, limits, place);
}

class BufferedSharedBody implements SharedBody, ReadableBody {
  readonly whole: Promise<CompleteBody | undefined>;
  readonly file: BodyFile;
  readonly #source: Readable;
  readonly #limits: SharedBodyLimits;
  readonly #report: (error: unknown) => void;
  readonly #readers = new Set<SharedBodyReader>();
  readonly #settle: PromiseWithResolvers<CompleteBody | undefined>;
  /** The last of what has come. */
  readonly #buffer = new BodyBuffer();
  /** In the room for files. */
  #reservedBytes = 0;
  #isStored = true;
  #isOnDisk = false;
  #isWriting = false;
  #isReleased = false;
  #isEndHeld: boolean;
  #end: { readonly error: Error | undefined } | undefined;

  constructor(source: Readable, limits: SharedBodyLimits, place: BodyFilePlace) {
    this.#source = source;
    this.#limits = limits;
    this.#isEndHeld = limits.isEndHeld === true;
    this.#report = place.report;
    this.file = new BodyFile(place);
    this.#settle = Promise.withResolvers();
    this.whole = this.#settle.promise;
    source.on('data', (chunk: Buffer) => {
      this.#receive(chunk);
    });
    finished(source, { writable: false }, (error) => {
      this.#finish(error ?? undefined);
    });
  }

  read(): Readable {
    const reader = new SharedBodyReader(this);
    if (this.#end?.error !== undefined) reader.destroy(this.#end.error);
    else if (this.#isReleased && this.#isOnDisk)
      reader.destroy(new Error('It is not there any more.'));
    else this.#readers.add(reader);
    return reader;
  }

  at(position: number): Buffer | number | 'end' | 'gone' | undefined {
    const found = this.#locate(position);
    if (!this.#isEndHeld || found === undefined || found === 'gone') return found;
    if (found === 'end') return undefined;
    // Content of a known length is complete at its last byte.
    const { bytesLength } = this.#limits;
    if (bytesLength === 0) return found;
    const before = bytesLength - 1 - position;
    if (before <= 0) return undefined;
    return typeof found === 'number' ? Math.min(found, before) : found.subarray(0, before);
  }

  releaseEnd(): void {
    this.#isEndHeld = false;
    for (const reader of this.#readers) reader.noteMore();
  }

  #locate(position: number): Buffer | number | 'end' | 'gone' | undefined {
    if (position === this.#buffer.end) {
      if (this.#end !== undefined) return 'end';
      if (!this.#isStored) this.#source.resume();
      return undefined;
    }
    const [bytes] = this.#buffer.from(position, 1);
    if (bytes !== undefined) return bytes;
    return position < this.file.bytes ? this.file.bytes - position : 'gone';
  }

  removeReader(reader: SharedBodyReader): void {
    if (!this.#readers.delete(reader)) return;
    if (!this.#isStored && this.#readers.size === 0) this.#source.destroy();
    this.#release();
  }

  #receive(bytes: Buffer): void {
    this.#buffer.push(bytes);
    bufferedBytes += bytes.length;
    if (this.#isStored && this.#buffer.end > this.#limits.bytesMax) this.#stopStoring();
    if (this.#isStored && (this.#isOnDisk || this.#buffer.bytes > memoryBytesMax()))
      void this.#write();
    this.#freeMemory();
    for (const reader of this.#readers) reader.noteMore();
    this.#setPace();
  }

  /** Writes what has come and is not in the file yet, until there is no more. */
  async #write(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#isOnDisk = true;
    try {
      while (this.#isStored && this.file.bytes < this.#buffer.end) {
        const pieces = this.#buffer.from(this.file.bytes, piecesPerWrite);
        if (!this.#reserveDiskSpace()) this.#stopStoring();
        else await this.file.write(pieces);
        this.#freeMemory();
        this.#setPace();
      }
    } catch (error) {
      this.#report(error);
      this.#stopStoring();
      this.#setPace();
    } finally {
      this.#isWriting = false;
    }
    this.#settleWhole();
    this.#release();
  }

  /** Whether there is room for the file: what is not kept yet is within no budget. */
  #reserveDiskSpace(): boolean {
    const { bytesLength, bytesMax } = this.#limits;
    const needed = Math.max(bytesLength, this.#buffer.end) - this.#reservedBytes;
    if (reservedDiskBytes + needed > arrivingFilesMax * bytesMax) return false;
    reservedDiskBytes += needed;
    this.#reservedBytes += needed;
    return true;
  }

  #stopStoring(): void {
    if (!this.#isStored) return;
    this.#isStored = false;
    this.#isEndHeld = false;
    this.#settle.resolve(undefined);
    // Whoever reads it has it open.
    void this.file.remove();
    if (this.#readers.size === 0) this.#source.destroy();
  }

  /** The source may send more while there is room for it, or somebody waits for it. */
  #setPace(): void {
    if (this.#end !== undefined) return;
    const isWanted = this.#isStored
      ? this.#buffer.end - this.file.bytes <= 2 * memoryBytesMax()
      : [...this.#readers].some(({ isWaiting }) => isWaiting);
    if (isWanted) this.#source.resume();
    else this.#source.pause();
  }

  /** Lets go of what is at hand and need not be: it is in the file, or all have it. */
  #freeMemory(): void {
    for (let end = this.#buffer.firstEnd; end !== undefined; end = this.#buffer.firstEnd) {
      const isInFile = end <= this.file.bytes && this.#buffer.bytes > memoryBytesMax();
      if (!isInFile && (this.#isStored || !this.#isDroppable(end))) return;
      bufferedBytes -= this.#buffer.shift();
      for (const reader of this.#readers) reader.noteFreed(end, this.file.bytes);
    }
  }

  /** Of content that is not kept, whether all readers have it up to here, or are too slow. */
  #isDroppable(end: number): boolean {
    const positions = [...this.#readers].map(({ position }) => position);
    if (Math.min(...positions) >= end) return true;
    // What nobody has read yet was taken in ahead of all of them: nobody is slow for that.
    const isOneAtEnd = Math.max(...positions) >= this.#buffer.lastStart;
    const isScarce = isOneAtEnd && isMemoryScarce();
    return this.#buffer.bytes > (isScarce ? arrivingLagBytesMax : arrivingBytesMax);
  }

  #finish(error: Error | undefined): void {
    this.#end = { error };
    if (error !== undefined) this.#stopStoring();
    this.#settleWhole();
    for (const reader of this.#readers) {
      if (error === undefined) reader.noteMore();
      else reader.destroy(error);
    }
    this.#release();
  }

  #settleWhole(): void {
    if (this.#end === undefined || !this.#isStored || this.#isWriting) return;
    if (this.#isOnDisk && this.file.bytes < this.#buffer.end) return;
    const bytesLength = this.#buffer.end;
    const content: NewContent = this.#isOnDisk
      ? { kind: 'file', crc: this.file.crc }
      : { kind: 'bytes', bytes: Buffer.concat(this.#buffer.from(0, Infinity)) };
    this.#settle.resolve({ content, bytesLength });
    // From now on it is what is kept, however long somebody reads on.
    this.#releaseDiskSpace();
  }

  #releaseDiskSpace(): void {
    reservedDiskBytes -= this.#reservedBytes;
    this.#reservedBytes = 0;
  }

  /** Counts it no more, and closes the file, once it has ended and nobody reads it. */
  #release(): void {
    if (this.#end === undefined || this.#isWriting || this.#readers.size > 0) return;
    // Those who have waited for the answer begin to read in this very turn.
    setImmediate(() => {
      if (this.#isReleased || this.#readers.size > 0) return;
      this.#isReleased = true;
      bufferedBytes -= this.#buffer.bytes;
      this.#releaseDiskSpace();
      void this.file.close();
    });
  }
}

/** How many pieces are written at once: fewer than any system takes. */
const piecesPerWrite = 256;

/** Whether enough is at hand of all content that is on its way. */
function isMemoryScarce(): boolean {
  return bufferedBytes > arrivingBytesMax;
}

/** What may be at hand of content that goes to a file. */
function memoryBytesMax(): number {
  return isMemoryScarce() ? arrivingScarceBytesMax : arrivingHeldBytesMax;
}
