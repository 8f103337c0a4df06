import type { Database } from 'lmdb';
import { Failure } from '../../../core/values/failure.ts';
import { isWildcardPath } from '../../../core/values/path.ts';
import { matchingOrigin, originsOf, type StoredRule } from '../rule.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import { markedKey, unmarkedKey } from './rule-index.ts';
import type { PathRange, PathStep } from './reads.ts';

type PathDatabases = Pick<Databases, 'rule' | 'exact' | 'wildcard'>;

/** Keys from `lower` up to `upper`, without `upper`. */
interface KeyRange {
  readonly lower: Buffer;
  readonly upper: Buffer;
}

/** Where the entry of a place is; in this order, if their keys are the same. */
const indexes = ['exact', 'wildcard', 'segment'] as const;

/** An entry of an index of places. */
interface Entry {
  /** Without its mark: see markedKey. */
  readonly key: Buffer;
  readonly index: (typeof indexes)[number];
  readonly id: string;
}

/**
 * Reads.rulesByPath: merges the indexes of places. A page costs a few seeks and the rules in
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
    const all = indexes.map((index) =>
      entries(databases, { index, range, descending, from: last?.key }),
    );
    for (const entry of merged(all, sign)) {
      if (last !== undefined && compareEntries(entry, last) * sign <= 0) continue;
      const text = databases.rule.get(keyOf(entry.id));
      const stored = text === undefined ? undefined : (storedJson(text) as StoredRule);
      if (origin === undefined && stored !== undefined && !isFirstPlace(entry, stored)) continue;
      yield { id: entry.id, stored, size: text?.length ?? 0, place: placeOf(entry) };
    }
  }
}

/** Whether a place is that of the first origin of a rule: one with several comes once. */
function isFirstPlace({ key }: Entry, { rule }: StoredRule): boolean {
  const [first, ...others] = originsOf(matchingOrigin(rule)).map((one) => Buffer.from(`${one}\0`));
  if (first === undefined || others.length === 0) return true;
  const least = others.reduce(
    (one, other) => (Buffer.compare(other, one) < 0 ? other : one),
    first,
  );
  // Of a place that is a hash, each origin has its own.
  return key[0] === 0 || least.equals(key.subarray(0, least.length));
}

/**
 * The ranges of keys, in their order: first the hashes of places that are no text or too long, and
 * the rules whose origin waits; then the places of an origin, or all.
 */
function keyRanges(origin: string | undefined, path = ''): readonly KeyRange[] {
  const hashes = { lower: Buffer.from([0]), upper: Buffer.from([1]) };
  // Keys with a mark are those of the index of segments.
  if (origin === undefined) return [hashes, { lower: Buffer.from([2]), upper: greatest }];
  const lower = Buffer.from(`${origin}\0${isWildcardPath(path) ? path.slice(0, -1) : path}`);
  return [hashes, { lower, upper: Buffer.concat([lower, greatest]) }];
}

/** No UTF-8 text has this byte. */
const greatest = Buffer.from([0xff]);

function* entries(
  databases: PathDatabases,
  given: {
    readonly index: Entry['index'];
    readonly range: KeyRange;
    readonly descending: boolean;
    readonly from: Buffer | undefined;
  },
): Generator<Entry, undefined> {
  const { index, range, descending, from } = given;
  const placed = index === 'segment' ? markedKey : (key: Buffer): Buffer => key;
  const [lower, upper] = [placed(range.lower), placed(range.upper)];
  const database: Database<string, Uint8Array> = databases[index === 'exact' ? index : 'wildcard'];
  const last = from && placed(from);
  const start = descending ? least(upper, last ?? upper) : greater(lower, last ?? lower);
  for (const { key: read, value } of database.getRange({ start, reverse: descending })) {
    // lmdb uses the memory of a key again.
    const key = Buffer.from(read);
    if (descending ? Buffer.compare(key, lower) < 0 : Buffer.compare(key, upper) >= 0) return;
    // Other values are the marks of places with several rules: see index-entries.ts.
    if (!value.startsWith('[') || Buffer.compare(key, upper) >= 0) continue;
    const unmarked = unmarkedKey(key);
    if ((unmarked !== undefined) !== (index === 'segment')) continue;
    const [id] = storedJson(value) as readonly [string];
    yield { key: unmarked ?? key, index, id };
  }
}

/** The entries of several sorted indexes in one order. */
function* merged(all: readonly Generator<Entry, undefined>[], sign: number): Generator<Entry> {
  try {
    const heads = all.map((index) => ({ index, entry: index.next().value }));
    for (;;) {
      const [first] = heads
        .flatMap(({ index, entry }, at) => (entry === undefined ? [] : { index, entry, at }))
        .sort((one, other) => compareEntries(one.entry, other.entry) * sign);
      if (first === undefined) return;
      yield first.entry;
      heads[first.at] = { index: first.index, entry: first.index.next().value };
    }
  } finally {
    for (const index of all) index.return(undefined);
  }
}

function compareEntries(one: Entry, other: Entry): number {
  const keys = Buffer.compare(one.key, other.key);
  if (keys !== 0) return keys;
  const kinds = indexes.indexOf(one.index) - indexes.indexOf(other.index);
  if (kinds !== 0) return kinds;
  return Buffer.compare(Buffer.from(one.id), Buffer.from(other.id));
}

function greater(one: Buffer, other: Buffer): Buffer {
  return Buffer.compare(one, other) < 0 ? other : one;
}

function least(one: Buffer, other: Buffer): Buffer {
  return Buffer.compare(one, other) < 0 ? one : other;
}

function placeOf({ key, index, id }: Entry): string {
  return `${index.slice(0, 1)}.${key.toString('base64url')}.${id}`;
}

function parsedPlace(place: string): Entry {
  const [, letter = '', key = '', id = ''] = placeForm.exec(place) ?? [];
  const index = indexes.find((one) => one.startsWith(letter) && letter !== '');
  if (index === undefined) {
    const message = 'after has to be the `next` of an earlier answer, with the same sort.';
    throw new Failure('invalid', message, { field: 'after' });
  }
  return { key: Buffer.from(key, 'base64url'), index, id };
}

const placeForm = /^([ews])\.([\w-]+)\.(.+)$/s;
