import { LRUCache } from 'lru-cache';
import { eventLoop } from '../../fair/turns.ts';
import { type CacheUse, cacheUse } from '../../report/memory-use.ts';
import { stoppingFailure } from '../../values/failure.ts';
import { MIB } from '../../values/units.ts';
import {
  type Change,
  type Family,
  type RevertibleFamily,
  isRevertible,
  type Placed,
} from '../change.ts';
import type { Databases } from '../databases.ts';
import { historyKey, historyPrefix, storedJson } from '../encoding.ts';
import type { FeedSlice, Reads, RecordChange } from '../store.ts';

/** How often the log is checked for changes by other processes while a reader waits for them. */
const feedPollMs = 100;

/** Rows of the log, and about how many characters, that are read in one turn of the event loop. */
export const feedSliceRowsMax = 64;
const feedSliceCharactersMax = MIB;

/** Characters of the latest changes and their records that are cached for further readers. */
const feedRememberedCharactersMax = 64 * MIB;

/** A cached row of the log. */
interface Remembered {
  readonly family: Family;
  /** Undefined if no follower has wanted changes of its family yet. */
  readonly changed: RecordChange | undefined;
  readonly characters: number;
}

interface Waiting {
  readonly after: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads the log for its followers: rows of this process at once, rows of other processes within one
 * poll. All followers share a cache and together read one slice in a turn of the event loop, so
 * that a thousand followers do not delay requests.
 */
export class LogFeed {
  readonly #databases: Databases;
  readonly #reads: Reads;
  readonly #remembered = new LRUCache<number, Remembered>({
    maxSize: feedRememberedCharactersMax,
    sizeCalculation: ({ characters }) => characters,
  });
  readonly #waiting = new Set<Waiting>();
  /** The timers of the polls, by their intervals: all waits of one interval share one. */
  readonly #polls = new Map<number, { readonly timer: NodeJS.Timeout; waiting: number }>();
  readonly #turns = eventLoop.turns('followers');
  /** What followers wait for besides rows, as it was at the last look. */
  readonly #watched: readonly string[];
  #state: string;
  #closed = false;

  constructor(databases: Databases, reads: Reads) {
    this.#databases = databases;
    this.#reads = reads;
    this.#watched = reads.families.flatMap(({ watched = [] }) => watched);
    this.#state = this.#watchedState();
  }

  /** @inheritdoc Store.memory. */
  memory(): CacheUse {
    return cacheUse('changes', this.#remembered);
  }

  /** @inheritdoc Store.changesAfter. */
  async next(
    families: readonly RevertibleFamily[],
    after: number,
    signal: AbortSignal,
  ): Promise<FeedSlice> {
    await this.#growth(after, signal, feedPollMs);
    await this.#turns.next();
    if (signal.aborted) return { changes: [], upTo: after };
    this.#requireOpen();
    return this.#slice(new Set<Family>(families), after);
  }

  /** @inheritdoc Store.waitForRows. */
  async waitForRows(after: number, signal: AbortSignal, pollMs = feedPollMs): Promise<void> {
    await this.#growth(after, signal, pollMs);
    this.#requireOpen();
  }

  /**
   * Wakes the followers that wait for rows which the log now has. It never throws: the followers
   * get the error if the log cannot be read.
   */
  wake(): void {
    try {
      this.#wake();
    } catch (error) {
      for (const { reject } of this.#waiting) reject(error);
    }
  }

  #wake(): void {
    if (this.#waiting.size === 0) return;
    const newest = this.#reads.seq();
    // Deliveries wait for these changes, too; others only look at the log again.
    const state = this.#watchedState();
    const hasChanged = state !== this.#state;
    this.#state = state;
    for (const { after, resolve } of this.#waiting) if (hasChanged || after < newest) resolve();
  }

  #watchedState(): string {
    return this.#watched.map((name) => this.#databases.meta.get(name)).join(' ');
  }

  /** Ends all waits and refuses further reads. */
  close(): void {
    this.#closed = true;
    for (const { resolve } of this.#waiting) resolve();
  }

  #requireOpen(): void {
    if (!this.#closed) return;
    throw stoppingFailure();
  }

  /** Resolves once the log has a row after a seq, or the signal aborts. */
  async #growth(after: number, signal: AbortSignal, pollMs: number): Promise<void> {
    this.#requireOpen();
    if (signal.aborted || after < this.#reads.seq()) return;
    const poll = this.#polls.get(pollMs) ?? { timer: this.#pollEvery(pollMs), waiting: 0 };
    this.#polls.set(pollMs, poll);
    poll.waiting += 1;
    try {
      await this.#wait(after, signal);
    } finally {
      poll.waiting -= 1;
      if (poll.waiting === 0) {
        clearInterval(poll.timer);
        this.#polls.delete(pollMs);
      }
    }
  }

  async #wait(after: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const waiting: Waiting = {
      after,
      resolve: () => {
        resolve(undefined);
      },
      reject,
    };
    this.#waiting.add(waiting);
    signal.addEventListener('abort', waiting.resolve, { once: true });
    try {
      await promise;
    } finally {
      this.#waiting.delete(waiting);
      signal.removeEventListener('abort', waiting.resolve);
    }
  }

  #pollEvery(ms: number): NodeJS.Timeout {
    return setInterval(() => {
      this.wake();
    }, ms).unref();
  }

  #slice(families: ReadonlySet<Family>, after: number): FeedSlice {
    const changes: RecordChange[] = [];
    const end = Math.min(this.#reads.seq(), after + feedSliceRowsMax);
    let upTo = after;
    for (let characters = 0; upTo < end && characters < feedSliceCharactersMax;) {
      upTo += 1;
      const row = this.#row(upTo, families);
      characters += row.characters;
      if (families.has(row.family) && row.changed !== undefined) changes.push(row.changed);
    }
    return { changes, upTo };
  }

  #row(seq: number, families: ReadonlySet<Family>): Remembered {
    const known = this.#remembered.get(seq);
    if (known !== undefined && (known.changed !== undefined || !families.has(known.family))) {
      return known;
    }
    const text = this.#databases.log.get(seq);
    if (text === undefined) throw new Error(`the log has no change ${seq}`);
    const change = storedJson(text) as Change;
    const { family } = change;
    const isWanted = isRevertible(family) && families.has(family);
    const changed = isWanted ? this.#changed(change) : undefined;
    const states = characterCount(changed?.before) + characterCount(changed?.after);
    const row = { family, changed, characters: text.length + states };
    this.#remembered.set(seq, row);
    return row;
  }

  #changed(change: Change): RecordChange {
    const { id, seq, action } = change;
    const family = this.#reads.projectionOf(change.family);
    const at = (then: number) => family?.at?.(this.#reads, id, then) as Placed | undefined;
    const previous = this.#previousSeq(id, seq);
    // Each record is derived from the previous one: a fold of all rows for each change would take
    // quadratic time.
    const before =
      previous === undefined
        ? undefined
        : (this.#remembered.get(previous)?.changed?.after ?? at(previous));
    const after =
      action === 'invalidate' ? at(seq) : (family?.fold(before, change) as Placed | undefined);
    return { change, before, after };
  }

  /** The seq of a record's row before another one of it. */
  #previousSeq(id: string, seq: number): number | undefined {
    const prefix = historyPrefix(id);
    const range = { start: historyKey(prefix, seq - 1), end: historyKey(prefix, 0) };
    for (const key of this.#databases.history.getKeys({ ...range, reverse: true, limit: 1 })) {
      return new DataView(key.buffer, key.byteOffset).getUint32(prefix.length);
    }
    return undefined;
  }
}

function characterCount(stored: object | undefined): number {
  return stored === undefined ? 0 : charactersOf(stored);
}

/** The number of characters of the texts in a value, with the names of its members. */
function charactersOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return scalarCharacters;
  return Object.entries(value).reduce(
    (sum, [name, member]) => sum + name.length + charactersOf(member),
    scalarCharacters,
  );
}

/** About the length of a number in JSON, and of the marks around a member. */
const scalarCharacters = 8;
