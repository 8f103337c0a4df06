import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../report/log.ts';
import type { Notice } from './entry.ts';

/** How long the log of the cluster waits for what a notice says, such as a purge of the cache. */
const noticeMsMax = 5_000;

/** When it is tried again after an error; each further time, twice as long … */
const noticeRetryMs = 1_000;

/** … and how often it is tried. */
const noticeTriesMax = 6;

/** Does what a notice of the cluster says. */
type ApplyNotice = (notice: Notice) => Promise<void>;

/**
 * The notices of the cluster for a process: those that come before it can apply them wait until it
 * can. One that this process cannot apply is logged and tried again, and does not hold up the log
 * of the cluster.
 */
export class Notices {
  readonly #log: Log;
  #apply: ApplyNotice | undefined;
  #early: Notice[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  /** @inheritdoc Sharing.notice. Resolves after the first attempt, or after noticeMsMax. */
  async receive(notice: Notice): Promise<void> {
    if (this.#apply === undefined) this.#early.push(notice);
    else await this.#begin(this.#apply, notice);
  }

  /** Applies notices from now on, and those that have come already. */
  async applyBy(apply: ApplyNotice): Promise<void> {
    this.#apply = apply;
    for (const notice of this.#early.splice(0)) await this.#begin(apply, notice);
  }

  async #begin(apply: ApplyNotice, notice: Notice): Promise<void> {
    const ended = new AbortController();
    const first = this.#attempt(apply, notice);
    void first.then((isDone) => (isDone ? undefined : this.#repeat(apply, notice)));
    const late = delay(noticeMsMax, undefined, { signal: ended.signal, ref: false });
    await Promise.race([first, late.catch(() => undefined)]);
    ended.abort();
  }

  async #repeat(apply: ApplyNotice, notice: Notice): Promise<void> {
    for (let tries = 1; tries < noticeTriesMax; tries += 1) {
      await delay(noticeRetryMs * 2 ** (tries - 1), undefined, { ref: false });
      if (await this.#attempt(apply, notice)) return;
    }
    const { name, data } = notice;
    const text = `Gave up ${name}, which another node of the cluster has asked for: do it here.`;
    this.#log.error({ notice: name, data }, text);
  }

  async #attempt(apply: ApplyNotice, notice: Notice): Promise<boolean> {
    try {
      await apply(notice);
      return true;
    } catch (error) {
      const { name, data } = notice;
      const text = `Cannot do ${name}, which another node of the cluster has asked for.`;
      this.#log.error({ err: error, notice: name, data }, text);
      return false;
    }
  }
}
