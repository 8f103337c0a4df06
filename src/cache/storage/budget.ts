import { evictedAtOnceMax } from './limits.ts';
import type { CacheDatabases } from './environment.ts';
import {
  packRecord,
  unpackRecord,
  urlKey,
  type CacheEntry,
  type Row,
  type UrlRecord,
} from './record.ts';

/** What a kept answer takes besides its content and its own text. */
const rowBytes = 512;

/** What a row takes of the budget. */
export function sizeOf(entry: CacheEntry): number {
  return rowBytes + entry.bytesLength + JSON.stringify(entry).length;
}

/** What a write transaction has done so far, besides what is in the databases. */
export interface Work {
  /** Ids of answers whose files are of no use any more. */
  readonly files: string[];
  bytes: number;
  answers: number;
}

/**
 * Runs changes of kept answers in a write transaction, and books what they take and give back. All
 * of these functions are to be called in one.
 */
export class Ledger<T extends CacheEntry> {
  readonly #databases: CacheDatabases;

  constructor(databases: CacheDatabases) {
    this.#databases = databases;
  }

  /** What is kept for a URL; version 0 for nothing. */
  read(key: string): UrlRecord<T> {
    const packed = this.#databases.urls.getBinary(key);
    return packed === undefined ? { version: 0, rows: [] } : unpackRecord<T>(packed);
  }

  /** Puts rows in place of those of a URL; resolves what came and what went. */
  write(key: string, before: UrlRecord<T>, rows: readonly Row<T>[], work: Work): UrlRecord<T> {
    const { urls, recency, content, files, rules } = this.#databases;
    const ids = new Set(rows.map(({ entry }) => entry.id));
    const knownIds = new Set(before.rows.map(({ entry }) => entry.id));
    for (const row of before.rows) {
      recency.removeSync([row.used, row.entry.id]);
      work.bytes -= row.size;
      if (ids.has(row.entry.id)) continue;
      work.answers -= 1;
      if (row.isFile) {
        files.removeSync(row.entry.id);
        work.files.push(row.entry.id);
      } else content.removeSync(row.entry.id);
    }
    for (const row of rows) {
      recency.putSync([row.used, row.entry.id], key);
      work.bytes += row.size;
      if (knownIds.has(row.entry.id)) continue;
      work.answers += 1;
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

  /** Notes that an answer was used; that makes no other version of its URL's record. */
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

  /** Whether more is kept than the budget allows. */
  isOver(bytesMax: number, work: Work): boolean {
    return Number(this.#databases.meta.get('bytes') ?? 0) + work.bytes > bytesMax;
  }

  /**
   * Lets go of what was not used for the longest time, until the rest is within the budget or so
   * many have gone that others have been kept waiting for long enough; returns whether it was that.
   */
  keepWithin(bytesMax: number, work: Work): boolean {
    const { recency } = this.#databases;
    for (let gone = 0; gone < evictedAtOnceMax; gone += 1) {
      if (!this.isOver(bytesMax, work)) return false;
      const [oldest] = recency.getRange({ limit: 1 });
      if (oldest === undefined) return false;
      const record = this.read(oldest.value);
      const [, id] = oldest.key;
      const rows = record.rows.filter(({ entry }) => entry.id !== id);
      // What no record knows of would be found again and again.
      if (rows.length === record.rows.length) recency.removeSync(oldest.key);
      else this.write(oldest.value, record, rows, work);
    }
    return true;
  }

  /** Books what a transaction has done: its last step. */
  book({ bytes, answers }: Work): void {
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
