import { Failure } from '../../values/failure.ts';
import { chunkLineBytesMax, methodBytesMax, trailerBytesMax } from '../limits.ts';
import {
  type ReadHead,
  chunkSize,
  methodRefusal,
  readHead,
  readTrailer,
  sizeRefusal,
} from './head.ts';
import { headerSectionTooLarge, malformedRequest } from './refusals.ts';

/** Empty lines before a request line: a faulty client sends some after its content. */
const emptyLinesMax = 4;

const cr = 13;
const lf = 10;
const headEnd = '\r\n\r\n';

/** What a reader tells of the requests that it reads, in their order. */
export interface RequestEvents {
  onHead(head: ReadHead): void;
  /** A piece of the content. */
  onContent(bytes: Buffer): void;
  /** The end of a request with content; the trailer fields, name, value, name, value. */
  onEnd(trailers: readonly string[]): void;
}

/**
 * Reads the requests of a connection of HTTP/1.1 (RFC 9112), and refuses what recipients could read
 * differently (§2 to §7): line ends other than CR LF, a request line without exactly two single
 * spaces, chunk sizes that overflow, forbidden chunk extensions and trailers, and what is over the
 * limits of size.
 */
export class RequestReader {
  /** The reason to read nothing more; once set, it stays. */
  refusal: Failure | undefined;
  readonly #events: RequestEvents;
  /** The reader of the next bytes; returns the position up to which it has read. */
  #next: (chunk: Buffer, from: number) => number = this.#readStart;
  #emptyLines = 0;
  /** Pieces of a head, chunk line or trailer line whose end has not arrived. */
  #pieces: string[] = [];
  #piecesBytes = 0;
  #head = '';
  /** Bytes of the request line; undefined until its end arrives. */
  #lineBytes: number | undefined;
  /** Bytes of content, or of a chunk, that have not arrived. */
  #contentLeft = 0;
  #trailers: string[] = [];
  #trailerBytes = 0;
  #isBoundary = false;

  constructor(events: RequestEvents) {
    this.#events = events;
  }

  /**
   * Reads a chunk from a position, up to the end of a head, of a request, or of the chunk; returns
   * that position. The bytes behind it are not of HTTP if the request switches to another protocol.
   */
  read(chunk: Buffer, from: number): number {
    let at = from;
    this.#isBoundary = false;
    while (at < chunk.length && this.#goesOn()) at = this.#next(chunk, at);
    return at;
  }

  #goesOn(): boolean {
    return !this.#isBoundary && this.refusal === undefined;
  }

  /** Whether the bytes so far are whole requests. */
  get isBetweenMessages(): boolean {
    return this.#next === this.#readStart && this.#emptyLines === 0;
  }

  /** Whether a part of a head has arrived. */
  get isInHead(): boolean {
    return this.#next === this.#readHead || this.#emptyLines > 0;
  }

  /** The newest head, or the part of it that has arrived; latin1. */
  get head(): string {
    return this.#head === '' ? this.#pieces.join('') : this.#head;
  }

