import type { Database } from 'lmdb';
import { Failure } from '../../../core/values/failure.ts';
import { isWildcardPath } from '../../../core/values/path.ts';
import type { StoredRule } from '../rule.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import type { PathRange, PathStep } from '../../../core/log/store.ts';

type PathDatabases = Pick<Databases, 'rule' | 'exact' | 'wildcard'>;

/** Keys from `lower` up to `upper`, without `upper`. */
interface KeyRange {
  readonly lower: Buffer;
  readonly upper: Buffer;
}

/** An entry of an index of places; a wildcard comes after the path that has the same key. */
interface Entry {
  readonly key: Buffer;
  readonly isWildcard: boolean;
  readonly id: string;
}

/**
 * Reads.rulesByPath: merges the two indexes of places. A page costs a few seeks and the rules in
 * it, however many rules come before it.
 */
export function* rulesByPath(
  databases: PathDatabases,
  { after, descending, origin, path }: PathRange,
): Iterable<PathStep> {
  const sign = descending ? -1 : 1;
  const last = after === undefined ? undefined : parsedPlace(after);
  const ranges = keyRanges(origin, path);
  for (const range of descending ? ranges.toReversed() : ranges) {
    const indexes = [false, true].map((isWildcard) =>
      entries(databases, { isWildcard, range, descending, from: last?.key }),
    );
    for (const entry of merged(indexes, sign)) {
      if (last !== undefined && compareEntries(entry, last) * sign <= 0) continue;
      const text = databases.rule.get(keyOf(entry.id));
      const stored = text === undefined ? undefined : (storedJson(text) as StoredRule);
      yield { id: entry.id, stored, size: text?.length ?? 0, place: placeOf(entry) };
    }
  }
}

/**
 * The ranges of keys, in their order: first the hashes of places that are no text or too long, and
 * the rules whose origin waits; then the places of an origin, or all.
 */
function keyRanges(origin: string | undefined, path = ''): readonly KeyRange[] {
  const hashes = { lower: Buffer.from([0]), upper: Buffer.from([1]) };
  if (origin === undefined) return [hashes, { lower: hashes.upper, upper: greatest }];
  const lower = Buffer.from(`${origin}\0${isWildcardPath(path) ? path.slice(0, -1) : path}`);
  return [hashes, { lower, upper: Buffer.concat([lower, greatest]) }];
}

/** No UTF-8 text has this byte. */
const greatest = Buffer.from([0xff]);

function* entries(
  databases: PathDatabases,
  given: {
    readonly isWildcard: boolean;
    readonly range: KeyRange;
    readonly descending: boolean;
    readonly from: Buffer | undefined;
  },
): Generator<Entry, undefined> {
  const { isWildcard, range, descending, from } = given;
  const { lower, upper } = range;
  const database: Database<string, Uint8Array> = isWildcard ? databases.wildcard : databases.exact;
  const start = descending ? least(upper, from ?? upper) : greater(lower, from ?? lower);
  for (const { key: read, value } of database.getRange({ start, reverse: descending })) {
    // lmdb uses the memory of a key again.
    const key = Buffer.from(read);
    if (descending ? Buffer.compare(key, lower) < 0 : Buffer.compare(key, upper) >= 0) return;
    // Other values are the marks of places with several rules: see index-entries.ts.
    if (!value.startsWith('[') || Buffer.compare(key, upper) >= 0) continue;
    const [id] = storedJson(value) as readonly [string];
    yield { key, isWildcard, id };
  }
}

/** The entries of several sorted indexes in one order. */
function* merged(indexes: readonly Generator<Entry, undefined>[], sign: number): Generator<Entry> {
  try {
    const heads = indexes.map((index) => ({ index, entry: index.next().value }));
    for (;;) {
      const [first] = heads
        .flatMap(({ index, entry }, at) => (entry === undefined ? [] : { index, entry, at }))
        .sort((one, other) => compareEntries(one.entry, other.entry) * sign);
      if (first === undefined) return;
      yield first.entry;
      heads[first.at] = { index: first.index, entry: first.index.next().value };
    }
  } finally {
    for (const index of indexes) index.return(undefined);
  }
}

function compareEntries(one: Entry, other: Entry): number {
  const keys = Buffer.compare(one.key, other.key);
  if (keys !== 0) return keys;
  const kinds = Number(one.isWildcard) - Number(other.isWildcard);
  if (kinds !== 0) return kinds;
  return Buffer.compare(Buffer.from(one.id), Buffer.from(other.id));
}

function greater(one: Buffer, other: Buffer): Buffer {
  return Buffer.compare(one, other) < 0 ? other : one;
}

function least(one: Buffer, other: Buffer): Buffer {
  return Buffer.compare(one, other) < 0 ? one : other;
}

function placeOf({ key, isWildcard, id }: Entry): string {
  return `${isWildcard ? 'w' : 'e'}.${key.toString('base64url')}.${id}`;
}

function parsedPlace(place: string): Entry {
  const [, index, key = '', id = ''] = placeForm.exec(place) ?? [];
  if (index === undefined) {
    const message = 'after has to be the `next` of an earlier answer, with the same sort.';
    throw new Failure('invalid', message, { field: 'after' });
  }
  return { key: Buffer.from(key, 'base64url'), isWildcard: index === 'w', id };
}

const placeForm = /^([ew])\.([\w-]+)\.(.+)$/s;
