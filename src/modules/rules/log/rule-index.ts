import type { Database } from 'lmdb';
import type { Databases } from '../../../core/log/databases.ts';
import { keyBytesMax, keyOf, storedJson } from '../../../core/log/encoding.ts';
import {
  type IndexEntry,
  countAt,
  exactValues,
  greatestEntry,
  lastValue,
  wildcardValues,
} from '../../../core/log/index-entries.ts';
import { Failure } from '../../../core/values/failure.ts';
import {
  hasWildcard,
  isSegmentWildcard,
  segmentWildcardsOver,
  wildcardRank,
} from '../../../core/values/path.ts';
import { instantMs } from '../../../core/values/time.ts';
import {
  type Candidate,
  type Rule,
  type RuleKind,
  type StoredRule,
  type Validity,
  matchingOrigin,
  originsOf,
  validityOf,
} from '../rule.ts';

/** Page rules at one origin and path, or with one wildcard of an origin. */
export const rulesAtPlaceMax = 1_000;

/** Wildcards of an origin that cover one path; matching reads only the longest of them … */
export const wildcardsOverPathMax = 64;

/** … and stops once they have this many rules together. */
export const wildcardRulesOverPathMax = 1_000;

type CandidateDatabases = Pick<Databases, 'exact' | 'wildcard'>;

/**
 * A candidate without its key: id, seq, insertedSeq, kind, lang, rve, designedAtMs. Only that of a
 * rule with a validity has further members: `waits`, or fromMs and untilMs.
 */
type Packed = readonly [
  string,
  number,
  number,
  RuleKind,
  string | null,
  number | null,
  number | null,
  ...([] | ['waits'] | [number | null, number | null]),
];

/** The place of a rule in the index; it does not depend on the id or seq of the rule. */
export interface RulePlace {
  readonly database: 'exact' | 'wildcard';
  readonly key: Buffer;
  /** The rest of its candidate, behind id and seqs: members of a JSON array. */
  readonly traits: string;
}

/** The fields of a rule that matching uses. */
export function candidateOf(
  { rule, seq, insertedSeq }: StoredRule,
  origin: string = matchingOrigin(rule),
): Candidate {
  const { id, path, kind, lang, rve } = rule;
  const designedAtMs = designedMs(rule);
  const validity = validityOf(rule);
  const valid = validity !== undefined && { validity };
  return { id, seq, insertedSeq, origin, path, kind, lang, rve, designedAtMs, ...valid };
}

/**
 * The places in the index under which matching finds a rule, one for each of its origins
 * (docs/design/page-rules.md#matching): as a wildcard when its path starts with `/` and has a `*`,
 * whatever its kind. Throws `too_large` for a place that is longer than an LMDB key, and `invalid`
 * for a wildcard that is not Unicode text.
 */
export function indexEntriesOf(stored: StoredRule): readonly IndexEntry[] {
  return rulePlaces(stored.rule).map(({ database, key, traits }) => {
    const value = indexValue(stored.rule.id, stored, traits);
    if (Buffer.byteLength(value) > keyBytesMax) throw tooLong('lang');
    return { database, key, value };
  });
}

/**
 * All entries by which a rule may be indexed: older versions indexed a rule whose origin waits
 * under its former origin, and did not know `from` and `until`.
 */
export function formerEntries(stored: StoredRule): readonly IndexEntry[] {
  const { rule } = stored;
  const places = [...indexEntriesOf(stored)];
  if (matchingOrigin(rule) !== rule.origin) {
    for (const origin of originsOf(rule.origin)) {
      const { database, key, traits } = rulePlace(rule, origin);
      places.push({ database, key, value: indexValue(rule.id, stored, traits) });
    }
  }
  return places.flatMap((place) => {
    const value = withoutWaiting(place.value);
    return value === place.value ? [place] : [place, { ...place, value }];
  });
}