  #refuse(reason: Failure | string): void {
    this.refusal = typeof reason === 'string' ? new Failure('invalid', reason) : reason;
  }

  /** Reads between two requests: a few empty lines are allowed (RFC 9112 §2.2). */
  #readStart(chunk: Buffer, from: number): number {
    const first = chunk[from];
    if (first === cr) {
      this.#next = this.#readStartLf;
      return from + 1;
    }
    if (first === lf) {
      this.#refuse(noLineEnd);
      return from;
    }
    this.#emptyLines = 0;
    this.#head = '';
    this.#next = this.#readHead;
    return this.#readHead(chunk, from);
  }

  #readStartLf(chunk: Buffer, from: number): number {
    this.#emptyLines += 1;
    if (chunk[from] !== lf) this.#refuse(noLineEnd);
    else if (this.#emptyLines > emptyLinesMax) {
      this.#refuse(`More than ${emptyLinesMax} empty lines come before the request line.`);
    }
    this.#next = this.#readStart;
    return this.refusal === undefined ? from + 1 : from;
  }

  #readHead(chunk: Buffer, from: number): number {
    const text = chunk.toString('latin1', from);
    const tail = this.#pieces.at(-1) ?? '';
    const joined = tail + text;
    const end = joined.indexOf(headEnd);
    if (end === -1) {
      this.#storePiece(text);
      return this.refusal === undefined ? chunk.length : from;
    }
    const taken = end + headEnd.length - tail.length;
    const head = tail === '' ? text : this.#pieces.join('') + text;
    const headBytes = head.length - text.length + taken;
    return this.#takeHead(head.slice(0, headBytes - 2)) ? from + taken : from;
  }

  /**
   * Stores a piece of a head. The last three characters are a piece of their own, because the end
   * of the head may begin in them.
   */
  #storePiece(text: string): void {
    const isInMethod = this.#piecesBytes <= methodBytesMax;
    const tail = (this.#pieces.pop() ?? '') + text;
    const lineEnd = this.#lineBytes === undefined ? tail.indexOf('\r\n') : -1;
    if (lineEnd !== -1) this.#lineBytes = this.#piecesBytes + text.length - tail.length + lineEnd;
    this.#piecesBytes += text.length;
    this.#pieces.push(tail.slice(0, -3), tail.slice(-3));
    const lineBytes = this.#lineBytes ?? this.#piecesBytes;
    const refusal =
      (isInMethod ? methodRefusal(this.head) : undefined) ??
      sizeRefusal(lineBytes, this.#piecesBytes - lineBytes);
    if (refusal !== undefined) this.#refuse(refusal);
    else if (hasBareLf(tail)) this.#refuse(malformedRequest());
  }

  /** Reads a whole head, its last line end included. */
  #takeHead(head: string): boolean {
    this.#pieces = [];
    this.#piecesBytes = 0;
    this.#lineBytes = undefined;
    this.#head = head;
    const read = readHead(head);
    if (read instanceof Failure) {
      this.#refuse(read);
      return false;
    }
    this.#isBoundary = true;
    const { framing } = read;
    if (framing === 'chunked') {
      this.#trailers = [];
      this.#trailerBytes = 0;
      this.#next = this.#readChunkLine;
    } else {
      this.#contentLeft = framing;
      this.#next = framing > 0 ? this.#readContent : this.#readStart;
    }
    this.#events.onHead(read);
    return true;
  }

  #readContent(chunk: Buffer, from: number): number {
    const end = this.#passContent(chunk, from);
    if (this.#contentLeft === 0) this.#endMessage([]);
    return end;
  }

  #passContent(chunk: Buffer, from: number): number {
    const end = Math.min(chunk.length, from + this.#contentLeft);
    this.#contentLeft -= end - from;
    this.#events.onContent(chunk.subarray(from, end));
    return end;
  }

  #endMessage(trailers: readonly string[]): void {
    this.#isBoundary = true;
    this.#next = this.#readStart;
    this.#events.onEnd(trailers);
  }

  #readChunkLine(chunk: Buffer, from: number): number {
    const end = this.#readLine(chunk, from, chunkLineBytesMax);
    const line = this.#wholeLine();
    if (line === undefined) return end;
    const size = chunkSize(line);
    if (size === undefined) {
      this.#refuse('The size of a chunk is not a number in hexadecimal.');
      return from;
    }
    this.#contentLeft = size;
    this.#next = size === 0 ? this.#readTrailers : this.#readChunk;
    return end;
  }

  #readChunk(chunk: Buffer, from: number): number {
    const end = this.#passContent(chunk, from);
    if (this.#contentLeft === 0) this.#next = this.#readChunkEnd;
    return end;
  }

  #readChunkEnd(chunk: Buffer, from: number): number {
    const end = this.#readLine(chunk, from, '\r\n'.length);
    const line = this.#wholeLine();
    if (line === '\r\n') this.#next = this.#readChunkLine;
    else if (line !== undefined) this.#refuse(malformedRequest());
    return end;
  }

  #readTrailers(chunk: Buffer, from: number): number {
    const end = this.#readLine(chunk, from, trailerBytesMax - this.#trailerBytes);
    const line = this.#wholeLine();
    if (line === undefined) return end;
    this.#trailerBytes += line.length;
    if (line === '\r\n') {
      this.#endMessage(this.#trailers);
      return end;
    }
    const trailer = readTrailer(line);
    if (typeof trailer !== 'string') {
      this.#trailers.push(...trailer);
      return end;
    }
    this.#refuse(trailer);
    return from;
  }

  /** Reads a line up to its LF, or the part that has arrived; returns the position after it. */
  #readLine(chunk: Buffer, from: number, bytesMax: number): number {
    const found = chunk.indexOf(lf, from);
    const end = found === -1 ? chunk.length : found + 1;
    this.#piecesBytes += end - from;
    if (this.#piecesBytes > bytesMax) {
      this.#refuse(this.#next === this.#readTrailers ? headerSectionTooLarge() : longChunkLine);
      return from;
    }
    this.#pieces.push(chunk.toString('latin1', from, end));
    return end;
  }

  #wholeLine(): string | undefined {
    if (this.refusal !== undefined || this.#pieces.at(-1)?.endsWith('\n') !== true) {
      return undefined;
    }
    const line = this.#pieces.join('');
    this.#pieces = [];
    this.#piecesBytes = 0;
    return line;
  }
}

const longChunkLine = 'A line of the chunked content is too long.';
const noLineEnd = 'A line of the request does not end with CR LF.';

/** Whether a text has a line feed without a carriage return before it, except at its start. */
function hasBareLf(text: string): boolean {
  return /[^\r]\n/.test(text);
}
