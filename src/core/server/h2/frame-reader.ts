import { ConnectionError, frameHeadBytes, preface } from './frames.ts';
import { http2FrameBytesMax } from './limits.ts';

/** A frame as it has arrived; its content is the bytes from `start` to `end` of `bytes`. */
export interface Frame {
  type: number;
  flag: number;
  stream: number;
  bytes: Buffer;
  start: number;
  end: number;
}

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
