import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { transact } from '../../../core/log/environment.ts';
import { writeErrorOf } from '../../../core/log/folder/full-disk.ts';
import { KIB } from '../../../core/values/units.ts';
import type { CacheCounts, CachePurge } from '../cache-admin.ts';
import { cacheTouchedSeconds } from '../limits.ts';
import {
  type CacheDatabases,
  type ContentFiles,
  contentFolder,
  createContentFiles,
  openCacheDatabases,
} from './environment.ts';
import { RecordStore, type TransactionTotals, sizeOf } from './record-store.ts';
import {
  type CacheEntry,
  type StoredEntry,
  type UrlRecord,
  beginEpoch,
  epochOf,
  isPurgedSince,
  isSelected,
  packedVersion,
  prefixKey,
  purgesSince,
  urlKey,
} from './record.ts';
import type {
  CacheChange,
  ListQuery,
  ListedUrl,
  NewContent,
  ResponseStorage,
} from './response-storage.ts';

/** Content up to this size is stored in the database, larger content in a file of its own. */
const cacheInlineBytesMax = 32 * KIB;

/** How often the uses of stored responses are recorded. */
const cacheTouchMs = 5_000;

/** URLs that a purge examines in one turn of the event loop. */
const purgeSliceUrls = 500;

/** The settings of a cache; `now` gives milliseconds since 1970. */
interface CacheParts {
  /** Absolute path of a folder that prepareCache has prepared. */
  readonly folder: string;
  readonly bytesMax: number;
  readonly now: () => number;
}

/** Opens the cache of a folder. Throws the errors of lmdb. */
export function openCache<T extends CacheEntry>(parts: CacheParts): ResponseStorage<T> {
  return new FolderCache<T>(parts);
}

class FolderCache<T extends CacheEntry> implements ResponseStorage<T> {
  readonly #databases: CacheDatabases;
  readonly #records: RecordStore<T>;
  readonly #files: ContentFiles;
  readonly #now: () => number;
  readonly #touching: NodeJS.Timeout;
  #bytesMax: number;
  /** The URLs of responses whose use is not recorded yet, by id. */
  readonly #touched = new Map<string, string>();
  #closing: Promise<void> | undefined;

