import { isDeepStrictEqual } from 'node:util';
import type { Database } from 'lmdb';
import { eventLoop } from '../../../core/fair/turns.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { seqBytes } from '../../../core/log/encoding.ts';
import { errorReason } from '../../../core/log/folder/data-folder.ts';
import { isSeveralMark } from '../../../core/log/index-entries.ts';
import { verifySliceEntries } from '../../../core/log/limits.ts';
import { createReads } from '../../../core/log/reads.ts';
import type { LogFamily, Reads } from '../../../core/log/store.ts';
import type { IndexBuild, TableCounts } from '../../tables/log/reads.ts';
import { Failure } from '../../../core/values/failure.ts';
import { parseJson } from '../../../core/values/json/parse.ts';
import { withoutWaiting } from '../../rules/log/rule-index.ts';
import {
  isMaintained,
  keyPrefix,
  orderedValueEnd,
  searchIndex,
} from '../../tables/log/index-key.ts';
import { dueOf, nOf, queueOf } from '../../webhooks/log/deliveries.ts';
import { entryChecks, numberedChecks } from './entry-checks.ts';
import { type Difference, LogFold, type Room, type Slice, openScratch } from './log-fold.ts';
import { storedTables } from '../../tables/log/family.ts';

type Name = Exclude<keyof Databases, 'environment' | 'meta' | 'delivery'>;
type Key = number | Uint8Array;
type AnyDatabase = Database<string, Key>;
type CheckEntry = (databases: Databases, key: Key, value: string) => string | undefined;

/** The progress of a verification, and the findings of its last part. */
export interface Verification {
  /** Entries checked so far, and the estimated total. */
  readonly checked: number;
  readonly of: number;
  readonly differences: readonly Difference[];
}

/** The databases that the log decides. */
const decided: readonly Name[] = [
  ...(['history', 'mark', 'txn', 'rule', 'exact', 'wildcard', 'everexact'] as const),
  ...(['everwildcard', 'key', 'keyhash', 'hook', 'hooktype', 'hooksecret', 'table'] as const),
  ...(['tablename', 'evertablename', 'row', 'tablerow', 'evertablerow', 'rowkey'] as const),
  ...(['everrowkey', 'rowindex', 'rowword', 'tablecount', 'ruletime'] as const),
  ...(['ruleasset', 'draft', 'draftstate', 'draftname', 'draftentry'] as const),
  ...(['draftrecord', 'drafttouch', 'ruleaccess'] as const),
];

/** Those with several values under a key; such a value is part of what the entry says. */
const severalValued: ReadonlySet<Name> = new Set([
  ...(['exact', 'wildcard', 'everexact', 'everwildcard'] as const),
  ...(['hooktype', 'evertablename', 'everrowkey'] as const),
]);

/** Those whose values may hold secrets, which no message shows. */
const records: ReadonlySet<Name> = new Set([
  ...(['rule', 'key', 'hook', 'hooksecret', 'table', 'row', 'draft', 'draftentry'] as const),
]);

/** Those with messages of the deliverer. */
const queued: ReadonlySet<Name> = new Set(['pending', 'attempt', 'due', 'exhausted']);

const checks = Object.entries({ ...entryChecks, ...numberedChecks }) as (readonly [
  Name,
  CheckEntry,
])[];

/**
 * Folds the log into empty databases with the code that writes, compares every projection with
 * them, and checks what the log does not decide (docs/design/history.md#the-change-log). Each slice
 * reads one state of the data, up to which the copy has the log, so writes may continue, and no
 * state is held between slices. Rejects with `storage_full` if the room is too small.
 */
export async function* verifyData(
  databases: Databases,
  families: readonly LogFamily[],
  room: Room,
): AsyncGenerator<Verification> {
  const scratch = await openScratch(room);
  try {
    const fold = new LogFold(databases, scratch, families);
    const reads = createReads(databases, families);
    const names: readonly Name[] = ['log', ...decided, ...checks.map(([name]) => name)];
    const of = names.reduce((sum, name) => sum + entryCount(databases[name]), 0);
    const turns = eventLoop.turns('verify');
    let checked = 0;
    for (const [name, slices] of passes(databases, reads, fold)) {
      for (const { entries, differences } of untilUnreadable(name, slices)) {
        checked += entries;
        yield { checked, of, differences };
        await turns.next();
      }
    }
  } finally {
    await scratch.close();
  }
}

function* passes(
  source: Databases,
  reads: Reads,
  fold: LogFold,
): Iterable<readonly [Name, Iterable<Slice>]> {
  yield ['log', fold.slices()];
  yield ['log', newestSeq(source)];
  for (const name of decided) yield [name, compared(name, { source, reads, fold })];
  for (const [name, check] of checks) yield [name, checkedEntries(name, source, check)];
}

