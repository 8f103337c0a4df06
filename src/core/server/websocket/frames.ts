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
