import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { cacheTouchedSeconds } from '../limits.ts';
import { cacheInlineBytesMax, cacheTouchMs, purgeSliceUrls } from './limits.ts';
import type { CacheCounts, CachePurge } from '../../model/cache-admin.ts';
import { writeErrorOf } from '../../store/folder/full-disk.ts';
import { Ledger, sizeOf, type Work } from './budget.ts';
import type { AnswerCache, CacheChange, ListAsked, ListedUrl, NewContent } from './cache.ts';
import { openCacheDatabases, type CacheDatabases } from './environment.ts';
import { contentFolder, createContentFiles, type ContentFiles } from './files.ts';
import {
  beginEpoch,
  epochOf,
  isPurgedSince,
  isSelected,
  packedVersion,
  prefixKey,
  purgesSince,
  urlKey,
  type CacheEntry,
  type Row,
  type UrlRecord,
} from './record.ts';

/** What a cache stands on; `now` gives milliseconds since 1970. */
interface CacheParts {
  /** Absolute path of a folder that prepareCache has made ready. */
  readonly folder: string;
  readonly bytesMax: number;
  readonly now: () => number;
}

/** Opens the cache of a folder. Throws what lmdb throws. */
export function openCache<T extends CacheEntry>(parts: CacheParts): AnswerCache<T> {
  return new FolderCache<T>(parts);
}

class FolderCache<T extends CacheEntry> implements AnswerCache<T> {
  readonly #databases: CacheDatabases;
  readonly #ledger: Ledger<T>;
  readonly #files: ContentFiles;
  readonly #now: () => number;
  readonly #touching: NodeJS.Timeout;
  #bytesMax: number;
  /** Answers that were used of late, by their id: the URL of each. */
  readonly #touched = new Map<string, string>();
  #closing: Promise<void> | undefined;

  constructor({ folder, bytesMax, now }: CacheParts) {
    this.#databases = openCacheDatabases(folder);
    this.#ledger = new Ledger(this.#databases);
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
    return this.#ledger.read(urlKey(url));
  }

  content({ entry, crc }: Row<T>): Buffer | undefined {
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
    const written = this.#write((work) => {
      if (isPurgedSince(this.#databases, since, { url, rule })) return;
      const before = this.#ledger.read(key);
      const used = Math.floor(this.#now() / 1000);
      const rows = decide(before.rows.map(({ entry }) => entry)).map((entry): Row<T> => {
        const row = before.rows.find((one) => one.entry.id === entry.id);
        if (row !== undefined) return { ...row, entry, size: sizeOf(entry) };
        return { entry, used, size: sizeOf(entry), crc: crcOf(added?.content), isFile };
      });
      after = this.#ledger.write(key, before, rows, work);
      if (added?.content.kind === 'bytes' && !isFile) {
        this.#databases.content.putSync(added.id, added.content.bytes);
      }
      if (!this.#ledger.isOver(this.#bytesMax, work)) return;
      this.#noteUses();
      this.#ledger.keepWithin(this.#bytesMax, work);
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
      await this.#write((work) => {
        if (start === '') beginEpoch(this.#databases, purge);
        const keys = this.#keysOf(purge, start);
        from = keys.length < purgeSliceUrls ? undefined : keys.at(-1);
        for (const key of keys) {
          const before = this.#ledger.read(key);
          const rows = before.rows.filter(({ entry }) => !isSelected(purge, entry));
          if (rows.length === before.rows.length) continue;
          urls += 1;
          this.#ledger.write(key, before, rows, work);
        }
      });
    }
    return urls;
  }

  *list({ prefix, rule, after }: ListAsked): Iterable<ListedUrl<T>> {
    const start = after === undefined ? prefixKey(prefix) : urlKey(after);
    const end = endOf(prefixKey(prefix));
    const { urls, rules } = this.#databases;
    const keys =
      rule === undefined
        ? urls.getKeys({ start, end })
        : rules.getKeys({ start: [rule, start], end: [rule, end] }).map(([, key]) => key);
    for (const key of keys) {
      const { rows } = this.#ledger.read(key);
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
      await this.#write((work) => {
        this.#noteUses();
        isDone = !this.#ledger.keepWithin(this.#bytesMax, work);
      });
    }
  }

  close(): Promise<void> {
    clearInterval(this.#touching);
    this.#closing ??= this.#writeUses().then(() => this.#databases.environment.close());
    return this.#closing;
  }

  /** Keys of URLs that a purge may be about, so many from one on, which is among them again. */
  #keysOf(purge: CachePurge, from: string): readonly string[] {
    const { urls, rules } = this.#databases;
    const limit = purgeSliceUrls;
    switch (purge.kind) {
      case 'url':
        return from === '' ? [urlKey(purge.url)] : [];
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

  /** Puts content where it belongs if that is a file. */
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
    // That it fails costs no more than the order in which answers go.
    await this.#write(() => {
      this.#noteUses();
    }).catch(() => undefined);
  }

  /** To be called in a write transaction. */
  #noteUses(): void {
    const step = cacheTouchedSeconds;
    const seconds = Math.floor(this.#now() / 1000 / step) * step;
    for (const [id, url] of this.#touched) this.#ledger.touch(url, id, seconds);
    this.#touched.clear();
  }

  /** Runs a write transaction, all of it or nothing, and removes the files of what has gone. */
  async #write(action: (work: Work) => void): Promise<void> {
    const work: Work = { files: [], bytes: 0, answers: 0 };
    // Only a child transaction is rolled back when something throws in it.
    const written = this.#databases.environment.childTransaction(() => {
      action(work);
      this.#ledger.book(work);
    });
    await written.catch(async (error: unknown) => {
      throw await writeErrorOf(error);
    });
    await this.#files.remove(work.files);
  }
}

function crcOf(content: NewContent | undefined): number {
  if (content === undefined) return 0;
  return content.kind === 'file' ? content.crc : crc32(content.bytes);
}

/** Behind all texts that begin with one. */
function endOf(prefix: string): string {
  return prefix + lastText;
}

const lastText = '\uffff';
