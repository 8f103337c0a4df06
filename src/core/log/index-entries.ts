import type { Database } from 'lmdb';
import type { ConditionalPut, Databases } from './databases.ts';
import { verifySliceEntries } from './limits.ts';

type PlaceDatabase = 'exact' | 'wildcard';
type PlaceDatabases = Pick<Databases, PlaceDatabase>;

/** The entry of a rule in the index of candidates: database, key and value. */
export interface IndexEntry {
  readonly database: PlaceDatabase;
  readonly key: Buffer;
  readonly value: string;
}

/**
 * Marks a key that has several candidates; most keys have one. The mark sorts first in `exact` and
 * last in `wildcard`, where a seek reads, so one seek shows whether there are several. Candidates
 * begin with `[`.
 */
const severalMarks: Readonly<Record<PlaceDatabase, string>> = { exact: '!', wildcard: '~' };

/** Puts a candidate. The caller runs it in a write transaction. */
export function putIndexEntry(
  databases: PlaceDatabases,
  { database: name, key, value }: IndexEntry,
): void {
  const database = databases[name] as unknown as ConditionalPut<Uint8Array>;
  if (database.putSync(key, value, onlyWhereNone)) return;
  databases[name].putSync(key, value);
  databases[name].putSync(key, severalMarks[name]);
}

const onlyWhereNone = { noOverwrite: true } as const;

/** Removes a candidate. The caller runs it in a write transaction. */
export function removeIndexEntry(
  databases: PlaceDatabases,
  { database: name, key, value }: IndexEntry,
): void {
  const database = databases[name];
  database.removeSync(key, value);
  // Usually none is left; reading several values takes many times as long in a write transaction.
  if (database.get(key) === undefined) return;
  const left = firstValues(database, key, 3);
  if (left.length < 3 && left.includes(severalMarks[name])) {
    database.removeSync(key, severalMarks[name]);
  }
}

/** The candidates of an exact key, sorted by their texts. */
export function exactValues({ exact }: PlaceDatabases, key: Buffer): readonly string[] {
  const first = exact.get(key);
  if (first === undefined) return [];
  return first === severalMarks.exact ? allValues(exact, key) : [first];
}

/** The number of candidates at a place, counted up to a limit. */
export function countAt(
  databases: PlaceDatabases,
  { database: name, key }: Pick<IndexEntry, 'database' | 'key'>,
  limit: number,
): number {
  const database = databases[name];
  if (database.get(key) === undefined) return 0;
  const values = firstValues(database, key, limit + 1);
  return Math.min(limit, values.filter((value) => !isSeveralMark(name, value)).length);
}

/** The greatest key up to a bound, and the last value there: one seek for both. */
export function greatestEntry(
  database: Database<string, Uint8Array>,
  upTo: Uint8Array,
): { readonly key: Buffer; readonly last: string } | undefined {
  const [greatest] = database.getRange({ start: upTo, reverse: true, limit: 1 });
  if (greatest === undefined) return undefined;
  const { buffer, byteOffset, length } = greatest.key;
  return { key: Buffer.from(buffer, byteOffset, length), last: greatest.value };
}

/** The last value at a key; undefined without one. */
export function lastValue(
  database: Database<string, Uint8Array>,
  key: Uint8Array,
): string | undefined {
  const greatest = database.doesExist(key) ? greatestEntry(database, key) : undefined;
  return greatest?.last;
}

/** The candidates of a wildcard's key, sorted by their texts, whose last value is known. */
export function wildcardValues(
  { wildcard }: PlaceDatabases,
  key: Buffer,
  last: string,
): readonly string[] {
  return last === severalMarks.wildcard ? allValues(wildcard, key) : [last];
}

/** Whether a value is the mark of several candidates. */
export function isSeveralMark(name: PlaceDatabase, value: string): boolean {
  return value === severalMarks[name];
}

/**
 * Marks the keys that have several candidates in a data folder of an older version. The caller runs
 * it in a write transaction. It reads every entry.
 */
export function putSeveralMarks(databases: PlaceDatabases): void {
  for (const name of ['exact', 'wildcard'] as const) {
    const database = databases[name];
    let last: Uint8Array | undefined;
    do {
      const keys = severalKeys(database, last);
      for (const key of keys) database.putSync(key, severalMarks[name]);
      last = keys.at(-1);
    } while (last !== undefined);
  }
}

/** The first keys with several values after a key. */
function severalKeys(
  database: Database<string, Uint8Array>,
  after: Uint8Array | undefined,
): readonly Uint8Array[] {
  const found: Uint8Array[] = [];
  let previous = after;
  let isFound = after !== undefined;
  for (const { key } of database.getRange(after === undefined ? {} : { start: after })) {
    if (previous === undefined || Buffer.compare(key, previous) !== 0) {
      if (found.length === verifySliceEntries) break;
      isFound = false;
    } else if (!isFound) {
      found.push(key);
      isFound = true;
    }
    previous = key;
  }
  return found;
}

function allValues(database: Database<string, Uint8Array>, key: Uint8Array): readonly string[] {
  return [...database.getValues(key)].filter((value) => value.startsWith('['));
}

function firstValues(
  database: Database<string, Uint8Array>,
  key: Uint8Array,
  limit: number,
): readonly string[] {
  return [...database.getValues(key, { limit })];
}
