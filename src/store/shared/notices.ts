import type { Notice } from './entry.ts';

/** Does what a notice of the cluster says. */
type HeedNotice = (notice: Notice) => Promise<void>;

/**
 * The notices of the cluster for a process: those that come before it can heed them wait until it
 * can.
 */
export class Notices {
  #heed: HeedNotice | undefined;
  #early: Notice[] = [];

  /** Sharing.notice: see there. */
  async take(notice: Notice): Promise<void> {
    if (this.#heed === undefined) this.#early.push(notice);
    else await this.#heed(notice);
  }

  /** Heeds notices from now on, and those that have come already. */
  async heedBy(heed: HeedNotice): Promise<void> {
    this.#heed = heed;
    for (const notice of this.#early.splice(0)) await heed(notice);
  }
}
