import type { FileHandle } from 'node:fs/promises';
import type { CacheCounts, CachePurge } from '../../model/cache-admin.ts';
import type { CacheEntry, Row, UrlRecord } from './record.ts';

/** Content that is kept with an answer: all of it, or what was written to the answer's file. */
export type NewContent =
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'file'; readonly crc: number };

/** A change of what is kept for a URL. */
export interface CacheChange<T> {
  readonly url: string;
  /** The rule that it is made for, and the epoch in which its source was asked. */
  readonly rule: string;
  readonly since: number;
  /** From the answers that are there to those that will be. */
  readonly decide: (before: readonly T[]) => readonly T[];
  /** The content of the one among them that was not there before, by its id. */
  readonly added?: { readonly id: string; readonly content: NewContent };
}

/** What a list shows. */
export interface ListAsked {
  readonly prefix: string;
  readonly rule: string | undefined;
  /** The URL behind which it begins. */
  readonly after: string | undefined;
}

/** What is kept for one URL, as a list shows it. */
export interface ListedUrl<T> {
  readonly url: string;
  readonly rows: readonly Row<T>[];
}

/**
 * Kept answers of other servers, in a folder that several processes have open: what one of them
 * keeps or lets go of, all do.
 */
export interface AnswerCache<T extends CacheEntry> {
  /** Has what is read from now on be no older than this moment, as Store.refresh does. */
  refresh(): void;
  /** The version of what is kept for a URL; 0 for nothing. */
  version(url: string): number;
  read(url: string): UrlRecord<T>;
  /** Content that is not in a file; undefined where it has gone, or is not what it was. */
  content(row: Row<T>): Buffer | undefined;
  /**
   * Opens the file of an answer's content: a descriptor, undefined where it has gone. Whoever gets
   * it closes it.
   */
  openFile(id: string): number | undefined;
  /** Makes the file of an answer that is still to be kept. */
  createFile(id: string): Promise<FileHandle>;
  /** Removes the file of an answer that will not be kept. */
  removeFile(id: string): Promise<void>;
  /** Notes that an answer was used just now, so that others are let go of first. */
  touch(entry: T): void;
  /** The number of purges so far. */
  epoch(): number;
  /** Whether a purge since an epoch may have been about answers of a URL. */
  isPurgedSince(since: number, url: string): boolean;
  /** Whether more than one purge since an epoch may have been about answers of a URL. */
  isPurgedTwiceSince(since: number, url: string): boolean;
  /**
   * Changes what is kept for a URL. Resolves to what is kept then; undefined where a purge since
   * has let go of what the change is about. Rejects with what the disk says.
   */
  change(change: CacheChange<T>): Promise<UrlRecord<T> | undefined>;
  /** Lets go of answers, those on their way included; resolves to how many URLs had some. */
  purge(purge: CachePurge): Promise<number>;
  /** What is kept of URLs that begin so, in their order, of one rule where that is given. */
  list(asked: ListAsked): Iterable<ListedUrl<T>>;
  counts(): CacheCounts;
  /** How much is kept at most, in bytes. */
  bytesMax(): number;
  /**
   * Sets how much is kept; resolves when what is over it has gone. Rejects with what the disk says:
   * it goes with the next changes then.
   */
  limit(bytesMax: number): Promise<void>;
  close(): Promise<void>;
}
