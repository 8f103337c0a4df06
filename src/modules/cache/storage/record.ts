import { createHash } from 'node:crypto';
import type { CachePurge } from '../cache-admin.ts';
import type { CacheDatabases } from './environment.ts';

/** A URL as a key of LMDB, whose keys end at 1,978 bytes. */
const cacheUrlKeyCharactersMax = 1_800;

/** Purges that are remembered for responses that were requested before them and arrive after. */
const cacheJournalMax = 4_096;

/** The members of a response that the storage uses. */
export interface CacheEntry {
  readonly id: string;
  /** As spelledUrl makes it. */
  readonly url: string;
  /** The id of the page rule that fetched it. */
  readonly rule: string;
  /** The length of its content. */
  readonly bytesLength: number;
}

/** A stored response with its bookkeeping. */
export interface StoredEntry<T> {
  readonly entry: T;
  /** When it was last used, in seconds since 1970, as far as that is recorded. */
  readonly used: number;
  /** The size that counts against the capacity, in bytes. */
  readonly size: number;
  /** CRC-32 of its content, and whether that is in a file. */
  readonly crc: number;
  readonly isFile: boolean;
}

/** The stored responses of a URL. Each change makes a new version, a number above 0. */
export interface UrlRecord<T> {
  readonly version: number;
  readonly rows: readonly StoredEntry<T>[];
}

const versionBytes = 6;

/** The key of a URL: the URL, or its beginning and a hash if it is longer than a key may be. */
export function urlKey(url: string): string {
  if (url.length <= cacheUrlKeyCharactersMax) return url;
  const hash = createHash('sha256').update(url).digest('hex');
  return `${url.slice(0, cacheUrlKeyCharactersMax)} ${hash}`;
}

/** The common prefix of the keys of all URLs with a prefix. */
export function prefixKey(prefix: string): string {
  return prefix.slice(0, cacheUrlKeyCharactersMax);
}

/** The stored form of a record: its version, then its rows as JSON. */
export function packRecord<T>({ version, rows }: UrlRecord<T>): Buffer {
  const text = Buffer.from(JSON.stringify(rows));
  const packed = Buffer.allocUnsafe(versionBytes + text.length);
  packed.writeUIntBE(version, 0, versionBytes);
  text.copy(packed, versionBytes);
  return packed;
}

/** The version of a stored record. */
export function packedVersion(packed: Buffer): number {
  return packed.readUIntBE(0, versionBytes);
}

/** The record of a stored form. */
export function unpackRecord<T>(packed: Buffer): UrlRecord<T> {
  const rows = JSON.parse(packed.toString('utf8', versionBytes)) as readonly StoredEntry<T>[];
  return { version: packedVersion(packed), rows };
}

/** The members of a response that a purge selects by. */
interface Purged {
  readonly url: string;
  readonly rule: string | undefined;
}

/** Whether a purge selects a response; if its rule is unknown, whether it may select it. */
export function isSelected(purge: CachePurge, entry: Purged): boolean {
  switch (purge.kind) {
    case 'url':
      return isSpellingOf(entry.url, purge.url);
    case 'prefix':
      return entry.url.startsWith(purge.prefix);
    case 'rule':
      return entry.rule === undefined || entry.rule === purge.rule;
    case 'all':
      return true;
  }
}

/** The number of purges so far. A response that was requested before one is not stored after it. */
export function epochOf({ meta }: Pick<CacheDatabases, 'meta'>): number {
  return Number(meta.get('epoch') ?? 0);
}

/** Records a purge, which begins an epoch. Must be called in a write transaction. */
export function beginEpoch({ meta, journal }: CacheDatabases, purge: CachePurge): void {
  const epoch = epochOf({ meta }) + 1;
  meta.putSync('epoch', String(epoch));
  journal.putSync(epoch, JSON.stringify(purge));
  journal.removeSync(epoch - cacheJournalMax);
}

/**
 * Whether a purge since an epoch selects a response. True if there were more purges than the
 * journal holds: one of them may have.
 */
export function isPurgedSince(databases: CacheDatabases, since: number, entry: Purged): boolean {
  return purgesSince(databases, since, entry, 1) > 0;
}

/** How many purges since an epoch select a response, or may select it, counted up to `max`. */
export function purgesSince(
  databases: CacheDatabases,
  since: number,
  entry: Purged,
  max: number,
): number {
  const epoch = epochOf(databases);
  if (epoch - since > cacheJournalMax) return max;
  let purges = 0;
  for (let at = since + 1; at <= epoch && purges < max; at += 1) {
    const text = databases.journal.get(at);
    if (text === undefined || isSelected(JSON.parse(text) as CachePurge, entry)) purges += 1;
  }
  return purges;
}

/**
 * The primary key of a response (RFC 9111 §2): its URL as the client sent it. Behind the canonical
 * URL and a space, which no URL contains, if the two differ: a purge of the canonical URL then
 * finds all of its spellings side by side.
 */
export function spelledUrl(url: string, sentUrl: string): string {
  return url === sentUrl ? url : `${url} ${sentUrl}`;
}

/** The URL as the client sent it, of such a key. */
export function sentUrlOfKey(key: string): string {
  return key.slice(key.indexOf(' ') + 1);
}

/** Whether such a key is that of a canonical URL, in any spelling. */
function isSpellingOf(key: string, url: string): boolean {
  return key.startsWith(url) && (key.length === url.length || key[url.length] === ' ');
}
