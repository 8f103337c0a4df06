import { splitList } from '../../http/syntax.ts';
import { type ErrorName, errorCodes } from './frames.ts';
import { http2WindowBytes } from './limits.ts';

/** The priority of an answer that the client says nothing about (§4.1, §4.2). */
const defaultPriority: Priority = { urgency: 3, isIncremental: false };

/** Longer values say nothing that matters here. */
const valueCharactersMax = 256;

/** Values that were read before: browsers send few different ones. */
const priorities = new Map<string, Priority>();
const prioritiesMax = 100;

/** Streams that ended lately, which a client may still name in a frame. */
export const http2EndedStreamsMax = 256;

/** The streams of a connection that ended last, with who reset them. */
export class EndedStreams {
  readonly #ids: number[] = [];
  readonly #resetBy: Stream['resetBy'][] = [];
  /** The place of the next one: the oldest is overwritten. */
  #next = 0;

  add(id: number, resetBy: Stream['resetBy']): void {
    this.#ids[this.#next] = id;
    this.#resetBy[this.#next] = resetBy;
    this.#next = (this.#next + 1) % http2EndedStreamsMax;
  }

  /** Who reset a stream, undefined if nobody did; `unknown` if it ended long ago. */
  resetBy(id: number): Stream['resetBy'] | 'unknown' {
    const size = this.#ids.length;
    // The newest first: a stream that was refused again is there twice.
    for (let back = 1; back <= size; back += 1) {
      const at = (this.#next - back + size) % size;
      if (this.#ids[at] === id) return this.#resetBy[at];
    }
    return 'unknown';
  }
}

/** The part of the server that answers a stream. */
export interface StreamReader {
  /** Content has arrived; `Stream.consumed` says when it was read. */
  data(bytes: Buffer): void;
  /** The request has ended; `trailers` is a flat list of names and values. */
  end(trailers: readonly string[]): void;
  /** The stream has closed; both sides have ended, or it was reset. */
  close(): void;
}

/** The encoded head of an answer, and the encoded Date behind it unless the head has one. */
export interface EncodedHead {
  readonly block: Buffer;
  readonly date: Buffer | undefined;
}

/** Both parts of a head as one block. */
export function joinedHead({ block, date }: EncodedHead): Buffer {
  return date === undefined ? block : Buffer.concat([block, date]);
}

/** Called with whether the system has taken some bytes; false once the connection is lost. */
export type BytesTaken = (isTaken: boolean) => void;

/** What a stream needs of its connection. */
interface StreamConnection {
  /** The window that each stream gets, at most. */
  readonly streamWindow: number;
  sendHeaders(stream: Stream, block: Buffer, isWhole: boolean): void;
  /** Whether content has to wait for the client: heads do not wait with it. */
  readonly isBlocked: boolean;
  sendLater(stream: Stream): void;
  resetStream(stream: Stream, code: number): void;
  sendWindowUpdate(stream: number, bytes: number): void;
  consumed(bytes: number): void;
}

/** Content that waits to be sent. */
interface Piece {
  bytes: Buffer;
  /** Called when the system has taken the last byte, or takes no more. */
  readonly done: BytesTaken | undefined;
}

/** A request and its answer on a connection (RFC 9113 §5). */
export class Stream {
  readonly id: number;
  readonly #connection: StreamConnection;
  reader: StreamReader | undefined;
  priority: Priority = defaultPriority;
  /** Bytes of content that the client allows. */
  sendWindow: number;
  /** Bytes of content that the client may still send, and those at most. */
  receiveWindow: number;
  receiveSize: number;
  /** Whether the client, and whether the server, has ended its side. */
  hasRequestEnded = false;
  hasAnswerEnded = false;
  isClosed = false;
  /** How the stream was reset, if it was. */
  resetBy: 'client' | 'server' | undefined;
  /** Content of the answer that was sent. */
  sentBytes = 0;
  /** Content that has arrived, and its announced length. */
  receivedBytes = 0;
  readonly length: number | undefined;
  readonly #pieces: Piece[] = [];
  #unsentBytes = 0;
  #isEnding = false;
  /** A head that waits for the content of the same answer. */
  #head: EncodedHead | undefined;
  #trailers: Buffer | undefined;
  #ended: BytesTaken | undefined;
  #unreturned = 0;

  constructor(
    connection: StreamConnection,
    id: number,
    { sendWindow, length }: { readonly sendWindow: number; readonly length: number | undefined },
  ) {
    this.#connection = connection;
    this.id = id;
    this.sendWindow = sendWindow;
    this.receiveSize = http2WindowBytes;
    this.receiveWindow = http2WindowBytes;
    this.length = length;
  }

  /** Content that waits to be sent. */
  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  /** Whether something of the answer can be sent: content that the window allows, or the end. */
  get isSendable(): boolean {
    if (this.#unsentBytes > 0) return this.sendWindow > 0;
    return this.#isEnding;
  }

  /** Sends the head of an answer, or of an interim one, as an encoded block. */
  head(block: Buffer, isWhole = false): void {
    if (this.isClosed || this.hasAnswerEnded) return;
    this.#connection.sendHeaders(this, block, isWhole);
  }

  /** Sends content, when the client and all more urgent answers allow it. */
  write(bytes: Buffer, done?: BytesTaken): void {
    if (this.isClosed || this.hasAnswerEnded || bytes.length === 0) {
      done?.(!this.isClosed);
      return;
    }
    this.#pieces.push({ bytes, done });
    this.#unsentBytes += bytes.length;
    this.#connection.sendLater(this);
  }

  /**
   * Ends the answer after its content, of which `content` is the last part, with trailer fields if
   * there are any; `ended` is called when the system has taken all of it, or takes no more.
   */
  end(ended: BytesTaken, content?: Buffer, trailers?: Buffer): void {
    if (this.isClosed || this.hasAnswerEnded) return;
    this.#isEnding = true;
    if (content !== undefined && content.length > 0) {
      this.#pieces.push({ bytes: content, done: undefined });
      this.#unsentBytes += content.length;
    }
    this.#trailers = trailers;
    this.#ended = ended;
    this.#connection.sendLater(this);
  }

  /** Sends a whole answer: its head with its content, if that may be sent soon. */
  whole(head: EncodedHead, content: Buffer, ended: BytesTaken): void {
    if (this.isClosed || this.hasAnswerEnded) return;
    if (this.sendWindow >= content.length && !this.#connection.isBlocked) this.#head = head;
    else this.head(joinedHead(head));
    this.end(ended, content);
  }

  /** Takes the head that waits for its content; undefined if none does. */
  takeHead(): EncodedHead | undefined {
    const head = this.#head;
    this.#head = undefined;
    return head;
  }

  /** Ends the stream at once (§6.4). */
  reset(code: ErrorName): void {
    if (!this.isClosed) this.#connection.resetStream(this, errorCodes[code]);
  }

  /** To be called when content of the request has been read: the client may send as much again. */
  consumed(bytes: number): void {
    if (bytes === 0) return;
    this.#connection.consumed(bytes);
    this.#unreturned += bytes;
    if (2 * this.#unreturned >= this.receiveSize) this.returnWindow();
  }

  /** Lets the client send as much as was read, and what the window has grown by. */
  returnWindow(): void {
    if (this.isClosed || this.hasRequestEnded) return;
    const size = Math.max(this.receiveSize, this.#connection.streamWindow);
    const more = this.#unreturned + size - this.receiveSize;
    this.receiveSize = size;
    this.#unreturned = 0;
    this.receiveWindow += more;
    this.#connection.sendWindowUpdate(this.id, more);
  }

  /**
   * Takes up to a number of bytes of the content that waits; `done` callbacks of whole pieces are
   * added to a list. Returns at most one piece, so that nothing has to be copied.
   */
  take(bytesMax: number, dones: BytesTaken[]): Buffer {
    const [piece] = this.#pieces;
    if (piece === undefined) return nothing;
    const { bytes } = piece;
    const length = Math.min(bytes.length, bytesMax, this.sendWindow);
    this.sendWindow -= length;
    this.#unsentBytes -= length;
    this.sentBytes += length;
    if (length === bytes.length) {
      this.#pieces.shift();
      if (piece.done !== undefined) dones.push(piece.done);
      return bytes;
    }
    piece.bytes = bytes.subarray(length);
    return bytes.subarray(0, length);
  }

  /** Whether the answer ends here: nothing waits, and no more comes. */
  get isAtEnd(): boolean {
    return this.#isEnding && this.#unsentBytes === 0;
  }

  /** The trailer fields of the answer, to be sent at its end. */
  get trailers(): Buffer | undefined {
    return this.#trailers;
  }

  /** What to call when the system has taken the end of the answer. */
  get ended(): BytesTaken | undefined {
    return this.#ended;
  }

  /** To be called by the connection when the stream has closed. */
  close(): void {
    this.isClosed = true;
    const pieces = this.#pieces.splice(0);
    this.#unsentBytes = 0;
    this.reader?.close();
    for (const { done } of pieces) done?.(false);
  }
}

const nothing = Buffer.alloc(0);

/** When an answer is sent, beside others of its connection (RFC 9218 §4). */
interface Priority {
  /** 0 comes first, 7 last. */
  readonly urgency: number;
  /** Whether the client uses parts of the answer: it then shares the connection with others. */
  readonly isIncremental: boolean;
}

/** Reads the value of Priority; unknown and malformed parameters have no effect (§4). */
export function parsePriority(value: string | undefined): Priority {
  if (value === undefined || value.length > valueCharactersMax) return defaultPriority;
  const known = priorities.get(value);
  if (known !== undefined) return known;
  let { urgency, isIncremental } = defaultPriority;
  for (const member of splitList(value, ',') ?? []) {
    const [, digit] = /^u=([0-7])(?:;|$)/.exec(member) ?? [];
    if (digit !== undefined) urgency = Number(digit);
    const [, said] = /^i(?:=\?([01]))?(?:;|$)/.exec(member) ?? [];
    if (/^i(?:;|$)/.test(member) || said !== undefined) isIncremental = said !== '0';
  }
  const parsed = { urgency, isIncremental };
  if (priorities.size < prioritiesMax) priorities.set(value, parsed);
  return parsed;
}
