import { LRUCache } from 'lru-cache';
import { cacheUse, type CacheUse } from '../observability/memory-use.ts';
import type { KeptAnswers, KeptCounts, KeptPage, Purge } from '../model/kept.ts';
import { answersPerUrlMax, cacheHeldBytesMax, cacheTouchedSeconds } from '../model/limits.ts';
import { single, type Metric } from '../observability/metrics.ts';
import type { AnswerCache, NewContent } from './storage/cache.ts';
import type { UrlRecord } from './storage/record.ts';
import { byClock, wasSet, type ClockReading } from './clock.ts';
import { sharedAnswerMs } from './limits.ts';
import {
  contentOf,
  isReplacedBy,
  type CachedResponse,
  type StoredResponse,
} from './cached-response.ts';
import type { BodyFilePlace } from './body-file.ts';
import { ContentStore } from './content-store.ts';
import { toCachedResponse, withContent } from './cached-reply.ts';
import { listPage } from './listing.ts';

/** The answers that are kept, by their URL: those used of late in memory, all in the storage. */
export interface CacheStore extends KeptAnswers {
  /**
   * All answers kept for a URL at this moment, whichever rule asked for them, in whichever process,
   * and whatever they vary by.
   */
  find(url: string): readonly CachedResponse[];
  /**
   * Has the content of an answer at hand before it is sent, and notes that it is used; false for
   * one whose content is broken or gone, which is not found again.
   */
  ready(cached: CachedResponse): boolean | Promise<boolean>;
  /** The number of purges so far: an answer is asked for in the epoch of its question. */
  epoch(): number;
  /** Whether a purge since an epoch is, or may be, about a URL. */
  isPurgedSince(since: number, url: string): boolean;
  /** Whether more than one purge since an epoch is, or may be, about a URL. */
  isPurgedTwiceSince(since: number, url: string): boolean;
  /**
   * Keeps an answer with its content, or with what was written to its file; what it makes useless
   * of the same URL goes.
   */
  put(answer: StoredResponse, content: Buffer | NewContent, since: number): CachedResponse;
  /** Where the content of an answer that is still on its way may be written. */
  placeOf(id: string): BodyFilePlace;
  /** Keeps a changed answer in place of the one with the same id, if that is still there. */
  update(answer: CachedResponse, since: number): void;
  /** Lets go of one answer. */
  drop(answer: StoredResponse): Promise<void>;
  /** Lets go of all answers of URLs; that it fails is reported. */
  invalidate(urls: readonly string[]): Promise<void>;
  /** The longest content that is kept. */
  contentBytesMax(): number;
  /** Whether an answer is still what is kept. */
  isCurrent(cached: CachedResponse): boolean;
  /** Whether other processes answer with what this one stores. */
  readonly isShared: boolean;
  /**
   * Resolves when other processes see what has been stored for a URL, or sharedAnswerMs have
   * passed; undefined where they see it already, or there are none.
   */
  visible(url: string): Promise<unknown> | undefined;
  /** Resolves when all that is to be kept so far is in the storage. */
  settled(): Promise<void>;
  /** Sets how much is kept, in bytes. */
  limit(bytesMax: number): void;
  /** How much is kept. */
  metrics(): readonly Metric[];
  /** How much of it is in memory. */
  memory(): CacheUse;
  /** Waits for what is on its way to the storage, and closes it. */
  close(): Promise<void>;
}

/** What is in memory of a URL. */
interface MemoryEntry {
  readonly cached: readonly CachedResponse[];
  /** That of the storage's record; undefined while a change of it is on its way there. */
  readonly version: number | undefined;
  /** The epoch in which what is on its way was asked for. */
  readonly since: number;
}

/** The longest content, as a part of all that is kept. */
const contentShare = 4;

/** Keeps answers in a storage. `report` is told when that fails, with what the disk says. */
export function createCacheStore({
  cache,
  readClock,
  isShared,
  report,
}: {
  readonly cache: AnswerCache<StoredResponse>;
  readonly readClock: () => ClockReading;
  readonly isShared: boolean;
  readonly report: (error: unknown) => void;
}): CacheStore {
  return new DiskCacheStore(cache, readClock, isShared, report);
}

