import { chunkLineBytesMax, trailerBytesMax } from '../../http/limits.ts';
import { chunkSize } from '../../http/reading/head.ts';
import { tokenSource, trimOws } from '../../http/syntax.ts';

/** Reads the content of a response from the bytes that follow its head (RFC 9112 §6). */
export interface ResponseContent {
  /** Whether the bytes were not such content; nothing may be read after that. */
  readonly isBroken: boolean;
  /** Whether all content has been read, including the trailer section. */
  readonly isComplete: boolean;
  /** Whether the end of the connection ends the content. */
  readonly endsWithConnection: boolean;
  /** How many of the bytes read last follow the content. */
  readonly restBytes: number;
  /** Trailer fields: name, value, name, value, as they were sent, in latin1. */
  readonly trailers: readonly string[];
  /** Returns the content in the next bytes; empty if they have none. */
  read(bytes: Buffer): Buffer;
}

const noTrailers: readonly string[] = [];

/** Content with a Content-Length (RFC 9112 §6.2). */
export class SizedContent implements ResponseContent {
  readonly isBroken = false;
  readonly endsWithConnection = false;
  readonly trailers = noTrailers;
  restBytes = 0;
  #missing: number;

  constructor(length: number) {
    this.#missing = length;
  }

  get isComplete(): boolean {
    return this.#missing === 0;
  }

  read(bytes: Buffer): Buffer {
    const content = bytes.length > this.#missing ? bytes.subarray(0, this.#missing) : bytes;
    this.#missing -= content.length;
    this.restBytes = bytes.length - content.length;
    return content;
  }
}

/** Content that lasts until the connection ends (RFC 9112 §6.3, item 8). */
export class CloseDelimitedContent implements ResponseContent {
  readonly isBroken = false;
  readonly isComplete = false;
  readonly endsWithConnection = true;
  readonly restBytes = 0;
  readonly trailers = noTrailers;

  read(bytes: Buffer): Buffer {
    return bytes;
  }
}

const lf = 10;
const trailerLine = new RegExp(`^(${tokenSource}):([\\t\\x20-\\x7e\\x80-\\xff]*)\\r\\n$`);

/**
 * Content in chunks, and the trailer section after it (RFC 9112 §7.1). Each line and the trailer
 * section as a whole have a limit.
 */
export class ChunkedContent implements ResponseContent {
  isBroken = false;
  readonly endsWithConnection = false;
  readonly trailers: string[] = [];
  restBytes = 0;
  /** The part that comes next. */
  #next: 'size' | 'data' | 'dataEnd' | 'trailer' | 'nothing' = 'size';
  /** Bytes of the chunk that have not arrived. */
  #missing = 0;
  /** The beginning of a line that has arrived in part. */
  #line = '';
  #trailerBytes = 0;

  get isComplete(): boolean {
    return this.#next === 'nothing';
  }

  read(bytes: Buffer): Buffer {
    const content: Buffer[] = [];
    let at = 0;
    while (at < bytes.length && !this.isBroken && !this.isComplete) {
      if (this.#next === 'data') {
        const end = Math.min(bytes.length, at + this.#missing);
        content.push(bytes.subarray(at, end));
        this.#missing -= end - at;
        if (this.#missing === 0) this.#next = 'dataEnd';
        at = end;
      } else at = this.#readLine(bytes, at);
    }
    this.restBytes = bytes.length - at;
    return content.length === 1 && content[0] ? content[0] : Buffer.concat(content);
  }

  /** Reads a line, or the part of it that has arrived; returns the position after it. */
  #readLine(bytes: Buffer, from: number): number {
    const found = bytes.indexOf(lf, from);
    const end = found === -1 ? bytes.length : found + 1;
    if (this.#line.length + end - from > this.#lineBytesMax) {
      this.isBroken = true;
      return from;
    }
    this.#line += bytes.toString('latin1', from, end);
    if (found !== -1) {
      const line = this.#line;
      this.#line = '';
      this.isBroken = !this.#parseLine(line);
    }
    return end;
  }

  get #lineBytesMax(): number {
    if (this.#next === 'dataEnd') return 2;
    return this.#next === 'size' ? chunkLineBytesMax : trailerBytesMax - this.#trailerBytes;
  }

  /** Parses a line with its CR LF; returns whether it is valid at this place. */
  #parseLine(line: string): boolean {
    switch (this.#next) {
      case 'size': {
        const size = chunkSize(line);
        if (size === undefined) return false;
        this.#missing = size;
        this.#next = size === 0 ? 'trailer' : 'data';
        return true;
      }
      case 'dataEnd':
        this.#next = 'size';
        return line === '\r\n';
      case 'trailer':
        return this.#parseTrailer(line);
      case 'data':
      case 'nothing':
        return false;
    }
  }

  #parseTrailer(line: string): boolean {
    if (line === '\r\n') {
      this.#next = 'nothing';
      return true;
    }
    const [, name, value] = trailerLine.exec(line) ?? [];
    if (name === undefined || value === undefined) return false;
    this.#trailerBytes += line.length;
    this.trailers.push(name, trimOws(value));
    return true;
  }
}