/** The value of an index entry as older versions wrote it for a rule whose validity waits. */
export function withoutWaiting(value: string): string {
  return value.replace(/,"waits"\]$/, ']');
}

/**
 * The places of a rule in the index, which depend on neither its id nor its seq. Throws as
 * indexEntriesOf does.
 */
export function rulePlaces(rule: Omit<Rule, 'id'>): readonly RulePlace[] {
  return originsOf(matchingOrigin(rule)).map((origin) => rulePlace(rule, origin));
}

function rulePlace(rule: Omit<Rule, 'id'>, origin: string): RulePlace {
  const { path, kind, lang, rve } = rule;
  const designed = designedMs(rule) ?? null;
  const members = JSON.stringify([kind, lang ?? null, rve ?? null, designed, ...times(rule)]);
  const traits = members.slice(1, -1);
  if (!hasWildcard(path)) {
    return { database: 'exact', key: exactKey(origin, path), traits };
  }
  if (!path.isWellFormed()) {
    throw new Failure('invalid', 'path has to be Unicode text.', { field: 'path' });
  }
  const key = isSegmentWildcard(path)
    ? segmentKey(origin, path)
    : Buffer.from(`${origin}\0${path.slice(0, -1)}`);
  if (key.length > keyBytesMax) throw tooLong('path');
  return { database: 'wildcard', key, traits };
}

/** Whether some rule has an origin such as `https://*.example.com`. */
export function hasWildcardOrigins({
  exact,
  wildcard,
}: Pick<Databases, 'exact' | 'wildcard'>): boolean {
  const starts = ['http', 'https'].map((scheme) => Buffer.from(`${scheme}://*.`));
  const begins = (database: Database<string, Uint8Array>, start: Buffer): boolean => {
    const [first] = database.getKeys({ start, limit: 1 });
    return first !== undefined && start.equals(first.subarray(0, start.length));
  };
  return starts.some(
    (start) =>
      begins(exact, start) || begins(wildcard, start) || begins(wildcard, markedKey(start)),
  );
}

/** The value of an index entry. */
function indexValue(
  id: string,
  { seq, insertedSeq }: Pick<StoredRule, 'seq' | 'insertedSeq'>,
  traits: string,
): string {
  return `[${JSON.stringify(id)},${seq},${insertedSeq},${traits}]`;
}

function times(rule: Omit<Rule, 'id'>): readonly (string | number | null)[] {
  const validity = validityOf(rule);
  if (validity === undefined) return [];
  return validity === 'waits' ? [validity] : [validity.fromMs ?? null, validity.untilMs ?? null];
}

