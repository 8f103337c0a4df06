import { Failure } from '../../values/failure.ts';
import {
  chunkLineBytesMax,
  headerBlockBytesMax,
  requestLineBytesMax,
  trailerBytesMax,
} from '../limits.ts';
import { beginsMethod } from '../request.ts';
import { chunkSize, contentFraming, isRequestLine, methodState, trailerRefusal } from './head.ts';
import {
  headerSectionTooLarge,
  methodNotImplemented,
  requestLineTooLong,
  unencodedTarget,
} from './refusals.ts';

/** Empty lines before a request line: a faulty client sends some after its content. */
const emptyLinesMax = 4;

const cr = 13;
const lf = 10;
const headEnd = '\r\n\r\n';
/** The request line up to the digit of the minor version. */
const versionStart = Buffer.from(' HTTP/1.');
const [minor1, minor9] = [0x31, 0x39];
const lastOfAscii = 0x7f;
const manyEmptyLines = `More than ${emptyLinesMax} empty lines come before the request line.`;

/**
 * Scans the bytes of an HTTP/1.1 connection before Node's parser gets them, and refuses input that
 * the parser accepts but other recipients could read differently (RFC 9112 §2 to §7): line ends
 * other than CR LF where the parser skips them, a request line without exactly two single spaces,
 * other protocols in it, overflowing chunk sizes, forbidden chunk extensions and trailers, and
 * heads over the size limits. Input that the parser refuses itself is not checked here.
 */
export class RequestScanner {
  /** The reason to read nothing more; once set, it stays. */
  refusal: Failure | undefined;
  /** Whether the bytes that were read last end a head. */
  endsHead = false;
  /** The reader of the next bytes. */
  #next: (chunk: Buffer, from: number) => number = this.#readStart;
  #emptyLines = 0;
  /** Pieces of a head, chunk line or trailer line whose end has not arrived. */
  #pieces: string[] = [];
  #piecesBytes = 0;
  #head = '';
  /** Bytes of the request line; undefined until its end arrives. */
  #lineBytes: number | undefined;
  /** The bytes of `versionStart` that the request line ends in so far. */
  #versionBytes = 0;
  #hasMethod = false;
  #isMethodUnknown = false;
  /** Whether the request line has a byte beyond ASCII. */
  #isUnencoded = false;
  /** Bytes of content that have not arrived. */
  #contentLeft = 0;
  #trailerBytes = 0;
  #isBoundary = false;

  /**
   * Scans a chunk from a position, and returns the position up to which the parser may have it. A
   * result before the end of the chunk means that `refusal` is set, or that a head or message has
   * ended. The caller reads on only if that message did not switch the connection to another
   * protocol. It gives each part to the parser separately: Node loses bytes that it gets together
   * with a message whose Upgrade it ignores.
   */
  read(chunk: Buffer, from: number): number {
    let at = from;
    this.#isBoundary = false;
    this.endsHead = false;
    while (at < chunk.length && !this.#pauses()) at = this.#next(chunk, at);
    return at;
  }

  #pauses(): boolean {
    return this.refusal !== undefined || this.#isBoundary;
  }

  /**
   * Whether the parser must not get the bytes since the last message: they begin no method that it
   * knows, or have a target that it does not read. The rest of the head decides the refusal.
   */
  get isWithheld(): boolean {
    return this.#isMethodUnknown || this.#isUnencoded;
  }

  /** Whether the bytes so far are whole messages. */
  get isBetweenMessages(): boolean {
    return this.#next === this.#readStart && this.#emptyLines === 0;
  }

  /** The newest head, or the part of it that has arrived; latin1. */
  get head(): string {
    return this.#head === '' ? this.#pieces.join('') : this.#head;
  }

  #refuse(message: string): void {
    this.refusal = new Failure('invalid', message);
  }

  /** Reads between two messages: a few empty lines are allowed (RFC 9112 §2.2). */
  #readStart(chunk: Buffer, from: number): number {
    const first = chunk[from];
    if (first === cr) {
      this.#next = this.#readStartLf;
      return from + 1;
    }
    if (first === lf) {
      this.#refuse('A line of the request does not end with CR LF.');
      return from;
    }
    this.#emptyLines = 0;
    this.#head = '';
    this.#versionBytes = 0;
    this.#hasMethod = false;
    this.#isUnencoded = false;
    this.#next = this.#readHead;
    return this.#readHead(chunk, from);
  }

  #readStartLf(chunk: Buffer, from: number): number {
    this.#emptyLines += 1;
    if (chunk[from] !== lf) this.#refuse('A line of the request does not end with CR LF.');
    else if (this.#emptyLines > emptyLinesMax) this.#refuse(manyEmptyLines);
    this.#next = this.#readStart;
    return this.refusal === undefined ? from + 1 : from;
  }

  #readHead(chunk: Buffer, from: number): number {
    if (this.#lineBytes === undefined) this.#readLineBytes(chunk, from);
    const text = chunk.toString('latin1', from);
    if (this.#pieces.length === 0) {
      const end = text.indexOf(headEnd);
      if (end !== -1) return this.#takeHead(text.slice(0, end + 2), from, end + headEnd.length);
    }
    return this.#readHeadPiece(text, from);
  }

  /** Reads a head that arrives in pieces; scans each byte once. */
  #readHeadPiece(text: string, from: number): number {
    const tail = this.#pieces.at(-1) ?? '';
    const joined = tail + text;
    const end = joined.indexOf(headEnd);
    if (end === -1) {
      this.#storePiece(text);
      return this.refusal === undefined ? from + text.length : from;
    }
    const taken = end + headEnd.length - tail.length;
    const head = this.#pieces.join('') + text.slice(0, taken);
    return this.#takeHead(head.slice(0, -2), from, taken);
  }

  /**
   * Stores a piece of a head. The last three characters are a piece of their own, because the end
   * of the head may begin in them.
   */
  #storePiece(text: string): void {
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
   * Notices bytes beyond ASCII in the request line, and changes HTTP/1.2 to HTTP/1.9 to HTTP/1.1
   * for the parser, which knows none of them (RFC 9110 §2.5). If the line does not end after the
   * version, `isRequestLine` refuses it.
   */
  #readLineBytes(chunk: Buffer, from: number): void {
    const lineEnd = chunk.indexOf(lf, from);
    const end = lineEnd === -1 ? chunk.length : lineEnd;
    for (let at = from; at < end; at += 1) {
      const byte = chunk[at] ?? 0;
      if (byte > lastOfAscii) this.#isUnencoded = true;
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
    else if (state === 'unfinished') this.#isMethodUnknown = !beginsMethod(head);
  }

  #requireSizes(lineBytes: number, blockBytes: number): void {
    if (lineBytes > requestLineBytesMax) this.refusal = requestLineTooLong();
    else if (blockBytes > headerBlockBytesMax) this.refusal = headerSectionTooLarge();
  }

  /**
   * Checks a whole head, its last line end included; `taken` counts the bytes of it in this chunk.
   */
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
    if (this.#isUnencoded) {
      this.refusal = unencodedTarget();
      return from;
    }
    const body = contentFraming(head);
    if (typeof body === 'string') {
      this.#refuse(body);
      return from;
    }
    this.#isBoundary = true;
    this.endsHead = true;
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

  /** Skips the content of a chunk and its line end, which the parser checks. */
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
    const refused = trailerRefusal(line);
    if (refused !== undefined) {
      this.#refuse(refused);
      return from;
    }
    if (line === '\r\n') this.#endMessage();
    return end;
  }

  /** Reads a line up to its LF, or the part that has arrived; returns the position after it. */
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
