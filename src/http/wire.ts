import { Failure } from '../model/failure.ts';
import {
  chunkLineBytesMax,
  emptyLinesMax,
  headerBlockBytesMax,
  requestLineBytesMax,
  trailerBytesMax,
} from './limits.ts';
import { beginsMethod } from '../model/method.ts';
import { chunkSize, refusedTrailer } from './chunked.ts';
import { bodyOf, isRequestLine, methodState } from './head.ts';
import { headerSectionTooLarge, methodNotImplemented, requestLineTooLong } from './refusals.ts';

const cr = 13;
const lf = 10;
const headEnd = '\r\n\r\n';
/** In front of the digit for the minor version, in the request line. */
const versionStart = Buffer.from(' HTTP/1.');
const [minor1, minor9] = [0x31, 0x39];

/**
 * Reads along what a client sends on a connection of HTTP/1.1, to find what the parser behind it
 * would take more lightly than others do (RFC 9112 §2 to §7): line ends other than CR LF where the
 * parser skips them, a request line with other than two single spaces, other protocols in it, sizes
 * of chunks that overflow, chunk extensions and trailers that should not be there, and heads that
 * are longer than they may be. What the parser refuses itself is none of its business.
 */
export class Wire {
  /** Why nothing more may be read; stays. */
  refusal: Failure | undefined;
  /**
   * Whether the bytes since the last message begin no method that the parser knows: it is to get
   * none of them. What follows within a few bytes says how they are refused.
   */
  isHeld = false;
  /** What comes next. */
  #next: (chunk: Buffer, from: number) => number = this.#readStart;
  #emptyLines = 0;
  /** Pieces of a head, or the line of a chunk or trailer, that has not come to its end. */
  #pieces: string[] = [];
  #piecesBytes = 0;
  #head = '';
  /** Bytes of the request line; undefined while it has not come to its end. */
  #lineBytes: number | undefined;
  /** How much of `versionStart` the request line ends in so far. */
  #versionBytes = 0;
  #hasMethod = false;
  /** Up to where the content goes, in bytes from here. */
  #contentLeft = 0;
  #trailerBytes = 0;
  #isBoundary = false;

  /**
   * Up to where a chunk may be passed on, counted as `from` is. Short of its end either `refusal`
   * says why, or a head or a message has come to its end. What follows is to be read here only if
   * that has not turned the connection over to another protocol; and the parser is given it apart,
   * since Node loses what it gets together with a message whose Upgrade it does not act upon.
   */
  read(chunk: Buffer, from: number): number {
    let at = from;
    this.#isBoundary = false;
    while (at < chunk.length && !this.#pauses()) at = this.#next(chunk, at);
    return at;
  }

  #pauses(): boolean {
    return this.refusal !== undefined || this.#isBoundary;
  }

  /** Whether all that has come so far is whole messages. */
  get isBetweenMessages(): boolean {
    return this.#next === this.#readStart && this.#emptyLines === 0;
  }

  /** The newest head as far as it has come, latin1. */
  get head(): string {
    return this.#head === '' ? this.#pieces.join('') : this.#head;
  }

