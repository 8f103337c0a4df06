import { createHash } from 'node:crypto';
import { cacheUrlKeyCharactersMax } from './limits.ts';

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