  constructor({ folder, bytesMax, now }: CacheParts) {
    this.#databases = openCacheDatabases(folder);
    this.#records = new RecordStore(this.#databases);
    this.#files = createContentFiles(join(folder, contentFolder));
    this.#bytesMax = bytesMax;
    this.#now = now;
    this.#touching = setInterval(() => {
      void this.#writeUses();
    }, cacheTouchMs);
    this.#touching.unref();
  }

  refresh(): void {
    this.#databases.environment.resetReadTxn();
  }

  version(url: string): number {
    const packed = this.#databases.urls.getBinaryFast(urlKey(url));
    return packed === undefined ? 0 : packedVersion(packed);
  }

  read(url: string): UrlRecord<T> {
    return this.#records.read(urlKey(url));
  }

  content({ entry, crc }: StoredEntry<T>): Buffer | undefined {
    const bytes = this.#databases.content.get(entry.id);
    if (bytes?.length !== entry.bytesLength || crc32(bytes) !== crc) return undefined;
    return bytes;
  }

  openFile(id: string): number | undefined {
    return this.#files.open(id);
  }

  createFile(id: string): Promise<FileHandle> {
    return this.#files.create(id);
  }

  removeFile(id: string): Promise<void> {
    return this.#files.remove([id]);
  }

  touch({ id, url }: T): void {
    this.#touched.set(id, url);
  }

  epoch(): number {
    return epochOf(this.#databases);
  }

  isPurgedSince(since: number, url: string): boolean {
    return isPurgedSince(this.#databases, since, { url, rule: undefined });
  }

  isPurgedTwiceSince(since: number, url: string): boolean {
    return purgesSince(this.#databases, since, { url, rule: undefined }, 2) > 1;
  }

  async change(change: CacheChange<T>): Promise<UrlRecord<T> | undefined> {
    const { url, rule, since, decide, added } = change;
    const isFile = await this.#placeContent(added);
    const key = urlKey(url);
    let after = undefined as UrlRecord<T> | undefined;
    const written = this.#write((totals) => {
      if (isPurgedSince(this.#databases, since, { url, rule })) return;
      const before = this.#records.read(key);
      const used = Math.floor(this.#now() / 1000);
      const rows = decide(before.rows.map(({ entry }) => entry)).map((entry): StoredEntry<T> => {
        const row = before.rows.find((one) => one.entry.id === entry.id);
        if (row !== undefined) return { ...row, entry, size: sizeOf(entry) };
        return { entry, used, size: sizeOf(entry), crc: crcOf(added?.content), isFile };
      });
      after = this.#records.write(key, before, rows, totals);
      if (added?.content.kind === 'bytes' && !isFile) {
        this.#databases.content.putSync(added.id, added.content.bytes);
      }
      if (!this.#records.exceeds(this.#bytesMax, totals)) return;
      this.#noteUses();
      this.#records.evict(this.#bytesMax, totals);
    });
    let kept = undefined as UrlRecord<T> | undefined;
    try {
      await written;
      kept = after;
      return kept;
    } finally {
      if (kept === undefined && isFile && added !== undefined) await this.removeFile(added.id);
    }
  }

  async purge(purge: CachePurge): Promise<number> {
    let urls = 0;
    let from = '' as string | undefined;
    while (from !== undefined) {
      const start: string = from;
      await this.#write((totals) => {
        if (start === '') beginEpoch(this.#databases, purge);
        const keys = this.#keysOf(purge, start);
        from = keys.length < purgeSliceUrls ? undefined : keys.at(-1);
        for (const key of keys) {
          const before = this.#records.read(key);
          const rows = before.rows.filter(({ entry }) => !isSelected(purge, entry));
          if (rows.length === before.rows.length) continue;
          urls += 1;
          this.#records.write(key, before, rows, totals);
        }
      });
    }
    return urls;
  }

  *list({ prefix, rule, after }: ListQuery): Iterable<ListedUrl<T>> {
    const start = after === undefined ? prefixKey(prefix) : urlKey(after);
    const end = endOf(prefixKey(prefix));
    const { urls, rules } = this.#databases;
    const keys =
      rule === undefined
        ? urls.getKeys({ start, end })
        : rules.getKeys({ start: [rule, start], end: [rule, end] }).map(([, key]) => key);
    for (const key of keys) {
      const { rows } = this.#records.read(key);
      const url = rows[0]?.entry.url ?? '';
      const shown = rule === undefined ? rows : rows.filter(({ entry }) => entry.rule === rule);
      if (url.startsWith(prefix) && url !== after) yield { url, rows: shown };
    }
  }

  counts(): CacheCounts {
    const { meta, urls } = this.#databases;
    return {
      answers: Number(meta.get('answers') ?? 0),
      urls: (urls.getStats() as { readonly entryCount: number }).entryCount,
      bytes: Number(meta.get('bytes') ?? 0),
      bytesMax: this.#bytesMax,
    };
  }

  bytesMax(): number {
    return this.#bytesMax;
  }

  async limit(bytesMax: number): Promise<void> {
    this.#bytesMax = bytesMax;
    let isDone = false as boolean;
    while (!isDone && this.#closing === undefined) {
      await this.#write((totals) => {
        this.#noteUses();
        isDone = !this.#records.evict(this.#bytesMax, totals);
      });
    }
  }

  close(): Promise<void> {
    clearInterval(this.#touching);
    this.#closing ??= this.#writeUses().then(() => this.#databases.environment.close());
    return this.#closing;
  }

  /** Up to purgeSliceUrls keys of URLs that a purge may select, from one key on, inclusive. */
  #keysOf(purge: CachePurge, from: string): readonly string[] {
    const { urls, rules } = this.#databases;
    const limit = purgeSliceUrls;
    switch (purge.kind) {
      case 'url': {
        const first = prefixKey(purge.url);
        const start = from === '' ? first : from;
        return [...urls.getKeys({ start, end: endOf(`${first} `), limit })];
      }
      case 'prefix': {
        const prefix = prefixKey(purge.prefix);
        const start = from === '' ? prefix : from;
        return [...urls.getKeys({ start, end: endOf(prefix), limit })];
      }
      case 'rule': {
        const { rule } = purge;
        const keys = rules.getKeys({ start: [rule, from], end: [rule, lastText], limit });
        return [...keys].map(([, key]) => key);
      }
      case 'all':
        return [...urls.getKeys({ start: from, limit })];
    }
  }

  /** Writes content to a file if it belongs into one; returns whether it does. */
  async #placeContent(added: CacheChange<T>['added']): Promise<boolean> {
    if (added === undefined) return false;
    const { id, content } = added;
    if (content.kind === 'file') return true;
    if (content.bytes.length <= cacheInlineBytesMax) return false;
    await this.#files.write(id, content.bytes);
    return true;
  }

  async #writeUses(): Promise<void> {
    if (this.#touched.size === 0) return;
    // A failure only changes the order of eviction.
    await this.#write(() => {
      this.#noteUses();
    }).catch(() => undefined);
  }

  /** Must be called in a write transaction. */
  #noteUses(): void {
    const step = cacheTouchedSeconds;
    const seconds = Math.floor(this.#now() / 1000 / step) * step;
    for (const [id, url] of this.#touched) this.#records.touch(url, id, seconds);
    this.#touched.clear();
  }

  /** Runs a write transaction, all or nothing, then deletes the files of removed responses. */
  async #write(action: (totals: TransactionTotals) => void): Promise<void> {
    const totals: TransactionTotals = { files: [], bytes: 0, answers: 0 };
    const written = transact(this.#databases.environment, () => {
      action(totals);
      this.#records.saveTotals(totals);
    });
    await written.catch(async (error: unknown) => {
      throw await writeErrorOf(error);
    });
    await this.#files.remove(totals.files);
  }
}

function crcOf(content: NewContent | undefined): number {
  if (content === undefined) return 0;
  return content.kind === 'file' ? content.crc : crc32(content.bytes);
}

/** The end of the range of keys with a prefix. */
function endOf(prefix: string): string {
  return prefix + lastText;
}

const lastText = '\uffff';
