import { chunkLineBytesMax, trailerBytesMax } from './limits.ts';
import type { MessageContent } from './message-content.ts';
import { chunkSize } from './chunked.ts';
import { tokenSource, trimOws } from './syntax.ts';

const lf = 10;
const trailerLine = new RegExp(`^(${tokenSource}):([\\t\\x20-\\x7e\\x80-\\xff]*)\\r\\n$`);

/** What of a message comes next. */
type Next = 'size' | 'content' | 'lineEnd' | 'trailer' | 'nothing';

/**
 * Content that comes in chunks (RFC 9112 §7.1), and the trailer section behind it. Each line is
 * bounded, and the trailer section as a whole.
 */
export class ChunkedContent implements MessageContent {
  isBroken = false;
  readonly trailers: string[] = [];
  restBytes = 0;
  #next: Next = 'size';
  /** Bytes of a chunk that are still to come. */
  #left = 0;
  /** What has come of a line. */
  #line = '';
  #trailerBytes = 0;

  get isWhole(): boolean {
    return this.#next === 'nothing';
  }

  read(bytes: Buffer): Buffer {
    const content: Buffer[] = [];
    let at = 0;
    while (at < bytes.length && !this.isBroken && !this.isWhole) {
      if (this.#next === 'content') {
        const end = Math.min(bytes.length, at + this.#left);
        content.push(bytes.subarray(at, end));
        this.#left -= end - at;
        if (this.#left === 0) this.#next = 'lineEnd';
        at = end;
      } else at = this.#readLine(bytes, at);
    }
    this.restBytes = bytes.length - at;
    return content.length === 1 && content[0] ? content[0] : Buffer.concat(content);
  }

  /** Reads a line as far as it has come; returns where that ends. */
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
      this.isBroken = !this.#takeLine(line);
    }
    return end;
  }

  get #lineBytesMax(): number {
    if (this.#next === 'lineEnd') return 2;
    return this.#next === 'size' ? chunkLineBytesMax : trailerBytesMax - this.#trailerBytes;
  }

  /** Takes a line in, its end included; whether it is what has to stand there. */
  #takeLine(line: string): boolean {
    switch (this.#next) {
      case 'size': {
        const size = chunkSize(line);
        if (size === undefined) return false;
        this.#left = size;
        this.#next = size === 0 ? 'trailer' : 'content';
        return true;
      }
      case 'lineEnd':
        this.#next = 'size';
        return line === '\r\n';
      case 'trailer':
        return this.#takeTrailer(line);
      case 'content':
      case 'nothing':
        return false;
    }
  }

  #takeTrailer(line: string): boolean {
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