function entryCount(database: { getStats(): object }): number {
  return (database.getStats() as { entryCount: number }).entryCount;
}

/** A damaged tree ends its own pass only. */
function* untilUnreadable(database: Name, slices: Iterable<Slice>): Iterable<Slice> {
  try {
    yield* slices;
  } catch (error) {
    if (error instanceof Failure && error.code === 'storage_full') throw error;
    yield { entries: 0, differences: [{ database, what: unreadable(error) }] };
  }
}

function unreadable(error: unknown): string {
  return `cannot be read (${errorReason(error)})`;
}

/** Compares the newest seq for quick reads with the end of the log. */
function* newestSeq({ log, meta }: Databases): Iterable<Slice> {
  const [newest = 0] = log.getKeys({ reverse: true, limit: 1 });
  const recorded = meta.get('seq') ?? '0';
  if (recorded === String(newest)) return;
  const what = `has ${recorded} as the newest change, but the log ends with ${newest}`;
  yield { entries: 0, differences: [{ database: 'meta', what }] };
}

/** Compares a database with that of the fold. */
function* compared(
  name: Name,
  {
    source,
    reads,
    fold,
  }: { readonly source: Databases; readonly reads: Reads; readonly fold: LogFold },
): Iterable<Slice> {
  const [stored, folded] = [source[name], fold.copy[name]] as unknown as [AnyDatabase, AnyDatabase];
  let after: Key | undefined;
  for (;;) {
    // What was written since the last slice.
    const differences = [...fold.slices()].flatMap((slice) => slice.differences);
    const expected = expectation(name, reads.of(storedTables).indexBuilds());
    const keys = mergedKeys(keysAfter(stored, after), keysAfter(folded, after));
    let entries = 0;
    for (const key of keys) {
      after = key;
      const values = { stored: valuesOf(name, stored, key), folded: valuesOf(name, folded, key) };
      entries += values.stored.length;
      for (const problem of problems(name, expected(key, values))) {
        differences.push({ database: name, what: shownKey(name, key) + problem });
      }
    }
    if (keys.length === 0 && differences.length === 0) return;
    yield { entries, differences };
  }
}

/** Checks each entry of a database by itself. */
function* checkedEntries(name: Name, source: Databases, check: CheckEntry): Iterable<Slice> {
  const database = source[name] as unknown as AnyDatabase;
  let after: Key | undefined;
  for (;;) {
    const keys = keysAfter(database, after);
    if (keys.length === 0) return;
    after = keys.at(-1);
    const differences = keys.flatMap((key) => {
      let problem: string | undefined;
      try {
        problem = check(source, key, database.get(key) ?? '');
      } catch (error) {
        problem = unreadable(error);
      }
      return problem === undefined
        ? []
        : { database: name, what: `${shownKey(name, key)} ${problem}` };
    });
    yield { entries: keys.length, differences };
  }
}

/** Some keys of a database, in their order. Each call is a new read. */
function keysAfter(database: AnyDatabase, after: Key | undefined): readonly Key[] {
  const start = after === undefined ? {} : { start: after, exclusiveStart: true };
  const keys = [...database.getKeys({ ...start, limit: verifySliceEntries })];
  const [newest] = keys.slice(-1);
  // A damaged key that does not sort after the last one would make the loop endless.
  if (after !== undefined && newest !== undefined && compareKeys(after, newest) >= 0) {
    throw new Error('its keys are out of order');
  }
  return keys;
}

/** The keys of two databases, as far as both have been read. */
function mergedKeys(...read: readonly (readonly Key[])[]): readonly Key[] {
  const cut = read.filter(({ length }) => length === verifySliceEntries);
  const [end] = cut.flatMap((keys) => keys.slice(-1)).toSorted(compareKeys);
  const sorted = read.flat().toSorted(compareKeys);
  return sorted.filter((key, at) => {
    const before = sorted[at - 1];
    if (before !== undefined && compareKeys(before, key) === 0) return false;
    return end === undefined || compareKeys(key, end) <= 0;
  });
}

function compareKeys(one: Key, other: Key): number {
  if (typeof one === 'number' || typeof other === 'number') return Number(one) - Number(other);
  return Buffer.compare(one, other);
}

/** The values of a key, as they are stored and as the fold of the log has them. */
interface Values {
  readonly stored: readonly string[];
  readonly folded: readonly string[];
}

