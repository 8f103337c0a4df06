import { isDeepStrictEqual } from 'node:util';
import type { Change, Family } from '../../model/change.ts';
import { hookOfSecret, type HookSecret, type StoredHook } from '../../model/hook.ts';
import type { ApiKey } from '../../model/key.ts';
import type { StoredRule } from '../../model/rule.ts';
import type { Databases } from '../databases.ts';
import { historyKey, historyPrefix, keyOf, seqMax } from '../encoding.ts';
import { foldHook, foldKey, foldRows, foldRule, foldSecret, type Folded } from '../log/fold.ts';
import { indexEntryOf } from '../projections/rule-index.ts';
import { createReads } from '../projections/reads.ts';
import type { Difference, Reads } from '../store.ts';

type Sorted =
  | 'exact'
  | 'wildcard'
  | 'everexact'
  | 'everwildcard'
  | 'hooktype'
  | 'evertablename'
  | 'everrowkey';

/** The databases that are verified. */
export interface VerifiedDatabases {
  readonly databases: Databases;
  readonly reads: Reads;
  /** Whether a key has a value, in a database with several values under a key. */
  readonly holds: (name: Sorted, key: Uint8Array, value: string) => boolean;
}

/**
 * Prepares databases for a verification. Among many values of one key, lmdb finds one only with an
 * encoding that orders them: its own of texts is their UTF-8, as in `encoding: 'string'`.
 */
export function openVerified(databases: Databases): VerifiedDatabases {
  const opened = (name: Sorted) =>
    databases.environment.openDB<string, Uint8Array>(name, {
      encoding: 'ordered-binary',
      keyEncoding: 'binary',
      dupSort: true,
    });
  const [exact, wildcard] = [opened('exact'), opened('wildcard')];
  const [everexact, everwildcard] = [opened('everexact'), opened('everwildcard')];
  const hooktype = opened('hooktype');
  const [evertablename, everrowkey] = [opened('evertablename'), opened('everrowkey')];
  const rules = { exact, wildcard, everexact, everwildcard };
  const sorted = { ...rules, hooktype, evertablename, everrowkey };
  return {
    databases,
    reads: createReads(databases),
    holds: (name, key, value) => sorted[name].doesExist(key, value),
  };
}

/** The fold of the rows of a page rule, with all places that it ever had in the index. */
interface FoldedRule {
  readonly stored: StoredRule | undefined;
  /** Seqs of the rows that do not count → seq of the row that invalidated each. */
  readonly marks: ReadonlyMap<number, number>;
  /** `exact` or `wildcard`, and the key there in hexadecimal. */
  readonly places: ReadonlySet<string>;
}

/** Folds the rows of a page rule one after the other. Throws if one cannot follow. */
export function foldWithPlaces(rows: readonly Change[]): FoldedRule {
  const places = new Set<string>();
  let stored: StoredRule | undefined;
  for (const [index, row] of rows.entries()) {
    stored =
      row.action === 'invalidate'
        ? foldRows(rows.slice(0, index + 1), foldRule).stored
        : foldRule(stored, row);
    if (stored !== undefined) places.add(placeName(indexEntryOf(stored)));
  }
  return { stored, marks: marksOf(foldRows(rows, foldRule)), places };
}

/** A key of `exact` or `wildcard`, as FoldedRule has it. */
export function placeName({ database, key }: { database: string; key: Uint8Array }): string {
  return `${database} ${Buffer.from(key).toString('hex')}`;
}

/** The seqs in the history of a record, oldest first. */
export function recordSeqs({ history }: Databases, prefix: Buffer): readonly number[] {
  const range = { start: historyKey(prefix, 0), end: historyKey(prefix, seqMax) };
  return [...history.getKeys(range)].map(seqOfKey);
}

/** A row of the log. */
export function rowOf({ log }: Databases, seq: number): Change | undefined {
  const text = log.get(seq);
  return text === undefined ? undefined : (JSON.parse(text) as Change);
}

/** The rows of a record in the log, oldest first. */
export function recordRows(databases: Databases, id: string, family: Family): readonly Change[] {
  const rows = recordSeqs(databases, historyPrefix(id)).flatMap(
    (seq) => rowOf(databases, seq) ?? [],
  );
  return rows.filter((row) => row.family === family && row.id === id);
}

/** The seq at the end of a key of `history`. */
function seqOfKey(key: Uint8Array): number {
  return new DataView(key.buffer, key.byteOffset).getUint32(key.length - 4);
}

