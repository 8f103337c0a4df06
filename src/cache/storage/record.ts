import { createHash } from 'node:crypto';
import type { CachePurge } from '../../model/cache-admin.ts';
import type { CacheDatabases } from './environment.ts';
import { cacheJournalMax, cacheUrlKeyCharactersMax } from './limits.ts';

/** An answer as the cache's storage sees it: the rest of it is its keeper's business. */
export interface CacheEntry {
  readonly id: string;
  readonly url: string;
  /** Id of the page rule that it is from. */
  readonly rule: string;
  /** Of its content. */
  readonly bytesLength: number;
}

/** An answer with what the storage itself has to know. */
export interface Row<T> {
  readonly entry: T;
  /** Seconds since 1970 of its last use, as far as it was noted. */
  readonly used: number;
  /** What it takes of the budget, in bytes. */
  readonly size: number;
  /** CRC-32 of its content, and whether that is in a file. */
  readonly crc: number;
  readonly isFile: boolean;
}

/** What is kept for a URL: each change of it makes another version, a number above 0. */
export interface UrlRecord<T> {
  readonly version: number;
  readonly rows: readonly Row<T>[];
}

const versionBytes = 6;

/** The key of a URL: itself, or its beginning and a hash where it is longer than a key may be. */
export function urlKey(url: string): string {
  if (url.length <= cacheUrlKeyCharactersMax) return url;
  const hash = createHash('sha256').update(url).digest('hex');
  return `${url.slice(0, cacheUrlKeyCharactersMax)} ${hash}`;
}

/** What the keys of all URLs begin with that begin with a prefix. */
export function prefixKey(prefix: string): string {
  return prefix.slice(0, cacheUrlKeyCharactersMax);
}

/** A record as it is stored: its version, then the rest as JSON. */
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

/** A record of what was stored. */
export function unpackRecord<T>(packed: Buffer): UrlRecord<T> {
  const rows = JSON.parse(packed.toString('utf8', versionBytes)) as readonly Row<T>[];
  return { version: packedVersion(packed), rows };
}

/** What a purge looks at of an answer. */
interface Purged {
  readonly url: string;
  readonly rule: string | undefined;
}

/** Whether a purge is about an answer; without a rule, whether it may be. */
export function isSelected(purge: CachePurge, entry: Purged): boolean {
  switch (purge.kind) {
    case 'url':
      return entry.url === purge.url;
    case 'prefix':
      return entry.url.startsWith(purge.prefix);
    case 'rule':
      return entry.rule === undefined || entry.rule === purge.rule;
    case 'all':
      return true;
  }
}

/** The number of purges so far: what was asked for before one is not to be kept after it. */
export function epochOf({ meta }: Pick<CacheDatabases, 'meta'>): number {
  return Number(meta.get('epoch') ?? 0);
}

/** Begins an epoch with a purge; to be called in a write transaction. */
export function beginEpoch({ meta, journal }: CacheDatabases, purge: CachePurge): void {
  const epoch = epochOf({ meta }) + 1;
  meta.putSync('epoch', String(epoch));
  journal.putSync(epoch, JSON.stringify(purge));
  journal.removeSync(epoch - cacheJournalMax);
}

/**
 * Whether a purge since an epoch is about an answer. Of more purges than are remembered, one may
 * have been.
 */
export function isPurgedSince(databases: CacheDatabases, since: number, entry: Purged): boolean {
  return purgesSince(databases, since, entry, 1) > 0;
}

/** How many purges since an epoch are about an answer, or may have been, counted up to so many. */
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
