import { LRUCache } from 'lru-cache';
import { type CacheUse, cacheUse } from '../../core/report/memory-use.ts';
import { type Metric, singleMetric } from '../../core/report/metrics.ts';
import { MIB } from '../../core/values/units.ts';
import type { BodyFilePlace } from './body-buffer.ts';
import type { CacheAdmin, CacheCounts, CacheListPage, CachePurge } from './cache-admin.ts';
import { toCachedResponse, withContent } from './cached-reply.ts';
import {
  type CachedResponse,
  type StoredResponse,
  contentOf,
  isReplacedBy,
} from './cached-response.ts';
import { ContentStore } from './content-store.ts';
import { type ClockReading, byClock, wasSet } from './freshness.ts';
import { cacheTouchedSeconds } from './limits.ts';
import { listPage } from './listing.ts';
import type { UrlRecord } from './storage/record.ts';
import type { NewContent, ResponseStorage } from './storage/response-storage.ts';

/** The longest time a response waits for other workers to see its change of the cache. */
const sharedAnswerMs = 100;

/** Responses that are stored for one URL, with different values of the fields in Vary. */
const answersPerUrlMax = 32;

/** Stored responses in the memory of a process. */
const cacheHeldBytesMax = 32 * MIB;

/** The stored responses by URL: all of them on disk, the recently used ones in memory too. */
export interface CacheStore extends CacheAdmin {
  /** Returns all stored responses of a URL, of every rule, every process and every variant. */
  find(url: string): readonly CachedResponse[];
  /**
   * Loads the content of a response before it is sent, and records the use. Returns false, and
   * removes the response, where its content is corrupt or missing.
   */
  ready(cached: CachedResponse): boolean | Promise<boolean>;
  /** The number of purges so far. A response belongs to the epoch in which its request was sent. */
  epoch(): number;
  /** Whether a purge since an epoch covers a URL, or may cover it. */
  isPurgedSince(since: number, url: string): boolean;
  /** Whether more than one purge since an epoch covers a URL, or may cover it. */
  isPurgedTwiceSince(since: number, url: string): boolean;
  /**
   * Stores a response with its content, or with the file that already holds it, and removes the
   * responses of the same URL that it replaces.
   */
  put(answer: StoredResponse, content: Buffer | NewContent, since: number): CachedResponse;
  /** Where the content of a response is written while it arrives. */
  placeOf(id: string): BodyFilePlace;
  /** Replaces the stored response of the same id, if it is still stored. */
  update(answer: CachedResponse, since: number): void;
  /** Removes one stored response. */
  drop(answer: StoredResponse): Promise<void>;
  /** Removes all stored responses of URLs. Reports a failure instead of rejecting. */
  invalidate(urls: readonly string[]): Promise<void>;
  /** The longest content that is stored, in bytes. */
  contentBytesMax(): number;
  /** Whether a response is still stored. */
  isCurrent(cached: CachedResponse): boolean;
  /** Whether other worker processes use the same storage. */
  readonly isShared: boolean;
  /**
   * Resolves when other processes see the last change of a URL, or after sharedAnswerMs. Undefined
   * where they see it already, or where there is one process.
   */
  visible(url: string): Promise<unknown> | undefined;
  /** Resolves when all changes so far are on disk. */
  settled(): Promise<void>;
  /** Sets the capacity in bytes. */
  limit(bytesMax: number): void;
  /** The number and size of the stored responses. */
  metrics(): readonly Metric[];
  /** The memory that the store uses. */
  memory(): CacheUse;
  /** Writes pending changes to disk, then closes the storage. */
  close(): Promise<void>;
}

/** The responses of a URL in memory. */
interface MemoryEntry {
  readonly cached: readonly CachedResponse[];
  /** The version of the record on disk; undefined while a change is being written. */
  readonly version: number | undefined;
  /** The epoch of the pending change. */
  readonly since: number;
}

/** The longest content is this fraction (1/n) of the capacity. */
const contentShare = 4;

/** Creates a store on disk. Calls `report` with each error of the disk. */
export function createCacheStore({
  cache,
  readClock,
  isShared,
  report,
}: {
  readonly cache: ResponseStorage<StoredResponse>;
  readonly readClock: () => ClockReading;
  readonly isShared: boolean;
  readonly report: (error: unknown) => void;
}): CacheStore {
  return new DiskCacheStore(cache, readClock, isShared, report);
}

class DiskCacheStore implements CacheStore {
  readonly isShared: boolean;
  readonly #cache: ResponseStorage<StoredResponse>;
  readonly #readClock: () => ClockReading;
  /** The reading after the last change of the clock. Ages in memory are relative to it. */
  #clock: ClockReading;
  readonly #report: (error: unknown) => void;
  readonly #contents: ContentStore;
  /** The last pending change of each URL: the changes of one URL are written in order. */
  readonly #changes = new Map<string, Promise<void>>();
  readonly #memory = new LRUCache<string, MemoryEntry>({
    maxSize: cacheHeldBytesMax,
    sizeCalculation: ({ cached }, url) =>
      cached.reduce((bytes, one) => bytes + memoryBytes(one), url.length + answerBytes),
  });

  constructor(
    cache: ResponseStorage<StoredResponse>,
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

  async purge(which: CachePurge): Promise<number> {
    const urls = await this.#cache.purge(which);
    if (which.kind === 'url') this.#memory.delete(which.url);
    return urls;
  }

  list(asked: Parameters<CacheAdmin['list']>[0]): CacheListPage {
    return listPage(this.#cache.list(asked), asked.limit, this.#readClock());
  }

  counts(): CacheCounts {
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
      singleMetric('gauge', 'waymark_cache_answers', { help: 'Stored responses.', value: answers }),
      singleMetric('gauge', 'waymark_cache_bytes', {
        help: 'Disk space of the stored responses.',
        value: bytes,
      }),
    ];
  }

  memory(): CacheUse {
    return cacheUse('fetched content', this.#memory);
  }

  async close(): Promise<void> {
    await this.settled();
    await this.#cache.close();
  }

  /** Applies a change in memory at once, and writes it to disk, where other processes see it. */
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

  /** Puts a record of the storage into memory, and reuses the content that is already loaded. */
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

  /** Clears the memory after the clock was changed: its ages are relative to the old time. */
  #checkClock(): void {
    const clock = this.#readClock();
    if (!wasSet(this.#clock, clock)) return;
    this.#clock = clock;
    // Pending changes are read back from disk as soon as they are written.
    for (const [url, { version }] of this.#memory)
      if (version !== undefined) this.#memory.delete(url);
  }

  #loadOrDrop(cached: CachedResponse, bytes: Buffer | undefined): true | Promise<false> {
    if (bytes === undefined) return this.#dropBroken(cached);
    withContent(cached, bytes);
    const { url } = cached.answer;
    const entry = this.#memory.peek(url);
    // Set it again: the LRU cache computes the size at this point only.
    if (entry?.cached.includes(cached) === true) this.#memory.set(url, { ...entry });
    return true;
  }

  async #dropBroken({ answer }: CachedResponse): Promise<false> {
    await this.drop(answer);
    return false;
  }
}

/** The memory of a response besides its content and fields: objects and map entries. */
const answerBytes = 3_072;

function memoryBytes({ answer, page }: CachedResponse): number {
  const fields = answer.fields.reduce((bytes, text) => bytes + text.length, 0);
  return answerBytes + 2 * fields + (page?.bytes.length ?? 0);
}

function isSame(answer: StoredResponse, other: StoredResponse): boolean {
  return answer === other || JSON.stringify(answer) === JSON.stringify(other);
}