class DiskCacheStore implements CacheStore {
  readonly isShared: boolean;
  readonly #cache: AnswerCache<StoredResponse>;
  readonly #readClock: () => ClockReading;
  /** Read when the clock was last found to be set: the ages in memory are by it. */
  #clock: ClockReading;
  readonly #report: (error: unknown) => void;
  readonly #contents: ContentStore;
  /** The newest change of each URL that is on its way to the storage: they keep their order. */
  readonly #changes = new Map<string, Promise<void>>();
  readonly #memory = new LRUCache<string, MemoryEntry>({
    maxSize: cacheHeldBytesMax,
    sizeCalculation: ({ cached }, url) =>
      cached.reduce((bytes, one) => bytes + memoryBytes(one), url.length + answerBytes),
  });

  constructor(
    cache: AnswerCache<StoredResponse>,
    readClock: () => ClockReading,
    isShared: boolean,
    report: (error: unknown) => void,
  ) {
    this.#cache = cache;
    this.#readClock = readClock;
    this.isShared = isShared;
    this.#clock = readClock();
    this.#report = report;
    const broken = (answer: StoredResponse): void => {
      this.drop(answer).catch(report);
    };
    this.#contents = new ContentStore({ cache, broken, report });
  }

  find(url: string): readonly CachedResponse[] {
    this.#cache.refresh();
    this.#checkClock();
    const entry = this.#memory.get(url);
    if (entry !== undefined && entry.version === undefined) {
      if (!this.#cache.isPurgedSince(entry.since, url)) return entry.cached;
      this.#memory.delete(url);
    }
    const version = this.#cache.version(url);
    if (version === entry?.version) return entry.cached;
    if (version === 0) {
      this.#memory.delete(url);
      return [];
    }
    return this.#remember(url, this.#cache.read(url), entry?.cached ?? []);
  }

  ready(cached: CachedResponse): boolean | Promise<boolean> {
    const second = Math.floor(this.#readClock().nowMs / 1000);
    if (second - cached.usedSecond >= cacheTouchedSeconds) {
      cached.usedSecond = second;
      this.#cache.touch(cached.answer);
    }
    if (cached.page !== undefined) return true;
    const { row, file } = cached;
    if (file !== undefined) return file.isThere() || this.#dropBroken(cached);
    if (row === undefined) return false;
    const bytes = this.#contents.read(row);
    if (bytes instanceof Promise) return bytes.then((read) => this.#loadOrDrop(cached, read));
    return this.#loadOrDrop(cached, bytes);
  }

  epoch(): number {
    return this.#cache.epoch();
  }

  isPurgedSince(since: number, url: string): boolean {
    return this.#cache.isPurgedSince(since, url);
  }

  isPurgedTwiceSince(since: number, url: string): boolean {
    this.#cache.refresh();
    return this.#cache.isPurgedTwiceSince(since, url);
  }

  put(received: StoredResponse, given: Buffer | NewContent, since: number): CachedResponse {
    const answer = { ...received, storedAt: this.#readClock() };
    const content: NewContent = Buffer.isBuffer(given) ? { kind: 'bytes', bytes: given } : given;
    const { id, url } = answer;
    const cached = toCachedResponse(answer, this.#contents.taken(answer, content));
    const change = (before: readonly StoredResponse[]): readonly StoredResponse[] =>
      [answer, ...before.filter((one) => !isReplacedBy(one, answer))].slice(0, answersPerUrlMax);
    const others = this.find(url).filter((one) => !isReplacedBy(one.answer, answer));
    this.#change(url, answer.rule, since, [cached, ...others], change, { id, content });
    return cached;
  }

  placeOf(id: string): BodyFilePlace {
    return this.#contents.placeOf(id);
  }

  update(updated: CachedResponse, since: number): void {
    const answer = { ...updated.answer, storedAt: this.#readClock() };
    const cached = Object.assign(updated, { answer });
    const { id, url, rule } = answer;
    const others = this.find(url).filter((one) => one.answer.id !== id);
    this.#change(url, rule, since, [cached, ...others], (before) => {
      const rest = before.filter((one) => one.id !== id);
      return rest.length === before.length ? before : [answer, ...rest];
    });
  }

  async drop({ id, url, rule }: StoredResponse): Promise<void> {
    const cached = this.find(url).filter((one) => one.answer.id !== id);
    this.#change(url, rule, this.epoch(), cached, (before) =>
      before.filter((one) => one.id !== id),
    );
    await this.settled();
  }

  async purge(which: Purge): Promise<number> {
    const urls = await this.#cache.purge(which);
    if (which.kind === 'url') this.#memory.delete(which.url);
    return urls;
  }

  list(asked: Parameters<KeptAnswers['list']>[0]): KeptPage {
    return listPage(this.#cache.list(asked), asked.limit, this.#readClock());
  }

  counts(): KeptCounts {
    return this.#cache.counts();
  }

  async invalidate(urls: readonly string[]): Promise<void> {
    const purges = urls.map((url) => this.purge({ kind: 'url', url }));
    await Promise.all(purges).catch(this.#report);
  }

  contentBytesMax(): number {
    return Math.floor(this.#cache.bytesMax() / contentShare);
  }

  isCurrent(cached: CachedResponse): boolean {
    return this.find(cached.answer.url).includes(cached);
  }

  visible(url: string): Promise<unknown> | undefined {
    const change = this.isShared ? this.#changes.get(url) : undefined;
    if (change === undefined) return undefined;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(resolve, sharedAnswerMs, undefined);
    void change.then(() => {
      clearTimeout(timer);
      resolve(undefined);
    });
    return promise;
  }

  async settled(): Promise<void> {
    await Promise.all(this.#changes.values());
  }

  limit(bytesMax: number): void {
    this.#cache.limit(bytesMax).catch(this.#report);
  }

  metrics(): readonly Metric[] {
    const { answers, bytes } = this.counts();
    return [
      single('gauge', 'waymark_cache_answers', { help: 'Kept answers.', value: answers }),
      single('gauge', 'waymark_cache_bytes', { help: 'What kept answers take.', value: bytes }),
    ];
  }

  memory(): CacheUse {
    return cacheUse('fetched content', this.#memory);
  }

  async close(): Promise<void> {
    await this.settled();
    await this.#cache.close();
  }

  /** Makes a change seen here at once, and by all others as soon as it is in the storage. */
  #change(
    url: string,
    rule: string,
    since: number,
    cached: readonly CachedResponse[],
    decide: (before: readonly StoredResponse[]) => readonly StoredResponse[],
    added?: { readonly id: string; readonly content: NewContent },
  ): void {
    const entry: MemoryEntry = { cached, version: undefined, since };
    this.#memory.set(url, entry);
    const write = (): Promise<UrlRecord<StoredResponse> | undefined> =>
      this.#cache.change({ url, rule, since, decide, ...(added !== undefined && { added }) });
    const before = this.#changes.get(url);
    const written = (before === undefined ? write() : before.then(write)).then(
      (record) => {
        if (this.#memory.peek(url) !== entry) return;
        if (record === undefined) this.#memory.delete(url);
        else this.#remember(url, record, cached);
      },
      (error: unknown) => {
        if (this.#memory.peek(url) === entry) this.#memory.delete(url);
        this.#report(error);
      },
    );
    this.#changes.set(url, written);
    void written.then(() => {
      if (this.#changes.get(url) === written) this.#changes.delete(url);
    });
  }

  /** Shelves what the storage has, with what is at hand of it already. */
  #remember(
    url: string,
    { version, rows }: UrlRecord<StoredResponse>,
    known: readonly CachedResponse[],
  ): readonly CachedResponse[] {
    const clock = this.#readClock();
    const cached = rows.map((row) => {
      const answer = byClock(row.entry, clock);
      const same = known.find((one) => one.answer.id === answer.id);
      if (same === undefined) return toCachedResponse(answer, this.#contents.filed(row), row);
      if (isSame(same.answer, answer)) return Object.assign(same, { row });
      return toCachedResponse(answer, contentOf(same), row);
    });
    this.#memory.set(url, { cached, version, since: 0 });
    return cached;
  }

  /** Forgets what is in memory once the clock has been set: its ages are by another one. */
  #checkClock(): void {
    const clock = this.#readClock();
    if (!wasSet(this.#clock, clock)) return;
    this.#clock = clock;
    // What is on its way to the storage is read from there in a moment.
    for (const [url, { version }] of this.#memory)
      if (version !== undefined) this.#memory.delete(url);
  }

  #loadOrDrop(cached: CachedResponse, bytes: Buffer | undefined): true | Promise<false> {
    if (bytes === undefined) return this.#dropBroken(cached);
    withContent(cached, bytes);
    const { url } = cached.answer;
    const entry = this.#memory.peek(url);
    // Anew, for its size has changed.
    if (entry?.cached.includes(cached) === true) this.#memory.set(url, { ...entry });
    return true;
  }

  async #dropBroken({ answer }: CachedResponse): Promise<false> {
    await this.drop(answer);
    return false;
  }
}

/** What an answer takes in memory besides its content and its fields: its objects, its place. */
const answerBytes = 3_072;

function memoryBytes({ answer, page }: CachedResponse): number {
  const fields = answer.fields.reduce((bytes, text) => bytes + text.length, 0);
  return answerBytes + 2 * fields + (page?.bytes.length ?? 0);
}

function isSame(answer: StoredResponse, other: StoredResponse): boolean {
  return answer === other || JSON.stringify(answer) === JSON.stringify(other);
}
