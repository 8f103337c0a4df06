import type { CacheDatabases } from './environment.ts';
import {
  type CacheEntry,
  type StoredEntry,
  type UrlRecord,
  packRecord,
  unpackRecord,
  urlKey,
} from './record.ts';

/** Stored responses that are evicted in one turn of the event loop. */
const evictedAtOnceMax = 500;

/** The disk space of a stored response besides its content and its JSON. */
const rowBytes = 512;

/** The size that counts against the capacity of the cache, in bytes. */
export function sizeOf(entry: CacheEntry): number {
  return rowBytes + entry.bytesLength + JSON.stringify(entry).length;
}

/** The entries that a write transaction adds and removes. */
export interface TransactionTotals {
  /** Ids of the responses whose files have to be deleted. */
  readonly files: string[];
  bytes: number;
  answers: number;
}

/**
 * Reads and writes the records of URLs, and counts their responses and bytes. Everything except
 * `read` must be called in a write transaction.
 */
export class RecordStore<T extends CacheEntry> {
  readonly #databases: CacheDatabases;

  constructor(databases: CacheDatabases) {
    this.#databases = databases;
  }

  /** The record of a URL; version 0 if there is none. */
  read(key: string): UrlRecord<T> {
    const packed = this.#databases.urls.getBinary(key);
    return packed === undefined ? { version: 0, rows: [] } : unpackRecord<T>(packed);
  }

  /** Replaces the rows of a URL, and returns the new record. */
  write(
    key: string,
    before: UrlRecord<T>,
    rows: readonly StoredEntry<T>[],
    totals: TransactionTotals,
  ): UrlRecord<T> {
    const { urls, recency, content, files, rules } = this.#databases;
    const ids = new Set(rows.map(({ entry }) => entry.id));
    const knownIds = new Set(before.rows.map(({ entry }) => entry.id));
    for (const row of before.rows) {
      recency.removeSync([row.used, row.entry.id]);
      totals.bytes -= row.size;
      if (ids.has(row.entry.id)) continue;
      totals.answers -= 1;
      if (row.isFile) {
        files.removeSync(row.entry.id);
        totals.files.push(row.entry.id);
      } else content.removeSync(row.entry.id);
    }
    for (const row of rows) {
      recency.putSync([row.used, row.entry.id], key);
      totals.bytes += row.size;
      if (knownIds.has(row.entry.id)) continue;
      totals.answers += 1;
      if (row.isFile) files.putSync(row.entry.id, '');
    }
    const rulesNow = new Set(rows.map(({ entry }) => entry.rule));
    for (const { entry } of before.rows) {
      if (!rulesNow.has(entry.rule)) rules.removeSync([entry.rule, key]);
    }
    for (const rule of rulesNow) rules.putSync([rule, key], '');
    const record = { version: rows.length === 0 ? 0 : this.#nextVersion(), rows };
    if (rows.length === 0) urls.removeSync(key);
    else urls.putSync(key, packRecord(record));
    return record;
  }

  /** Records that a response was used. The version of the record stays the same. */
  touch(url: string, id: string, seconds: number): void {
    const { urls, recency } = this.#databases;
    const key = urlKey(url);
    const record = this.read(key);
    const row = record.rows.find(({ entry }) => entry.id === id);
    if (row === undefined || row.used >= seconds) return;
    recency.removeSync([row.used, id]);
    recency.putSync([seconds, id], key);
    const rows = record.rows.map((one) => (one === row ? { ...row, used: seconds } : one));
    urls.putSync(key, packRecord({ ...record, rows }));
  }

  /** Whether the stored responses exceed the capacity. */
  exceeds(bytesMax: number, totals: TransactionTotals): boolean {
    return Number(this.#databases.meta.get('bytes') ?? 0) + totals.bytes > bytesMax;
  }

  /**
   * Removes the least recently used responses until the rest fits the capacity. Returns true if it
   * stopped before that, because one transaction must not block the process for too long.
   */
  evict(bytesMax: number, totals: TransactionTotals): boolean {
    const { recency } = this.#databases;
    for (let evicted = 0; evicted < evictedAtOnceMax; evicted += 1) {
      if (!this.exceeds(bytesMax, totals)) return false;
      const [oldest] = recency.getRange({ limit: 1 });
      if (oldest === undefined) return false;
      const record = this.read(oldest.value);
      const [, id] = oldest.key;
      const rows = record.rows.filter(({ entry }) => entry.id !== id);
      // An entry without a row would otherwise be found again each time.
      if (rows.length === record.rows.length) recency.removeSync(oldest.key);
      else this.write(oldest.value, record, rows, totals);
    }
    return true;
  }

  /** Adds the totals of a transaction to the counts: its last step. */
  saveTotals({ bytes, answers }: TransactionTotals): void {
    const { meta } = this.#databases;
    meta.putSync('bytes', String(Number(meta.get('bytes') ?? 0) + bytes));
    meta.putSync('answers', String(Number(meta.get('answers') ?? 0) + answers));
  }

  #nextVersion(): number {
    const { meta } = this.#databases;
    const version = Number(meta.get('version') ?? 0) + 1;
    meta.putSync('version', String(version));
    return version;
  }
}
