import { type Readable, finished } from 'node:stream';
import { KIB, MIB } from '../../core/values/units.ts';
import {
  BodyBuffer,
  BodyFile,
  type BodyFilePlace,
  type ReadableBody,
  SharedBodyReader,
} from './body-buffer.ts';
import type { NewContent } from './storage/response-storage.ts';

/** Memory for the content of one response that has not been written to its file. */
export const arrivingHeldBytesMax = MIB;

/** The same for all responses together; above it, each response has only the next limit. */
export const arrivingBytesMax = 64 * MIB;
const arrivingScarceBytesMax = 64 * KIB;

/** Disk space for incoming content, as a multiple of the longest content that may be stored. */
const arrivingFilesMax = 2;

/** How far apart two readers of content that is not stored may be when memory is scarce. */
export const arrivingLagBytesMax = 4 * MIB;

/**
 * The body of a response while it arrives from its source. It is buffered, so that any number of
 * readers get all of it, each at its own pace, whenever they join or leave.
 */
export interface SharedBody {
  /** Reads the body from its beginning. The stream fails if the source fails. */
  read(): Readable;
  /**
   * Resolves to the complete body; to undefined if it was cut short, is too long to store, or could
   * not be written.
   */
  readonly whole: Promise<CompleteBody | undefined>;
  /** Sends the end to the readers if `isEndHeld` holds it back. */
  releaseEnd(): void;
}

/** A complete body: short content in memory, long content in its file. */
interface CompleteBody {
  readonly content: NewContent;
  readonly bytesLength: number;
}

/** Of all bodies that arrive in this process: bytes in memory, and bytes reserved on disk. */
let bufferedBytes = 0;
let reservedDiskBytes = 0;

/** The limits of one shared body. */
interface SharedBodyLimits {
  /** The longest content that is stored, in bytes. */
  readonly bytesMax: number;
  /** The length that the source declared; 0 if it declared none. */
  readonly bytesLength: number;
  /** Whether readers get the end of a stored body only after `releaseEnd` is called. */
  readonly isEndHeld?: boolean;
}

/**
 * Buffers a body: short content as fast as the source sends it, long content as fast as the disk
 * writes it. A body that is too long, or exceeds the disk space for bodies in progress, is not
 * stored: its fastest reader then sets the pace, and a reader that falls too far behind fails.
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
  /** The bytes in memory. */
  readonly #buffer = new BodyBuffer();
  /** The bytes that this body has reserved on disk. */
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
    // A client takes content of a known length for complete at its last byte, so hold that back.
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

  /** Writes bytes to the file until it has all that arrived. */
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

  /** Reserves disk space: the capacity of the cache does not count unfinished files. */
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
    // Readers keep the file open.
    void this.file.remove();
    if (this.#readers.size === 0) this.#source.destroy();
  }

  /** Pauses the source while the buffer is full or no reader waits. */
  #setPace(): void {
    if (this.#end !== undefined) return;
    const isWanted = this.#isStored
      ? this.#buffer.end - this.file.bytes <= 2 * memoryBytesMax()
      : [...this.#readers].some(({ isWaiting }) => isWaiting);
    if (isWanted) this.#source.resume();
    else this.#source.pause();
  }

  /** Frees pieces that are in the file, or that all readers have read. */
  #freeMemory(): void {
    for (let end = this.#buffer.firstEnd; end !== undefined; end = this.#buffer.firstEnd) {
      const isInFile = end <= this.file.bytes && this.#buffer.bytes > memoryBytesMax();
      if (!isInFile && (this.#isStored || !this.#isDroppable(end))) return;
      bufferedBytes -= this.#buffer.shift();
      for (const reader of this.#readers) reader.noteFreed(end, this.file.bytes);
    }
  }

  /**
   * Whether a piece of a body that is not stored can be freed: all readers have read it, or the
   * ones that have not are too slow.
   */
  #isDroppable(end: number): boolean {
    const positions = [...this.#readers].map(({ position }) => position);
    if (Math.min(...positions) >= end) return true;
    // If no reader has read the last piece, the source is ahead of all of them, and none is slow.
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
    // The capacity of the cache counts the complete file from here on.
    this.#releaseDiskSpace();
  }

  #releaseDiskSpace(): void {
    reservedDiskBytes -= this.#reservedBytes;
    this.#reservedBytes = 0;
  }

  /** Stops counting the body, and closes the file, when it has ended and has no reader. */
  #release(): void {
    if (this.#end === undefined || this.#isWriting || this.#readers.size > 0) return;
    // Requests that joined the fetch begin to read in this turn of the event loop.
    setImmediate(() => {
      if (this.#isReleased || this.#readers.size > 0) return;
      this.#isReleased = true;
      bufferedBytes -= this.#buffer.bytes;
      this.#releaseDiskSpace();
      void this.file.close();
    });
  }
}

/** The pieces of one writev call: below the IOV_MAX of all systems. */
const piecesPerWrite = 256;

/** Whether the bodies in progress use up the memory that they may take. */
function isMemoryScarce(): boolean {
  return bufferedBytes > arrivingBytesMax;
}

/** The bytes of a body on disk that may stay in memory. */
function memoryBytesMax(): number {
  return isMemoryScarce() ? arrivingScarceBytesMax : arrivingHeldBytesMax;
}
