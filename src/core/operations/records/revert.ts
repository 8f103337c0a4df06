import { createHash } from 'node:crypto';
import type { Change, RevertibleFamily, ToolUse } from '../../log/change.ts';
import type { JsonObject } from '../../values/json/json.ts';
import { foldRows, type Folded } from '../../log/write/fold.ts';
import type { LoggedDraft, Reads, SeqRange } from '../../log/store.ts';
import type { KeyedRequest } from './idempotency.ts';
import { conflictsShownMax, invalidateListedMax } from './limits.ts';
import {
  differingNames,
  fieldVersions,
  type Reader,
  type ShowFields,
  type ShownFamily,
} from './shown.ts';

/** Selects rows of the log: those to which every given condition applies. */
export interface RevertSelection {
  readonly family: RevertibleFamily;
  readonly id: string | undefined;
  readonly txn: string | undefined;
  /** Id of the key, or name of the command, that wrote the row. */
  readonly by: string | undefined;
  readonly seqs: SeqRange;
  /** Ids of records that stay as they are. */
  readonly except?: readonly string[];
  /** The part of the family that the rows have to be in; by default, all of it. */
  readonly within?: JsonObject;
}

/** An invalidate as data, which another thread can run. */
export interface RevertRequest {
  readonly selection: RevertSelection;
  /** The digest of the dry run to carry out; undefined for a dry run. */
  readonly confirm: string | undefined;
  readonly by: string;
  readonly via?: ToolUse | undefined;
  /** The caller that gets the report. */
  readonly reader: Reader;
  /** The vk of the request, with its hashes. */
  readonly request: KeyedRequest | undefined;
  /** The id of the draft that it changes instead of the live state. */
  readonly draft?: string;
}

/** A record with its place in the log, of any family. */
interface FoldedRecord {
  readonly record: object;
  readonly seq: number;
  readonly insertedSeq: number;
}

/** How rows of a family make a record. */
export interface Folding extends ShownFamily {
  fold(before: FoldedRecord | undefined, change: Change): FoldedRecord;
  /** See RecordFamily. */
  isWithin?(reads: Reads, id: string, within: JsonObject): boolean;
  requireRevertible?(reads: Reads, records: readonly RecordRevert[]): void;
  boundRevert?(
    reads: Reads,
    selection: RevertSelection,
    records: readonly RecordRevert[],
  ): readonly RecordRevert[];
  afterRevert?(reads: Reads, records: readonly RecordRevert[]): readonly LoggedDraft[];
}

/** The effect of an invalidate on one record. */
export interface RecordRevert {
  readonly id: string;
  /** Seqs of the rows that it invalidates, in their order. */
  readonly rows: readonly number[];
  /** Later rows that stay. */
  readonly conflicts: readonly Change[];
  readonly becomes: 'gone' | 'restored' | 'changed' | 'same';
  /** The path of a page rule. */
  readonly path: string | undefined;
  /** The record before it; undefined if it does not exist. */
  readonly now: JsonObject | undefined;
  /** The record after it; undefined if it does not exist then. */
  readonly then: JsonObject | undefined;
}

/** The effect of an invalidate, with its digest. */
interface Revert {
  readonly records: readonly RecordRevert[];
  /** Lower-case hex SHA-256, which differs if the effect does. */
  readonly digest: string;
}

/**
 * The effect of invalidating the selected rows (docs/design/history.md#undo). Writes nothing.
 */
export function planRevert(reads: Reads, selection: RevertSelection, folding: Folding): Revert {
  const hash = createHash('sha256');
  const records = [...selectRows(reads, selection, folding)].map(([id, rows]) => {
    const history = reads.rows(selection.family, id);
    hash.update(JSON.stringify([id, rows, history.at(-1)?.seq]));
    const revert = revertOf(reads, { id, rows, history }, folding);
    // A row of a table may have a field of this name that some callers may not see.
    return selection.family === 'userinterface' ? revert : { ...revert, path: undefined };
  });
  const shown = folding.boundRevert?.(reads, selection, records) ?? records;
  return { records: shown, digest: hash.digest('hex') };
}

/** The report of a dry run: counts of everything, and details of the first records. */
export function revertReport({ records, digest }: Revert, show: ShowFields): JsonObject {
  const count = (becomes: RecordRevert['becomes']): number =>
    records.filter((record) => record.becomes === becomes).length;
  const conflicts = records.filter((record) => record.conflicts.length > 0);
  const listed = records.slice(0, invalidateListedMax);
  return {
    done: false,
    records: records.length,
    rows: records.reduce((sum, { rows }) => sum + rows.length, 0),
    gone: count('gone'),
    restored: count('restored'),
    changed: count('changed'),
    ids: listed.map(({ id }) => id),
    changes: listed.map(({ id, rows, becomes, path, ...versions }) => ({
      id,
      ...(path !== undefined && { path }),
      rows: [...rows],
      becomes,
      fields: changedFields(id, versions, show),
    })),
    conflicts: conflicts.slice(0, invalidateListedMax).map(({ id, conflicts: rows }) => ({
      id,
      rows: rows.map(({ seq }) => seq),
      later: rows.slice(-conflictsShownMax).map(({ seq, by, dtu_stored: at, action, data }) => ({
        ...{ seq, by, at, action },
        fields: action === 'invalidate' ? [] : Object.keys(show(id, data)).toSorted(),
      })),
    })),
    conflicting: conflicts.length,
    unlisted: records.length - listed.length,
    digest,
  };
}

