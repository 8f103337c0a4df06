import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from 'lmdb';
import type { Change } from '../../model/change.ts';
import type { Databases } from '../databases.ts';
import { historyKey, historyPrefix, keyOf, seqMax } from '../encoding.ts';
import { errorReason } from '../folder/data-folder.ts';
import { verifySliceEntries } from '../limits.ts';
import type { Difference, Verification } from '../store.ts';
import {
  deliveryChecks,
  checkMark,
  numberedChecks,
  entryChecks,
  type EntryCheck,
} from './verify-entries.ts';
import { draftChecks } from './verify-drafts.ts';
import { verifyRecord } from './verify-record.ts';
import { openVerified, recordSeqs, type VerifiedDatabases } from './verify-records.ts';
import { rowEntryChecks } from './verify-rows.ts';

/** The findings in the entries that were checked in one turn of the event loop. */
interface Slice {
  readonly entries: number;
  readonly differences: readonly Difference[];
}

/**
 * Compares every projection with the fold of the log, in both directions
 * (docs/design/history.md#the-change-log), slice by slice. Each check reads one state of the data,
 * so writes may continue; no state is held between slices.
 */
export async function* verifyData(databases: Databases): AsyncGenerator<Verification> {
  const of = entryCount(databases);
  let checked = 0;
  for (const [name, slices] of passes(openVerified(databases))) {
    for (const { entries, differences } of untilUnreadable(name, slices)) {
      checked += entries;
      yield { checked, of, differences };
      await nextTurn();
    }
  }
}

function* passes(verified: VerifiedDatabases): Iterable<readonly [string, Iterable<Slice>]> {
  const { databases } = verified;
  yield ['log', verifyLog(databases)];
  yield ['history', verifyRecords(verified)];
  yield ['mark', verifyEntries('mark', databases.mark, (seq) => checkMark(databases, seq))];
  for (const [name, check] of numbered) {
    yield [name, verifyEntries(name, databases[name], (seq) => check(databases, seq))];
  }
  for (const [name, check] of strays) {
    const checkEntry = (key: Uint8Array, value: string) => check(databases, key, value);
    yield [name, verifyEntries(name, databases[name], checkEntry)];
  }
  for (const [name, check] of ofRows) {
    const checkEntry = (key: Uint8Array, value: string) => check(verified, key, value);
    yield [name, verifyEntries(name, databases[name], checkEntry)];
  }
}

type Checks<T> = readonly (readonly [keyof T, T[keyof T]])[];

const strays = [
  ...Object.entries(entryChecks),
  ...Object.entries(deliveryChecks),
  ...Object.entries(draftChecks),
] as Checks<
  Record<
    keyof typeof entryChecks | keyof typeof deliveryChecks | keyof typeof draftChecks,
    EntryCheck
  >
>;
const ofRows = Object.entries(rowEntryChecks) as Checks<typeof rowEntryChecks>;
const numbered = Object.entries(numberedChecks) as Checks<typeof numberedChecks>;

/** The databases with several values under a key. */
const sorted: ReadonlySet<string> = new Set([
  'exact',
  'wildcard',
  'everexact',
  'everwildcard',
  'hooktype',
  'evertablename',
  'everrowkey',
]);

function entryCount(databases: Databases): number {
  const { log, history, mark } = databases;
  const others = [...numbered, ...strays, ...ofRows].map(([name]) => databases[name]);
  return [log, history, mark, ...others].reduce(
    (sum, database) => sum + (database.getStats() as { entryCount: number }).entryCount,
    0,
  );
}

/** A damaged tree ends its own pass only. */
function* untilUnreadable(database: string, slices: Iterable<Slice>): Iterable<Slice> {
  try {
    yield* slices;
  } catch (error) {
    yield {
      entries: 0,
      differences: [{ database, what: `cannot be read (${errorReason(error)})` }],
    };
  }
}

/** Checks each entry of a database by itself. */
function* verifyEntries<K extends number | Uint8Array>(
  name: string,
  database: Database<string, K>,
  check: (key: K, value: string) => string | undefined,
): Iterable<Slice> {
  for (const keys of keySlices(database)) {
    const differences: Difference[] = [];
    let entries = 0;
    for (const key of keys) {
      const shown = typeof key === 'number' ? `change ${key}` : shownKey(key);
      const values = sorted.has(name) ? database.getValues(key) : [database.get(key) ?? ''];
      for (const value of values) {
        entries += 1;
        const what = orUnreadable(() => check(key, value));
        if (what !== undefined) differences.push({ database: name, what: `${shown} ${what}` });
      }
    }
    yield { entries, differences };
  }
}

/** The position of verifyLog in the log. */
interface Position {
  newest: number;
  storedAt: string;
  txn: string;
  /** The last seq of that transaction; undefined if unknown. */
  txnLast: number | undefined;
}

/**
 * Checks that the log has no gap, that its times never go back, and that its transactions are
 * indexed correctly.
 */
