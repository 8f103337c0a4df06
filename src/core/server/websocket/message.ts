import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Allocation } from '../../fair/shared-limit.ts';
import { type Execute, authorise } from '../../operations/execute.ts';
import {
  type Envelope,
  envelopeFrom,
  envelopeOutline,
  isLongJson,
  parseInput,
  parseInputInTurns,
  requireParsable,
} from '../../operations/http/envelope.ts';
import { operationBytesMax } from '../../operations/http/operations.ts';
import { readBodyBytesMax, requestTimeoutMs } from '../../operations/limits.ts';
import type { Call } from '../../operations/operation.ts';
import { turnsOf } from '../../operations/turns.ts';
import { Failure } from '../../values/failure.ts';
import { parseJson } from '../../values/json/parse.ts';
import type { JsonMember, JsonOutline } from '../../values/json/json-outline.ts';
import { jsonDepthMax } from '../../values/limits.ts';
import { heldPieceBytes } from '../limits.ts';

/** Bytes that wait for the end of a turn of the event loop, to be sent in one system call. */
export const corkedBytesMax = 64 * 1024;

/** Limits the size, the memory and the time of a message that is not complete. */
export class UnfinishedMessage {
  readonly #parts: UnfinishedParts;
  readonly #frames = new FrameCounter();
  #allocation: Allocation | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: UnfinishedParts) {
    this.#parts = parts;
    parts.connection.on('data', this.#read);
  }

  /** Refuses the message as soon as it exceeds the size limit. */
  check(): void {
    if (!this.#isTooLarge()) return;
    const message = `A message has at most ${this.#parts.bytesMax()} bytes.`;
    this.#parts.refuse(1009, new Failure('too_large', message, { limit: 'content_size' }));
  }

  /** Stops counting, and frees the allocation. */
  stop(): void {
    this.#parts.connection.off('data', this.#read);
    this.#end();
  }

  readonly #read = (chunk: Buffer): void => {
    const { messages } = this.#frames;
    this.#frames.read(chunk);
    if (this.#frames.messages > messages) this.#end();
    if (this.#frames.bytes === 0) {
      this.#end();
      return;
    }
    if (this.#timer === undefined) this.#begin();
    try {
      this.#allocation?.grow(chunk.length + heldPieceBytes);
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown;
      this.#parts.refuse(1013, thrown);
      return;
    }
    // An earlier message in the same chunk may authenticate the client and raise the limit.
    if (this.#isTooLarge()) {
      setImmediate(() => {
        this.check();
      });
    }
  };

  #isTooLarge(): boolean {
    return this.#frames.contentBytes > this.#parts.bytesMax();
  }

  #begin(): void {
    this.#allocation = this.#parts.allocation();
    this.#timer = setTimeout(() => {
      this.#expire();
    }, requestTimeoutMs);
    this.#timer.unref();
  }

  #expire(): void {
    if (this.#parts.isPaused()) {
      this.#timer?.refresh();
      return;
    }
    const message = `A message must be complete within ${requestTimeoutMs / 1000} s.`;
    this.#parts.refuse(1008, new Failure('invalid', message, { limit: 'request_time' }));
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#allocation?.free();
    this.#allocation = undefined;
  }
}

/**
 * The parts of a frame header that follow from its second byte: extended length and mask (RFC 6455
 * §5.2).
 */
const plainHeaderBytes = 2;
const maskBytes = 4;
const extendedLengths: ReadonlyMap<number, number> = new Map([
  [126, 2],
  [127, 8],
]);

/**
 * Reads the frame headers of a client (RFC 6455 §5.2) to count the bytes of a message before it is
 * complete: ws reports only complete messages.
 */
export class FrameCounter {
  /** Bytes of the current incomplete message, with its frame headers; 0 between messages. */
  bytes = 0;
  /** Bytes of content that the frames of that message announce. */
  contentBytes = 0;
  /** The number of complete messages. */
  messages = 0;
  readonly #header: number[] = [];
  /** Bytes of content that the current frame still lacks. */
  #leftBytes = 0;
  #isControl = false;
  #isFinal = false;
  #isInMessage = false;

