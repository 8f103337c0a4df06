/** The content of a message, taken out of the bytes that come behind its head (RFC 9112 §6). */
export interface MessageContent {
  /** Whether something has come that is no such content; nothing more is to be read then. */
  readonly isBroken: boolean;
  /** Whether all of it has come, the trailer section included. */
  readonly isWhole: boolean;
  /** How many of the bytes read last come behind its end, and belong to something else. */
  readonly restBytes: number;
  /** Fields behind the content: name, value, name, value, as they were sent, latin1. */
  readonly trailers: readonly string[];
  /** The content in bytes that have come; empty where there is none in them. */
  read(bytes: Buffer): Buffer;
}

/** Content of a length that its head says (RFC 9112 §6.2). */
export class CountedContent implements MessageContent {
  readonly isBroken = false;
  readonly trailers: readonly string[] = [];
  restBytes = 0;
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isWhole(): boolean {
    return this.#left === 0;
  }

  read(bytes: Buffer): Buffer {
    const content = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes;
    this.#left -= content.length;
    this.restBytes = bytes.length - content.length;
    return content;
  }
}