function* verifyLog(databases: Databases): Iterable<Slice> {
  const position: Position = { newest: 0, storedAt: '', txn: '', txnLast: undefined };
  for (const seqs of keySlices(databases.log)) {
    const differences = seqs.flatMap((seq) => [...verifyRow(databases, seq, position)]);
    yield { entries: seqs.length, differences };
  }
  const { newest, txn, txnLast } = position;
  const differences = [...verifyNewest(databases)];
  if (txnLast !== undefined && txnLast > newest) {
    const what = `${txn} ends with change ${txnLast}, which the log does not have`;
    differences.push({ database: 'txn', what });
  }
  yield { entries: 0, differences };
}

function* verifyNewest({ log, meta }: Databases): Iterable<Difference> {
  const [newest = 0] = log.getKeys({ reverse: true, limit: 1 });
  const recorded = meta.get('seq') ?? '0';
  if (recorded === String(newest)) return;
  yield {
    database: 'meta',
    what: `has ${recorded} as the newest change, but the log ends with ${newest}`,
  };
}

function* verifyRow(
  { log, history, txn }: Databases,
  seq: number,
  position: Position,
): Iterable<Difference> {
  const { newest, storedAt, txnLast } = position;
  position.newest = seq;
  if (seq !== newest + 1) {
    yield { database: 'log', what: `change ${newest + 1} is missing before ${seq}` };
  }
  const row = changeOf(log.get(seq));
  if (row?.seq !== seq) {
    yield { database: 'log', what: `change ${seq} cannot be read, or has another seq` };
    return;
  }
  if (row.dtu_stored < storedAt) {
    yield { database: 'log', what: `change ${seq} is older than the one before it` };
  }
  position.storedAt = row.dtu_stored;
  if (!history.doesExist(historyKey(historyPrefix(row.id), seq))) {
    yield { database: 'history', what: `change ${seq} is not in the history of ${row.id}` };
  }
  const isInside = txnLast === undefined ? row.txn === position.txn : seq <= txnLast;
  if (isInside && row.txn === position.txn) return;
  const [first, last] = txn.get(keyOf(row.txn))?.split(' ').map(Number) ?? [];
  const isPlaced = !isInside && first === seq && last !== undefined && last >= seq;
  position.txn = row.txn;
  position.txnLast = isPlaced ? last : undefined;
  if (isPlaced) return;
  yield {
    database: 'txn',
    what: `${row.txn}, the transaction of change ${seq}, has wrong first or last seqs`,
  };
}

/** Checks the records one after the other: a seek for each. */
function* verifyRecords(verified: VerifiedDatabases): Iterable<Slice> {
  const { history } = verified.databases;
  let after: Uint8Array | undefined;
  for (;;) {
    let entries = 0;
    const differences: Difference[] = [];
    while (entries < verifySliceEntries) {
      const start = after === undefined ? {} : { start: after, exclusiveStart: true };
      const [key] = history.getKeys({ ...start, limit: 1 });
      if (key === undefined) break;
      requireAfter(after, key);
      const prefix = Buffer.from(key.subarray(0, key.length - seqBytes));
      const seqs = recordSeqs(verified.databases, prefix);
      const what = orUnreadable(() => {
        differences.push(...verifyRecord(verified, { prefix, seqs }));
        return undefined;
      });
      if (what !== undefined) differences.push({ database: 'log', what });
      entries += seqs.length;
      after = historyKey(prefix, seqMax);
    }
    if (entries === 0) return;
    yield { entries, differences };
  }
}

const seqBytes = 4;

/** The keys of a database, some at a time; each group is a new read. */
function* keySlices<K extends number | Uint8Array>(
  database: Database<string, K>,
): Iterable<readonly K[]> {
  let last: K | undefined;
  for (;;) {
    const start = last === undefined ? {} : { start: last, exclusiveStart: true };
    const keys = [...database.getKeys({ ...start, limit: verifySliceEntries })];
    const newest = keys.at(-1);
    if (newest === undefined) return;
    requireAfter(last, newest);
    last = newest;
    yield keys;
  }
}

/** Throws if a damaged key does not sort after the last one: the loop would never end. */
function requireAfter<K extends number | Uint8Array>(last: K | undefined, key: K): void {
  if (last === undefined) return;
  const isAfter =
    typeof last === 'number' || typeof key === 'number'
      ? last < key
      : Buffer.compare(last, key) < 0;
  if (!isAfter) throw new Error('its keys are out of order');
}

function changeOf(text: string | undefined): Change | undefined {
  try {
    return JSON.parse(text ?? '') as Change;
  } catch {
    return undefined;
  }
}

/** Runs a check; returns a description of the problem if it cannot read the data. */
function orUnreadable(check: () => string | undefined): string | undefined {
  try {
    return check();
  } catch (error) {
    return `cannot be read (${errorReason(error)})`;
  }
}

/** A readable form of a key: its text, or its hash in hexadecimal. */
function shownKey(key: Uint8Array): string {
  const bytes = Buffer.from(key);
  return bytes[0] === 0 ? bytes.toString('hex') : bytes.toString().replaceAll('\0', ' ');
}
