/**
 * Detects request heads that never arrive as requests. Node does not report a head that it refuses,
 * or a head without its end; it only reports the highest stream that has begun.
 */
export class PendingHeads {
  /** The newest stream whose head arrived. */
  newestStream = 0;
  /** The time of the first check that found a stream without a head; undefined if there is none. */
  pendingSinceMs: number | undefined;
  /** The newest stream at the last check, and the newest that was reported. */
  #lastBegun = 0;
  #reported = 0;

  /**
   * Compares the highest stream that has begun with the heads that arrived; called at intervals.
   * Returns true, once for each head, if Node refused a head or a head is incomplete since the last
   * check.
   */
  check(begun: number, nowMs: number): boolean {
    const isLate = this.#lastBegun > Math.max(this.newestStream, this.#reported);
    if (isLate) this.#reported = this.#lastBegun;
    this.#lastBegun = begun;
    if (begun <= this.newestStream) this.pendingSinceMs = undefined;
    else this.pendingSinceMs ??= nowMs;
    return isLate;
  }
}
