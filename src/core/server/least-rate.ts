/** The least rate at which a client has to move bytes, measured over a time. */
export interface RateLimit {
  readonly bytesPerSecond: number;
  /** The shortest time of a measurement: also the grace of a client that begins slowly. */
  readonly windowMs: number;
}

/** Measures at intervals whether a client that the server waits for is too slow. */
export class LeastRate {
  readonly #limit: RateLimit;
  #lastMs: number | undefined;
  #bytes = 0;
  #waitedMs = 0;
  #movedBytes = 0;

  constructor(limit: RateLimit) {
    this.#limit = limit;
  }

  /**
   * Whether the client has been too slow, at a time of a monotonic clock in milliseconds. `bytes`
   * is what has moved so far; `isWaiting` is false while the client has nothing to do. A client
   * that moves no byte at all is no slow one: other limits end it.
   */
  isTooSlow(
    nowMs: number,
    { bytes, isWaiting }: { readonly bytes: number; readonly isWaiting: boolean },
  ): boolean {
    const lastMs = this.#lastMs;
    const movedBytes = bytes - this.#bytes;
    this.#lastMs = isWaiting ? nowMs : undefined;
    this.#bytes = bytes;
    if (!isWaiting || lastMs === undefined) {
      this.#begin();
      return false;
    }
    this.#waitedMs += nowMs - lastMs;
    this.#movedBytes += movedBytes;
    const { bytesPerSecond, windowMs } = this.#limit;
    if (this.#waitedMs < windowMs || this.#movedBytes <= 0) return false;
    const isSlow = this.#movedBytes * 1_000 < bytesPerSecond * this.#waitedMs;
    this.#begin();
    return isSlow;
  }

  #begin(): void {
    this.#waitedMs = 0;
    this.#movedBytes = 0;
  }
}
