import type { Database } from 'lmdb';
import { verifySliceEntries } from '../model/limits.ts';
import type { Conditional, Databases } from './databases.ts';

type PlaceDatabase = 'exact' | 'wildcard';
type PlaceDatabases = Pick<Databases, PlaceDatabase>;

/** Where a rule stands among the candidates: a database, a key in it, and the value there. */
export interface CandidatePlace {
  readonly database: PlaceDatabase;
  readonly key: Buffer;
  readonly value: string;
}

/**
 * What stands beside the candidates of a key that has several: nearly all have one, and one seek
 * finds it and that it is the only one. It is the value which that seek comes to, the first one of
 * an exact key and the last one of a wildcard; candidates begin with `[`.
 */
const severalMarks: Readonly<Record<PlaceDatabase, string>> = { exact: '!', wildcard: '~' };

/** Puts a candidate; to be called in a write transaction. */
export function putCandidate(
  databases: PlaceDatabases,
  { database: name, key, value }: CandidatePlace,
): void {
  const database = databases[name] as unknown as Conditional<Uint8Array>;
  if (database.putSync(key, value, onlyWhereNone)) return;
  databases[name].putSync(key, value);
  databases[name].putSync(key, severalMarks[name]);
}

const onlyWhereNone = { noOverwrite: true } as const;

/** Removes a candidate; to be called in a write transaction. */
export function removeCandidate(
  databases: PlaceDatabases,
  { database: name, key, value }: CandidatePlace,
): void {
  const database = databases[name];
  database.removeSync(key, value);
  // Mostly none is left: to look for several takes many times as long in a write transaction.
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

/** How many candidates stand at a place, counted up to a limit. */
export function countAt(
  databases: PlaceDatabases,
  { database: name, key }: Pick<CandidatePlace, 'database' | 'key'>,
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

/** The candidates of a wildcard's key, sorted by their texts, whose last value is known. */
export function wildcardValues(
  { wildcard }: PlaceDatabases,
  key: Buffer,
  last: string,
): readonly string[] {
  return last === severalMarks.wildcard ? allValues(wildcard, key) : [last];
}

/** What is wrong with a value where it stands, as far as the other values there tell. */
export function valueProblem(
  databases: PlaceDatabases,
  { database: name, key, value }: CandidatePlace,
): string | undefined {
  const database = databases[name];
  if (isSeveralMark(name, value)) {
    const isOfSeveral = firstValues(database, key, 3).length === 3;
    return isOfSeveral ? undefined : 'is marked as having several rules, and has not';
  }
  const seen = name === 'exact' ? database.get(key) : greatestEntry(database, key)?.last;
  const isSeen = seen === value || seen === severalMarks[name];
  return isSeen ? undefined : 'has several rules, and is not marked so';
}

/** Whether a value is no candidate, but says that there are several. */
export function isSeveralMark(name: PlaceDatabase, value: string): boolean {
  return value === severalMarks[name];
}

/**
 * Marks the keys that have several candidates in a data folder of before there were marks; to be
 * called in a write transaction. It looks at each entry.
 */
export function markSeveral(databases: PlaceDatabases): void {
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

/** Some of the keys with several values, the first ones behind a key. */
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
