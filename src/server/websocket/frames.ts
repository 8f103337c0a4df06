/** Bytes of a frame's header by its second byte (RFC 6455 §5.2): extended length and mask. */
const plainHeaderBytes = 2;
const maskBytes = 4;
const extendedLengths: ReadonlyMap<number, number> = new Map([
  [126, 2],
  [127, 8],
]);

/**
 * Follows the frames of a client (RFC 6455 §5.2) without their content: ws tells of messages only
 * when they are whole.
 */
export class FrameFollower {
  /** Bytes of the message that has begun and not ended, frames included; 0 between messages. */
  bytes = 0;
  /** Content of that message, by what its frames say of their length. */
  contentBytes = 0;
  /** How many messages have ended. */
  messages = 0;
  readonly #header: number[] = [];
  /** Content of the current frame that has still to come. */
  #leftBytes = 0;
  #isControl = false;
  #isFinal = false;
  #isInMessage = false;

  /** Follows the bytes that have come next. */
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

  /** Whether the header is whole, and the frame has begun. */
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
    // A control frame stands between messages or inside of one.
    if (!this.#isInMessage) [this.bytes, this.contentBytes] = [0, 0];
  }
}
