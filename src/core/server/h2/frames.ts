import { http2FrameBytesMax } from './limits.ts';

/**
 * Splits the bytes of a client into the preface and frames (RFC 9113 §3.4, §4.1), wherever they are
 * cut. It holds less than one frame.
 */
export class FrameReader {
  #rest: Buffer | undefined;
  #hasPreface = false;
  /** One object for all frames of a connection. */
  readonly #frame: Frame = { type: 0, flag: 0, stream: 0, bytes: preface, start: 0, end: 0 };

  /** Whether a part of a frame, or of the preface, has arrived. */
  get isWaiting(): boolean {
    return this.#rest !== undefined || !this.#hasPreface;
  }

  /**
   * Reads bytes; calls `take` with each whole frame until it returns false. Throws a
   * ConnectionError for another preface, and for a frame that is too long.
   */
  read(chunk: Buffer, take: (frame: Frame) => boolean): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    let at = 0;
    if (!this.#hasPreface) {
      const length = Math.min(bytes.length, preface.length);
      if (bytes.compare(preface, 0, length, 0, length) !== 0) {
        throw new ConnectionError('PROTOCOL_ERROR', 'The preface is not that of HTTP/2.');
      }
      if (length < preface.length) {
        this.#rest = bytes;
        return;
      }
      this.#hasPreface = true;
      at = preface.length;
    }
    const frame = this.#frame;
    while (bytes.length - at >= frameHeadBytes) {
      const length = bytes.readUIntBE(at, 3);
      if (length > http2FrameBytesMax) {
        throw new ConnectionError('FRAME_SIZE_ERROR', `A frame has ${length} bytes.`);
      }
      const start = at + frameHeadBytes;
      const end = start + length;
      if (end > bytes.length) break;
      frame.type = bytes[at + 3] ?? 0;
      frame.flag = bytes[at + 4] ?? 0;
      frame.stream = bytes.readUInt32BE(at + 5) & 0x7fffffff;
      frame.bytes = bytes;
      frame.start = start;
      frame.end = end;
      at = end;
      if (!take(frame)) return;
    }
    // A copy: the rest of a large chunk would keep all of it in memory.
    if (at < bytes.length) this.#rest = Buffer.from(bytes.subarray(at));
  }
}

/** The frames of HTTP/2 (RFC 9113 §4, §6). */

/** The bytes with which a client begins a connection (§3.4). */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** The bytes before the content of a frame (§4.1). */
export const frameHeadBytes = 9;

/** The types of frames (§6). */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
  /** RFC 9218 §7.1. */
  priorityUpdate: 16,
} as const;

/** The flags of frames, some of which share a bit (§6). */
export const flags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

/** The settings in use (§6.5.2). */
export const settingIds = {
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
  /** RFC 8441 §3. */
  enableConnectProtocol: 8,
  /** RFC 9218 §2.1. */
  noRfc7540Priorities: 9,
} as const;

/** The error codes of RST_STREAM and GOAWAY (§7). */
export const errorCodes = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const;
/** The name of such a code. */
export type ErrorName = keyof typeof errorCodes;

/** The largest flow-control window, and the largest id of a stream (§6.9.1, §5.1.1). */
export const windowMax = 2 ** 31 - 1;
/** A window at the start of a connection (§6.9.2). */
export const initialWindow = 65_535;

/** Writes the head of a frame into a buffer; returns the position after it. */
export function writeFrameHead(
  into: Buffer,
  at: number,
  { length, type, flag = 0, stream }: FrameHead,
): number {
  into[at] = length >>> 16;
  into[at + 1] = (length >>> 8) & 0xff;
  into[at + 2] = length & 0xff;
  into[at + 3] = type;
  into[at + 4] = flag;
  into[at + 5] = stream >>> 24;
  into[at + 6] = (stream >>> 16) & 0xff;
  into[at + 7] = (stream >>> 8) & 0xff;
  into[at + 8] = stream & 0xff;
  return at + frameHeadBytes;
}

/** The head of a frame; `length` is the number of bytes of its content. */
interface FrameHead {
  readonly length: number;
  readonly type: number;
  readonly flag?: number;
  readonly stream: number;
}

/** Makes a frame without content, or with a short one. */
export function frameOf(type: number, flag: number, stream: number, content: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(frameHeadBytes + content.length);
  frame.set(content, writeFrameHead(frame, 0, { length: content.length, type, flag, stream }));
  return frame;
}

/** Makes a frame whose content is numbers of four bytes: RST_STREAM, WINDOW_UPDATE, GOAWAY. */
export function numbersFrame(type: number, stream: number, ...numbers: readonly number[]): Buffer {
  const length = 4 * numbers.length;
  const frame = Buffer.allocUnsafe(frameHeadBytes + length);
  let at = writeFrameHead(frame, 0, { length, type, stream });
  for (const number of numbers) at = frame.writeUInt32BE(number >>> 0, at);
  return frame;
}

/** Makes a SETTINGS frame (§6.5). */
export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const content = Buffer.allocUnsafe(6 * settings.length);
  let at = 0;
  for (const [id, value] of settings) {
    at = content.writeUInt16BE(id, at);
    at = content.writeUInt32BE(value >>> 0, at);
  }
  return frameOf(frameTypes.settings, 0, 0, content);
}

/** An error that ends a connection (§5.4.1). */
export class ConnectionError extends Error {
  readonly code: ErrorName;

  constructor(code: ErrorName, message: string) {
    super(message);
    this.code = code;
  }
}

/** A frame as it has arrived; its content is the bytes from `start` to `end` of `bytes`. */
export interface Frame {
  type: number;
  flag: number;
  stream: number;
  bytes: Buffer;
  start: number;
  end: number;
}