  /** Reads the next bytes of the connection. */
  read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      if (this.#leftBytes > 0) {
        const step = Math.min(this.#leftBytes, chunk.length - at);
        this.#leftBytes -= step;
        this.bytes += step;
        at += step;
      } else {
        this.#header.push(chunk[at] ?? 0);
        this.bytes += 1;
        at += 1;
        if (!this.#beginFrame()) continue;
      }
      if (this.#leftBytes === 0) this.#endFrame();
    }
  }

  /** Parses the header of a frame; returns whether the header is complete. */
  #beginFrame(): boolean {
    const [first, second] = this.#header;
    if (first === undefined || second === undefined) return false;
    const shortLength = second & 0x7f;
    const extendedBytes = extendedLengths.get(shortLength) ?? 0;
    const mask = (second & 0x80) === 0 ? 0 : maskBytes;
    if (this.#header.length < plainHeaderBytes + extendedBytes + mask) return false;
    const extended = this.#header.slice(plainHeaderBytes, plainHeaderBytes + extendedBytes);
    this.#leftBytes =
      extendedBytes === 0 ? shortLength : extended.reduce((sum, byte) => 256 * sum + byte, 0);
    this.#isFinal = (first & 0x80) !== 0;
    this.#isControl = (first & 0x08) !== 0;
    this.#isInMessage ||= !this.#isControl;
    if (!this.#isControl) this.contentBytes += this.#leftBytes;
    this.#header.length = 0;
    return true;
  }

  #endFrame(): void {
    if (this.#isFinal && !this.#isControl) {
      this.#isInMessage = false;
      this.messages += 1;
    }
    // A control frame may come between messages or inside one.
    if (!this.#isInMessage) [this.bytes, this.contentBytes] = [0, 0];
  }
}

/** The name of an operation, and the id, in a websocket message, as JSON. */
const operationNameBytesMax = 256;
const messageIdBytesMax = 4_096;

/** A message of a websocket. Its outline gives operation and id before the message is parsed. */
export class WebSocketMessage {
  /** The name of the operation; '' without one. */
  readonly operation: string;
  readonly #bytes: Buffer;
  readonly #outline: JsonOutline;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#outline = envelopeOutline(bytes);
    const name = this.#value('a', operationNameBytesMax);
    this.operation = typeof name === 'string' ? name : '';
  }

  /**
   * Returns an object with the id, which the answer repeats; an empty object without an id. Throws
   * `too_large`.
   */
  echo(): { readonly id?: unknown } {
    const { start, end, depth } = this.#outline.members.get('id') ?? noMember;
    if (depth > jsonDepthMax || end - start > messageIdBytesMax) {
      const bounds = `${messageIdBytesMax} bytes and ${jsonDepthMax} levels`;
      throw new Failure('too_large', `The id of a message has at most ${bounds}.`, { field: 'id' });
    }
    const id = this.#value('id', messageIdBytesMax);
    return id === undefined ? {} : { id };
  }

  /**
   * Parses the message after checking that the caller may call the operation, and that the message
   * is neither too large nor nested too deeply; a long one in turns. Throws `unauthenticated`,
   * `forbidden`, `too_large` or `invalid`.
   */
  parse(
    { find }: Pick<Execute, 'find'>,
    { caller, signal }: Pick<Call, 'caller' | 'signal'>,
  ): Envelope | Promise<Envelope> {
    const operation = find(this.operation);
    if (operation !== undefined) authorise(operation, caller, { mayDraft: true });
    const bytesMax =
      operation === undefined ? readBodyBytesMax : operationBytesMax(operation, caller);
    if (this.#bytes.length > bytesMax) {
      throw new Failure(
        'too_large',
        `A message for this operation has at most ${bytesMax} bytes.`,
        {
          limit: 'content_size',
        },
      );
    }
    requireParsable(this.#outline, operation?.effect ?? 'reads');
    const [bytes, outline] = [this.#bytes, this.#outline];
    if (!isLongJson(bytes)) return envelopeFrom(parseInput(bytes.toString(), outline));
    const parsed = parseInputInTurns(bytes, outline, turnsOf({ caller, signal }));
    return parsed.then((v) => envelopeFrom(v));
  }

  /** Returns the value of a member; undefined if it is absent, malformed or too long. */
  #value(name: string, bytesMax: number): unknown {
    const { start, end } = this.#outline.members.get(name) ?? noMember;
    if (end - start > bytesMax) return undefined;
    try {
      return parseJson(this.#bytes.toString('utf8', start, end));
    } catch {
      return undefined;
    }
  }
}

const noMember: JsonMember = { start: 0, end: 0, depth: 0 };

/** The limits of an incomplete message, and the action when it exceeds one. */
interface UnfinishedParts {
  readonly connection: Duplex;
  /** Returns the size limit of the message; Infinity while it is unknown. */
  readonly bytesMax: () => number;
  /** Returns an allocation from the process's limit of bytes in incomplete messages. */
  readonly allocation: () => Allocation;
  /** Whether the server has paused reading; the client is not late then. */
  readonly isPaused: () => boolean;
  /** Closes the websocket. */
  readonly refuse: (code: number, failure: Failure) => void;
}

/**
 * Sends all writes of a turn of the event loop in one system call, because a call for each answer
 * takes longer than its serialization. Large amounts go out at once.
 */
export function corkForTurn(connection: Duplex): void {
  if (connection.writableLength >= corkedBytesMax) {
    connection.uncork();
  } else if (connection.writableCorked === 0) {
    connection.cork();
    process.nextTick(() => {
      connection.uncork();
    });
  }
}

/**
 * Sends pieces of text as one message with a frame for each, without copying them. Calls `sent`
 * when the connection has taken all of them, or has ended.
 */
export function sendPieces(
  websocket: WebSocket,
  pieces: readonly Buffer[],
  sent: () => void,
): void {
  for (const [at, piece] of pieces.entries()) {
    const fin = at === pieces.length - 1;
    websocket.send(piece, { binary: false, fin }, fin ? sent : undefined);
  }
}