  #refuse(message: string): void {
    this.refusal = new Failure('invalid', message);
  }

  /** Between two messages: a few empty lines are let pass (RFC 9112 §2.2). */
  #readStart(chunk: Buffer, from: number): number {
    const first = chunk[from];
    if (first === cr) {
      this.#next = this.#readStartLf;
      return from + 1;
    }
    if (first === lf) {
      this.#refuse('A line ends in CR LF.');
      return from;
    }
    this.#emptyLines = 0;
    this.#head = '';
    this.#versionBytes = 0;
    this.#hasMethod = false;
    this.#next = this.#readHead;
    return this.#readHead(chunk, from);
  }

  #readStartLf(chunk: Buffer, from: number): number {
    this.#emptyLines += 1;
    if (chunk[from] !== lf) this.#refuse('A line ends in CR LF.');
    else if (this.#emptyLines > emptyLinesMax) this.#refuse('There are too many empty lines.');
    this.#next = this.#readStart;
    return this.refusal === undefined ? from + 1 : from;
  }

  #readHead(chunk: Buffer, from: number): number {
    if (this.#lineBytes === undefined) this.#lowerVersion(chunk, from);
    const text = chunk.toString('latin1', from);
    if (this.#pieces.length === 0) {
      const end = text.indexOf(headEnd);
      if (end !== -1) return this.#takeHead(text.slice(0, end + 2), from, end + headEnd.length);
    }
    return this.#readHeadOn(text, from);
  }

  /** The same for a head that comes in pieces: each byte is looked at once. */
  #readHeadOn(text: string, from: number): number {
    const tail = this.#pieces.at(-1) ?? '';
    const joined = tail + text;
    const end = joined.indexOf(headEnd);
    if (end === -1) {
      this.#keepPiece(text);
      return this.refusal === undefined ? from + text.length : from;
    }
    const taken = end + headEnd.length - tail.length;
    const head = this.#pieces.join('') + text.slice(0, taken);
    return this.#takeHead(head.slice(0, -2), from, taken);
  }

  /** Keeps the last three characters apart: the end of a head may be in the middle of them. */
  #keepPiece(text: string): void {
    const tail = (this.#pieces.pop() ?? '') + text;
    const lineEnd = this.#lineBytes === undefined ? tail.indexOf('\r\n') : -1;
    if (lineEnd !== -1) this.#lineBytes = this.#piecesBytes + text.length - tail.length + lineEnd;
    this.#piecesBytes += text.length;
    this.#pieces.push(tail.slice(0, -3), tail.slice(-3));
    const lineBytes = this.#lineBytes ?? this.#piecesBytes;
    if (!this.#hasMethod) this.#requireMethod(this.head);
    if (this.refusal === undefined) this.#requireSizes(lineBytes, this.#piecesBytes - lineBytes);
  }

  /**
   * Has the parser read HTTP/1.2 to HTTP/1.9 as HTTP/1.1 (RFC 9110 §2.5): it knows none of them.
   * Where the line goes on behind that, it is refused as a whole.
   */
  #lowerVersion(chunk: Buffer, from: number): void {
    const lineEnd = chunk.indexOf(lf, from);
    const end = lineEnd === -1 ? chunk.length : lineEnd;
    for (let at = from; at < end; at += 1) {
      const byte = chunk[at] ?? 0;
      const isMinor = this.#versionBytes === versionStart.length;
      if (isMinor && byte > minor1 && byte <= minor9) chunk[at] = minor1;
      if (byte === versionStart[this.#versionBytes]) this.#versionBytes += 1;
      else this.#versionBytes = byte === versionStart[0] ? 1 : 0;
    }
  }

  #requireMethod(head: string): void {
    const state = methodState(head);
    this.#hasMethod = state !== 'unfinished';
    if (state === 'malformed') this.#refuse('The request does not begin with a method.');
    else if (state === 'not_implemented') this.refusal = methodNotImplemented();
    else if (state === 'unfinished') this.isHeld = !beginsMethod(head);
  }

  #requireSizes(lineBytes: number, blockBytes: number): void {
    if (lineBytes > requestLineBytesMax) this.refusal = requestLineTooLong();
    else if (blockBytes > headerBlockBytesMax) this.refusal = headerSectionTooLarge();
  }

  /** Reads a whole head, its last line's end included; `taken` are its bytes in this chunk. */
  #takeHead(head: string, from: number, taken: number): number {
    this.#pieces = [];
    this.#piecesBytes = 0;
    this.#lineBytes = undefined;
    this.#head = head;
    const lineEnd = head.indexOf('\r\n');
    this.#requireMethod(head);
    if (this.refusal === undefined) this.#requireSizes(lineEnd, head.length - lineEnd);
    if (this.refusal !== undefined) return from;
    if (!isRequestLine(head.slice(0, lineEnd))) {
      this.#refuse('The request line is not: method, space, target, space, HTTP/1.1.');
      return from;
    }
    const body = bodyOf(head);
    if (typeof body === 'string') {
      this.#refuse(body);
      return from;
    }
    this.#isBoundary = true;
    this.#contentLeft = body.length;
    if (body.isChunked) this.#next = this.#readChunkLine;
    else this.#next = body.length > 0 ? this.#readContent : this.#readStart;
    return from + taken;
  }

  #readContent(chunk: Buffer, from: number): number {
    const end = this.#skipContent(chunk, from);
    if (this.#contentLeft === 0) this.#endMessage();
    return end;
  }

  #endMessage(): void {
    this.#isBoundary = true;
    this.#next = this.#readStart;
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
    this.#contentLeft = size + 2;
    this.#trailerBytes = 0;
    this.#next = size === 0 ? this.#readTrailer : this.#readChunk;
    return end;
  }

  /** A chunk's content and the line end behind it, which the parser looks at. */
  #readChunk(chunk: Buffer, from: number): number {
    const end = this.#skipContent(chunk, from);
    if (this.#contentLeft === 0) this.#next = this.#readChunkLine;
    return end;
  }

  #skipContent(chunk: Buffer, from: number): number {
    const end = Math.min(chunk.length, from + this.#contentLeft);
    this.#contentLeft -= end - from;
    return end;
  }

  #readTrailer(chunk: Buffer, from: number): number {
    const end = this.#readLine(chunk, from, trailerBytesMax - this.#trailerBytes);
    const line = this.#wholeLine();
    if (line === undefined) return end;
    this.#trailerBytes += line.length;
    const refused = refusedTrailer(line);
    if (refused !== undefined) {
      this.#refuse(refused);
      return from;
    }
    if (line === '\r\n') this.#endMessage();
    return end;
  }

  /** Takes a line, or as much as there is of it, up to its LF; returns where it ends. */
  #readLine(chunk: Buffer, from: number, bytesMax: number): number {
    const found = chunk.indexOf(lf, from);
    const end = found === -1 ? chunk.length : found + 1;
    this.#piecesBytes += end - from;
    if (this.#piecesBytes > bytesMax) {
      this.#refuse('A line of the chunked content is too long.');
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
