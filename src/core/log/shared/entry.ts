import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../report/log.ts';
import { Failure } from '../../values/failure.ts';
import type { JsonObject } from '../../values/json/json.ts';

/** How long the log of the cluster waits for what a notice says, such as a purge of the cache. */
const noticeMsMax = 5_000;

/** When it is tried again after an error; each further time, twice as long … */
const noticeRetryMs = 1_000;

/** … and how often it is tried. */
const noticeTriesMax = 6;

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

/** A message to all nodes besides changes of the log, such as a purge of caches. */
export interface Notice {
  readonly name: string;
  readonly data: JsonObject;
}

/**
 * A put into a database beside the log: its name, its key (hexadecimal for bytes) and its value;
 * null removes the key.
 */
export type SharedPut = readonly [string, string | number, string | null];

/** The content of an entry of a shared log (docs/design/cluster.md#entries). */
export interface EntryContent {
  /** The data folder that has appended it: memberOf. */
  readonly member: string;
  /** Rows of the log as they are stored: all rows of one or more transactions. */
  readonly rows: readonly string[];
  /** Idempotency keys: keys of the database `vk` in hexadecimal digits, and their values. */
  readonly claims: readonly (readonly [string, string])[];
  /** The puts of the deliverer of hooks. */
  readonly puts: readonly SharedPut[];
  readonly notices: readonly Notice[];
}

/** An entry with nothing in it. */
export const emptyContent: EntryContent = {
  member: '',
  rows: [],
  claims: [],
  puts: [],
  notices: [],
};

/** The first line of an entry. */
interface EntryHead extends Omit<EntryContent, 'rows'> {
  readonly rows: number;
}

/** The bytes of an entry: UTF-8, a line of JSON and one line for each row. */
export function encodeEntry({ rows, ...content }: EntryContent): Uint8Array {
  const head: EntryHead = { rows: rows.length, ...content };
  return Buffer.from([JSON.stringify(head), ...rows].join('\n'));
}

/**
 * The content of an entry. Throws an Error for bytes that are none, and `conflict` for members that
 * this version does not know: without them, the node would have another state than the others.
 */
export function decodeEntry(data: Uint8Array): EntryContent {
  const [first = '', ...rows] = Buffer.from(data).toString().split('\n');
  const { rows: count, ...content } = JSON.parse(first) as EntryHead;
  const unknown = Object.keys(content).find((name) => !Object.hasOwn(emptyContent, name));
  if (unknown !== undefined) throw newerFailure(unknown);
  if (count !== rows.length) {
    throw new Error(`an entry of the shared log has ${rows.length} rows instead of ${count}`);
  }
  return { rows, ...content };
}

function newerFailure(member: string): Failure {
  return new Failure(
    'conflict',
    `An entry of the cluster has the member ${JSON.stringify(member)} of a newer version of ` +
      'Waymark: upgrade this machine.',
  );
}

/** Does what a notice of the cluster says. */
type ApplyNotice = (notice: Notice) => Promise<void>;
