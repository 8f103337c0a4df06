/**
 * Watches for heads of requests that are not taken: Node tells nobody of one that it refuses, or
 * waits for, only the highest stream that has begun.
 */
export class HeadWatch {
  /** The newest stream whose head has come. */
  newest = 0;
  /** Since when there has been a head that was not taken; undefined while there is none. */
  untakenSinceMs: number | undefined;
  /** The newest that had begun when last looked at, and that was told of. */
  #begun = 0;
  #told = 0;

  /**
   * Looks at intervals, given the highest stream that has begun; says whether a head that has had
   * time to come whole since the last look has not, or was refused: once for each.
   */
  look(begun: number, nowMs: number): boolean {
    const isLate = this.#begun > Math.max(this.newest, this.#told);
    if (isLate) this.#told = this.#begun;
    this.#begun = begun;
    if (begun <= this.newest) this.untakenSinceMs = undefined;
    else this.untakenSinceMs ??= nowMs;
    return isLate;
  }
}