/** Compares the projections of a page rule with the fold of its rows. */
export function* verifyRule(
  { databases, holds }: VerifiedDatabases,
  id: string,
  rows: readonly Change[],
): Iterable<Difference> {
  let folded: FoldedRule;
  try {
    folded = foldWithPlaces(rows);
  } catch (error) {
    yield cannotFold(id, error);
    return;
  }
  const { stored, marks, places } = folded;
  if (!isText(databases.rule.get(keyOf(id)), stored)) {
    yield { database: 'rule', what: `${id} differs from the fold of its rows` };
  }
  yield* verifyMarks(databases, rows, marks);
  if (stored !== undefined) {
    const { database, key, value } = indexEntryOf(stored);
    if (!holds(database, key, value)) {
      yield { database, what: `${id} is missing at ${stored.rule.origin} ${stored.rule.path}` };
    }
  }
  for (const place of places) {
    const [database = '', key = ''] = place.split(' ');
    const ever = `ever${database === 'exact' ? 'exact' : 'wildcard'}` as const;
    if (!holds(ever, Buffer.from(key, 'hex'), id)) {
      yield { database: ever, what: `${id} is missing at a former place` };
    }
  }
}

/** Seqs of the rows that do not count → seq of the row that invalidated each. */
export function marksOf({
  invalidated,
}: {
  readonly invalidated: ReadonlyMap<number, Change>;
}): ReadonlyMap<number, number> {
  return new Map([...invalidated].map(([seq, by]) => [seq, by.seq] as const));
}

/** Checks the marks of the rows of a record. */
export function* verifyMarks(
  { mark }: Databases,
  rows: readonly Change[],
  marks: ReadonlyMap<number, number>,
): Iterable<Difference> {
  for (const { seq } of rows) {
    const [by, expected] = [mark.get(seq), marks.get(seq)];
    if (by !== (expected === undefined ? undefined : String(expected))) {
      yield { database: 'mark', what: `change ${seq} has a wrong or missing mark` };
    }
  }
}

/** Compares the projections of a hook with the fold of its rows. */
export function* verifyHook(
  { databases, holds }: VerifiedDatabases,
  id: string,
  rows: readonly Change[],
): Iterable<Difference> {
  let folded: Folded<StoredHook>;
  try {
    folded = foldRows(rows, foldHook);
  } catch (error) {
    yield cannotFold(id, error);
    return;
  }
  const { stored } = folded;
  if (!isText(databases.hook.get(keyOf(id)), stored)) {
    yield { database: 'hook', what: `${id} differs from the fold of its rows` };
  }
  yield* verifyMarks(databases, rows, marksOf(folded));
  for (const type of stored?.hook.event ?? []) {
    if (!holds('hooktype', keyOf(type), id)) {
      yield { database: 'hooktype', what: `${id} is missing under the type ${type}` };
    }
  }
}

/** Compares the secret of a hook with the fold of its rows. */
export function* verifySecret(
  { databases: { hooksecret } }: VerifiedDatabases,
  id: string,
  rows: readonly Change[],
): Iterable<Difference> {
  let folded: HookSecret | undefined;
  for (const row of rows) folded = foldSecret(folded, row);
  if (!isText(hooksecret.get(keyOf(hookOfSecret(id))), folded)) {
    yield { database: 'hooksecret', what: `${id} differs from the fold of its rows` };
  }
}

/** The finding that the rows of a record do not follow each other. */
export function cannotFold(id: string, error: unknown): Difference {
  return { database: 'log', what: `the rows of ${id} cannot be folded: ${String(error)}` };
}

/** Compares the projections of a key with the fold of its rows. */
export function* verifyKey(
  { databases: { key, keyhash } }: VerifiedDatabases,
  id: string,
  rows: readonly Change[],
): Iterable<Difference> {
  let folded: ApiKey | undefined;
  try {
    for (const row of rows) folded = foldKey(folded, row);
  } catch (error) {
    yield cannotFold(id, error);
    return;
  }
  if (!isText(key.get(keyOf(id)), folded)) {
    yield { database: 'key', what: `${id} differs from the fold of its rows` };
  }
  if (folded !== undefined && keyhash.get(keyOf(folded.hash)) !== id) {
    yield { database: 'keyhash', what: `${id} is missing under its hash` };
  }
}

/** Whether a JSON text is that of a value, whatever the order of its members. */
export function isText(text: string | undefined, value: unknown): boolean {
  if (text === undefined || value === undefined) return text === value;
  const expected = JSON.stringify(value);
  if (text === expected) return true;
  try {
    return isDeepStrictEqual(JSON.parse(text), JSON.parse(expected));
  } catch {
    return false;
  }
}