function valuesOf(name: Name, database: AnyDatabase, key: Key): readonly string[] {
  if (severalValued.has(name)) return [...database.getValues(key)];
  const value = database.get(key);
  return value === undefined ? [] : [value];
}

/** The differences of the values of a key, as the ends of sentences that begin with the key. */
function* problems(name: Name, { stored, folded }: Values): Iterable<string> {
  const [missing, surplus] = [without(folded, stored), without(stored, folded)];
  const [value = '', expected = ''] = [...surplus, ...missing];
  if (!severalValued.has(name) && missing.length > 0 && surplus.length > 0) {
    if (isSameJson(value, expected)) return;
    const values = records.has(name) ? '' : `: ${shownText(value)}, not ${shownText(expected)}`;
    yield ` differs from the fold of the log${values}`;
    return;
  }
  const which = (text: string): string => (severalValued.has(name) ? `: ${shownValue(text)}` : '');
  for (const text of missing) yield `${which(text)} is missing`;
  for (const text of surplus) yield `${which(text)} is not in the fold of the log`;
}

function without(values: readonly string[], others: readonly string[]): readonly string[] {
  const known = new Set(others);
  return values.filter((value) => !known.has(value));
}

/** The order of members may differ. */
function isSameJson(text: string, other: string): boolean {
  try {
    return isDeepStrictEqual(parseJson(text), parseJson(other));
  } catch {
    return false;
  }
}

/** Adapts the values of a key to the indexes that are not complete: the fold completes its own. */
type Expect = (key: Key, values: Values) => Values;

function expectation(name: Name, builds: readonly IndexBuild[]): Expect {
  if (name === 'exact' || name === 'wildcard') return (_key, values) => withFormer(values);
  const own = builds.filter(({ index }) => (index === searchIndex) === (name !== 'rowindex'));
  if (own.length === 0) return (_key, values) => values;
  if (name === 'tablecount') {
    const tables = new Set(own.map(({ table }) => table));
    return (key, values) => (tables.has(textOf(key)) ? rowCounts(values) : values);
  }
  if (name !== 'rowindex' && name !== 'rowword') return (_key, values) => values;
  const places = own.map((build) => {
    const { table, index } = build;
    return { build, prefix: index === searchIndex ? keyPrefix(table) : keyPrefix(table, index) };
  });
  return (key, values) => {
    const bytes = Buffer.from(key as Uint8Array);
    const place = places.find(({ prefix }) => prefix.equals(bytes.subarray(0, prefix.length)));
    if (place === undefined) return values;
    if (place.build.phase === 'empty') return { stored: [], folded: [] };
    const rest = bytes.subarray(place.prefix.length);
    const end = name === 'rowindex' ? orderedValueEnd(rest) : rest.indexOf(0) + 1;
    return isMaintained(place.build, rest.toString('latin1', end))
      ? values
      : { ...values, folded: [] };
  };
}

/** Entries of older versions, which did not know `from` and `until`, count until the next edit. */
function withFormer({ stored, folded }: Values): Values {
  const known = new Set(stored);
  return {
    stored,
    folded: folded.map((value) => {
      const former = withoutWaiting(value);
      return !known.has(value) && known.has(former) ? former : value;
    }),
  };
}

/** Without the numbers of words, which an index of words counts. */
function rowCounts({ stored, folded }: Values): Values {
  const rows = (text: string): string => String((JSON.parse(text) as TableCounts).rows);
  return { stored: stored.map(rows), folded: folded.map(rows) };
}

function shownKey(name: Name, key: Key): string {
  if (typeof key === 'number') return `change ${key}`;
  if (queued.has(name)) {
    const n = name === 'due' ? dueOf(key).n : nOf(key);
    return `message ${n} of queue ${queueOf(key)}`;
  }
  if (name !== 'history') return shownText(textOf(key));
  const bytes = Buffer.from(key);
  const end = bytes.length - seqBytes;
  const id = shownText(textOf(bytes.subarray(0, end - 1)));
  return `change ${bytes.readUInt32BE(end)} of ${id}`;
}

/** A text, or its hash in hexadecimal: see keyOf. */
function textOf(key: Key): string {
  const bytes = Buffer.from(key as Uint8Array);
  return bytes.toString(bytes[0] === 0 ? 'hex' : 'utf8');
}

function shownValue(value: string): string {
  const isMark = isSeveralMark('exact', value) || isSeveralMark('wildcard', value);
  return isMark ? 'the mark of several rules' : shownText(value);
}

/** A text of one line without control characters. */
function shownText(text: string): string {
  return text.replaceAll(/[\p{C}\ufffd]+/gu, ' ').trim();
}