function designedMs({ designed_at: designedAt }: Pick<Rule, 'designed_at'>): number | undefined {
  const ms = designedAt === undefined ? NaN : instantMs(designedAt);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Rules of exactly an origin and path, from the one that was inserted first. */
export function findExact(
  databases: CandidateDatabases,
  origin: string,
  path: string,
): readonly Candidate[] {
  const values = exactValues(databases, exactKey(origin, path));
  return values.map((value) => unpack(value, origin, path));
}

/** Ids of all records that were ever indexed at exactly an origin and path. */
export function historicalExactIds(
  { everexact }: Pick<Databases, 'everexact'>,
  origin: string,
  path: string,
): readonly string[] {
  return [...everexact.getValues(exactKey(origin, path))];
}

/**
 * The rules of each wildcard of an origin that covers a path, in the order of wildcardRank, within
 * the limits of withinLimits. It reads the rules of a wildcard when the caller iterates to it.
 */
export function findWildcards(
  databases: CandidateDatabases,
  { origin, path }: { readonly origin: string; readonly path: string },
  { hasSegments = true }: WildcardOptions = {},
): Iterable<readonly Candidate[]> {
  const { wildcard } = databases;
  const covering = coveringPrefixes(wildcard, origin, path);
  const all = hasSegments
    ? inOrder([...coveringSegments(wildcard, origin, path)], covering)
    : covering;
  return withinLimits(
    all.map((one) =>
      wildcardValues(databases, one.key, one.last).map((value) => unpack(value, origin, one.path)),
    ),
  );
}

/** What a reader of wildcards knows of them. */
export interface WildcardOptions {
  /** Whether any of them stands for a segment; by default, they are looked up. */
  readonly hasSegments?: boolean;
}

/** Whether some wildcard stands for a segment. */
export function hasSegmentWildcards({ wildcard }: Pick<Databases, 'wildcard'>): boolean {
  const [first] = wildcard.getKeys({ start: segmentMark, limit: 1 });
  return first?.[0] === segmentMark[0];
}

/** A wildcard that covers a path. */
interface CoveringWildcard {
  readonly key: Buffer;
  readonly path: string;
  /** The last value there. */
  readonly last: string;
}

/** Wildcards over one path in the order of wildcardRank, of two lists in this order. */
function* inOrder(
  segments: CoveringWildcard[],
  prefixes: Iterable<CoveringWildcard>,
): Generator<CoveringWildcard, undefined> {
  for (const one of prefixes) {
    for (let [next] = segments; next !== undefined; [next] = segments) {
      if (wildcardRank(next.path) < wildcardRank(one.path)) break;
      yield next;
      segments.shift();
    }
    yield one;
  }
  yield* segments;
}

/**
 * Wildcards for a segment have keys of their own, in front of all others: a look-up for each
 * segment of a path finds them, which is quicker than a seek.
 */
const segmentMark = Buffer.from([1]);

/** The key of a wildcard for a segment. */
function segmentKey(origin: string, path: string): Buffer {
  return Buffer.concat([segmentMark, Buffer.from(`${origin}\0${path}`)]);
}

/** The key of the same place without its mark; undefined for that of another wildcard. */
export function unmarkedKey(key: Buffer): Buffer | undefined {
  return key[0] === segmentMark[0] ? key.subarray(segmentMark.length) : undefined;
}

/** A key with the mark: where the wildcards for a segment after a place begin. */
export function markedKey(key: Buffer): Buffer {
  return Buffer.concat([segmentMark, key]);
}

function* coveringSegments(
  database: Database<string, Uint8Array>,
  origin: string,
  path: string,
): Generator<CoveringWildcard, undefined> {
  for (const wildcard of segmentWildcardsOver(path)) {
    const key = segmentKey(origin, wildcard);
    if (key.length > keyBytesMax || !wildcard.isWellFormed()) continue;
    const last = lastValue(database, key);
    if (last !== undefined) yield { key, path: wildcard, last };
  }
}

/**
 * The rules of the longest wildcards over a path. The limits keep the cost of a request independent
 * of the number of nested wildcards.
 */
export function* withinLimits<T>(groups: Iterable<readonly T[]>): Generator<readonly T[]> {
  let [wildcards, rules] = [0, 0];
  for (const group of groups) {
    yield group;
    wildcards += 1;
    rules += group.length;
    if (wildcards >= wildcardsOverPathMax || rules >= wildcardRulesOverPathMax) return;
  }
}

/**
 * A Failure `too_large` if a place has no room for another rule; undefined if it has. `planned` is
 * the number of other rules about to be put there.
 */
export function roomFailure(
  databases: CandidateDatabases,
  { database, key }: Pick<RulePlace, 'database' | 'key'>,
  planned: number,
): Failure | undefined {
  if (countAt(databases, { database, key }, rulesAtPlaceMax) + planned >= rulesAtPlaceMax) {
    const message =
      `This origin and path already have ${rulesAtPlaceMax} page rules: edit or invalidate ` +
      'one of them instead.';
    return new Failure('too_large', message, { field: 'path' });
  }
  if (database === 'exact' || unmarkedKey(key) !== undefined) return undefined;
  const nul = key.indexOf(0);
  const [origin, prefix] = [key.toString('utf8', 0, nul), key.toString('utf8', nul + 1)];
  const above = coveringPrefixes(databases.wildcard, origin, prefix).filter(
    (covering) => covering.path !== `${prefix}*`,
  );
  let [wildcards, rules] = [0, 0];
  for (const covering of above) {
    wildcards += 1;
    const place = { database, key: covering.key };
    rules += countAt(databases, place, wildcardRulesOverPathMax - rules);
    if (wildcards < wildcardsOverPathMax && rules < wildcardRulesOverPathMax) continue;
    const message =
      `${wildcards} wildcards with ${rules} page rules cover this path already: at most ` +
      `${wildcardsOverPathMax} wildcards with ${wildcardRulesOverPathMax} rules are allowed.`;
    return new Failure('too_large', message, { field: 'path' });
  }
  return undefined;
}

/** Ids of all records that were ever indexed at a wildcard of an origin that covers a path. */
export function historicalWildcardIds(
  { everwildcard }: Pick<Databases, 'everwildcard'>,
  origin: string,
  path: string,
): readonly string[] {
  const covering = [
    ...coveringPrefixes(everwildcard, origin, path),
    ...coveringSegments(everwildcard, origin, path),
  ];
  return covering.flatMap(({ key }) => [...everwildcard.getValues(key)]);
}

/**
 * The wildcards of an origin that cover a path, longest first, without a scan: each step seeks the
 * greatest key up to a bound. A key that is a prefix of the path belongs to a wildcard that covers
 * it; the next bound is one byte shorter. After another key, the next bound is the beginning that
 * it shares with the path.
 */
function* coveringPrefixes(
  database: Database<string, Uint8Array>,
  origin: string,
  path: string,
): Generator<CoveringWildcard, undefined> {
  const originBytes = Buffer.byteLength(origin) + 1;
  const sought = Buffer.from(`${origin}\0${path}`);
  let boundBytes = Math.min(sought.length, keyBytesMax);
  while (boundBytes > originBytes) {
    const greatest = greatestEntry(database, sought.subarray(0, boundBytes));
    if (greatest === undefined) break;
    const { key, last } = greatest;
    const shared = sharedBytes(key, sought, boundBytes);
    const prefix = shared === key.length ? key.toString('utf8', originBytes) : undefined;
    // UTF-8 encodes all lone surrogates alike, so equal bytes do not prove an equal prefix.
    if (prefix !== undefined && shared > originBytes && path.startsWith(prefix)) {
      yield { key, path: `${prefix}*`, last };
    }
    boundBytes = shared === boundBytes || shared === key.length ? shared - 1 : shared;
  }
}

function sharedBytes(key: Buffer, sought: Buffer, boundBytes: number): number {
  const end = Math.min(key.length, boundBytes);
  let at = 0;
  while (at < end && key[at] === sought[at]) at += 1;
  return at;
}

function unpack(value: string, origin: string, path: string): Candidate {
  const [id, seq, insertedSeq, kind, lang, rve, designedAtMs, ...valid] = storedJson(
    value,
  ) as Packed;
  return {
    id,
    seq,
    insertedSeq,
    origin,
    path,
    kind,
    lang: lang ?? undefined,
    rve: rve ?? undefined,
    designedAtMs: designedAtMs ?? undefined,
    ...(valid.length > 0 && { validity: unpackValidity(valid) }),
  };
}

function unpackValidity([from, until]: readonly (number | string | null | undefined)[]): Validity {
  if (from === 'waits') return from;
  return {
    ...(typeof from === 'number' && { fromMs: from }),
    ...(typeof until === 'number' && { untilMs: until }),
  };
}

function exactKey(origin: string, path: string): Buffer {
  return keyOf(`${origin}\0${path}`);
}

function tooLong(field: string): Failure {
  return new Failure('too_large', `${field} is too long.`, { field });
}
