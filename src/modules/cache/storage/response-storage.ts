import type { FileHandle } from 'node:fs/promises';
import type { CacheCounts, CachePurge } from '../cache-admin.ts';
import type { CacheEntry, StoredEntry, UrlRecord } from './record.ts';

/** The content of a new response: its bytes, or the file that already holds them. */
export type NewContent =
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'file'; readonly crc: number };

/** A change of the stored responses of a URL. */
export interface CacheChange<T> {
  readonly url: string;
  /** The rule that fetched, and the epoch in which the request was sent. */
  readonly rule: string;
  readonly since: number;
  /** Returns the new responses, given the current ones. */
  readonly decide: (before: readonly T[]) => readonly T[];
  /** The content of the response that is new, by its id. */
  readonly added?: { readonly id: string; readonly content: NewContent };
}

/** Selects the responses of a list. */
export interface ListQuery {
  readonly prefix: string;
  readonly rule: string | undefined;
  /** The list begins after this URL. */
  readonly after: string | undefined;
}

/** The responses of one URL in a list. */
export interface ListedUrl<T> {
  readonly url: string;
  readonly rows: readonly StoredEntry<T>[];
}

/**
 * Responses of other servers in a folder that several processes use at the same time: all see what
 * one of them stores or removes.
 */
export interface ResponseStorage<T extends CacheEntry> {
  /** Later reads see all changes up to this moment, as with Store.refresh. */
  refresh(): void;
  /** The version of the record of a URL; 0 if there is none. */
  version(url: string): number;
  read(url: string): UrlRecord<T>;
  /** Content that is not in a file; undefined if it is missing or corrupt. */
  content(row: StoredEntry<T>): Buffer | undefined;
  /** Opens the content file of a response: a descriptor that the caller closes, or undefined. */
  openFile(id: string): number | undefined;
  /** Creates the content file of a response that will be stored. */
  createFile(id: string): Promise<FileHandle>;
  /** Deletes the content file of a response that will not be stored. */
  removeFile(id: string): Promise<void>;
  /** Records that a response was used now: the least recently used ones are evicted first. */
  touch(entry: T): void;
  /** The number of purges so far. */
  epoch(): number;
  /** Whether a purge since an epoch may have selected responses of a URL. */
  isPurgedSince(since: number, url: string): boolean;
  /** Whether more than one purge since an epoch may have selected responses of a URL. */
  isPurgedTwiceSince(since: number, url: string): boolean;
  /**
   * Changes the stored responses of a URL. Resolves to the new record, or to undefined if a purge
   * since the epoch of the change selects its response. Rejects with the error of the disk.
   */
  change(change: CacheChange<T>): Promise<UrlRecord<T> | undefined>;
  /** Removes responses, also those that are still arriving; resolves to the number of URLs. */
  purge(purge: CachePurge): Promise<number>;
  /** The responses of URLs with a prefix, in the order of the keys. */
  list(asked: ListQuery): Iterable<ListedUrl<T>>;
  counts(): CacheCounts;
  /** The capacity in bytes. */
  bytesMax(): number;
  /**
   * Sets the capacity; resolves when the responses fit it. Rejects with the error of the disk;
   * later changes then evict the rest.
   */
  limit(bytesMax: number): Promise<void>;
  close(): Promise<void>;
}