/** The fields that a record would have another value of, before and after. */
function changedFields(
  id: string,
  { now, then }: Pick<RecordRevert, 'now' | 'then'>,
  show: ShowFields,
): JsonObject {
  if (now === undefined || then === undefined) return {};
  const versions = { now: show(id, now), then: show(id, then) };
  return fieldVersions(differingNames(versions.now, versions.then), versions);
}

/**
 * The selected rows in force, by record, the records in the order of their rows; with rows that
 * would return into force, because no row of the selection may.
 */
function selectRows(
  reads: Reads,
  { family, id, txn, by, seqs, within, except = [] }: RevertSelection,
  folding: Folding,
): ReadonlyMap<string, readonly number[]> {
  const selected = new Map<string, SelectedRows>();
  const staying = new Set(except);
  // To revert a whole record is to delete it. Reverting an invalidate takes a txn, author or time.
  const isWholeRecord = txn === undefined && by === undefined && seqs.first <= 1;
  for (const row of id === undefined
    ? rowsBetween(reads, seqs)
    : reads.rows(family, id, seqs.last)) {
    if (row.family !== family || row.seq < seqs.first || staying.has(row.id)) continue;
    if (txn !== undefined && row.txn !== txn) continue;
    if (by !== undefined && row.by !== by) continue;
    const isInvalidate = row.action === 'invalidate';
    if (id !== undefined && isWholeRecord && isInvalidate) continue;
    const ofRecord = selected.get(row.id) ?? { inForce: [], others: [], hasInvalidate: false };
    const isInForce = reads.inForce(row.seq);
    (isInForce ? ofRecord.inForce : ofRecord.others).push(row.seq);
    ofRecord.hasInvalidate ||= isInForce && isInvalidate;
    selected.set(row.id, ofRecord);
  }
  const reverted = [...selected]
    .filter(([, { inForce }]) => inForce.length > 0)
    .filter(([one]) => within === undefined || folding.isWithin?.(reads, one, within) !== false)
    .map(([record, rows]) => {
      const all = () => withReturning(reads.rows(family, record), rows, folding);
      return [record, rows.hasInvalidate && rows.others.length > 0 ? all() : rows.inForce] as const;
    });
  return new Map(reverted.toSorted(([, [one = 0]], [, [other = 0]]) => one - other));
}

/** The selected rows of a record. */
interface SelectedRows {
  readonly inForce: number[];
  readonly others: number[];
  /** Whether an invalidate is among those in force. */
  hasInvalidate: boolean;
}

/**
 * The rows in force, and those that would return when an invalidate among them is reverted: a row
 * that was written and invalidated within the selection stays invalidated.
 */
function withReturning(
  history: readonly Change[],
  { inForce, others }: SelectedRows,
  folding: Folding,
): readonly number[] {
  let reverted = new Set(inForce);
  for (;;) {
    const rows = [...reverted].toSorted((one, other) => one - other);
    const { invalidated } = folded(withRevert(history, rows), folding);
    const returning = others.filter((seq) => !invalidated.has(seq));
    if (returning.length === 0) return rows;
    reverted = new Set([...rows, ...returning]);
  }
}

function folded(rows: readonly Change[], folding: Folding): Folded<FoldedRecord> {
  return foldRows<FoldedRecord>(rows, (before, change) => folding.fold(before, change));
}

function* rowsBetween(reads: Reads, { first, last }: SeqRange): Iterable<Change> {
  for (let seq = first; seq <= last; seq += 1) {
    const row = reads.change(seq);
    if (row !== undefined) yield row;
  }
}

function revertOf(
  reads: Reads,
  {
    id,
    rows,
    history,
  }: {
    readonly id: string;
    readonly rows: readonly number[];
    readonly history: readonly Change[];
  },
  folding: Folding,
): RecordRevert {
  const [first = 0] = rows;
  const reverted = new Set(rows);
  const fieldsAfter = (changes: readonly Change[]) =>
    folded(changes, folding).stored?.record as JsonObject | undefined;
  const now = fieldsAfter(history);
  const then = fieldsAfter(withRevert(history, rows));
  return {
    id,
    rows,
    conflicts: history.filter(({ seq }) => seq > first && !reverted.has(seq) && reads.inForce(seq)),
    path: pathOf(now ?? then),
    becomes: becoming(now, then),
    now,
    then,
  };
}

function pathOf(record: JsonObject | undefined): string | undefined {
  return typeof record?.path === 'string' ? record.path : undefined;
}

/** A history with the row that the invalidate would write, as far as a fold reads it. */
function withRevert(history: readonly Change[], rows: readonly number[]): readonly Change[] {
  const newest = history.at(-1);
  if (newest === undefined) return [];
  const data = { rows: [...rows] };
  // In a draft, live rows may be newer than the last one.
  const seq = 1 + history.reduce((most, row) => Math.max(most, row.seq), 0);
  return [...history, { ...newest, seq, action: 'invalidate', data }];
}

function becoming(
  now: JsonObject | undefined,
  then: JsonObject | undefined,
): RecordRevert['becomes'] {
  if (then === undefined) return now === undefined ? 'same' : 'gone';
  if (now === undefined) return 'restored';
  return differingNames(now, then).length === 0 ? 'same' : 'changed';
}
