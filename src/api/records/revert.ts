import { createHash } from 'node:crypto';
import type { Change, RevertibleFamily } from '../../model/change.ts';
import { isJsonObject, sameJson, type Json, type JsonObject } from '../../model/json.ts';
import { invalidateListedMax, invalidateShownCharactersMax } from '../rules/limits.ts';
import { foldRecord } from '../../store/log/fold.ts';
import type { Reads, SeqRange } from '../../store/store.ts';

/** Which rows of a kind of record are to be taken out: those for which all that is given holds. */
export interface RevertSelection {
  readonly family: RevertibleFamily;
  readonly id: string | undefined;
  readonly txn: string | undefined;
  /** Id of the key, or name of the command, that wrote the row. */
  readonly by: string | undefined;
  /** Where in the log to look. */
  readonly seqs: SeqRange;
}

/** What is to become of one record. */
export interface RecordRevert {
  readonly id: string;
  /** Seqs of the rows that are taken out, in their order. */
  readonly rows: readonly number[];
  /** Seqs of rows that came after the first of those and stay. */
  readonly conflicts: readonly number[];
  readonly becomes: 'gone' | 'restored' | 'changed' | 'same';
  /** The fields that change, each as it is now and as it would be. */
  readonly fields: JsonObject;
}

/** All that an invalidate would do, with a digest of it. */
interface Revert {
  readonly records: readonly RecordRevert[];
  /** Lower-case hex SHA-256: another one as soon as anything of it would come out otherwise. */
  readonly digest: string;
}

/**
 * Works out what invalidating the selected rows would do, and does nothing
 * (docs/design/history.md#undo).
 */
export function planRevert(reads: Reads, selection: RevertSelection): Revert {
  const hash = createHash('sha256');
  const records = [...selectRows(reads, selection)].map(([id, rows]) => {
    const history = reads.rows(selection.family, id);
    hash.update(JSON.stringify([id, rows, history.at(-1)?.seq]));
    return revertOf(reads, { family: selection.family, id, rows, history });
  });
  return { records, digest: hash.digest('hex') };
}

/** The report of a dry run, as JSON: counts of everything, and the first records one by one. */
export function revertReport({ records, digest }: Revert): JsonObject {
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
    changes: listed.map(({ id, rows, becomes, fields }) => ({
      id,
      rows: [...rows],
      becomes,
      fields,
    })),
    conflicts: conflicts.slice(0, invalidateListedMax).map(({ id, conflicts: rows }) => ({
      id,
      rows: [...rows],
    })),
    conflicting: conflicts.length,
    unlisted: records.length - listed.length,
    digest,
  };
}

/**
 * Rows in force that the selection is about, by record, the records in the order of their rows; and
 * with them those that would come back into force, for no row of the selection is to count.
 */
function selectRows(
  reads: Reads,
  { family, id, txn, by, seqs }: RevertSelection,
): ReadonlyMap<string, readonly number[]> {
  const selected = new Map<string, Selected>();
  // To revert a record is to end it; to take back an invalidate takes its txn, writer or time.
  const isWholeRecord = txn === undefined && by === undefined && seqs.first <= 1;
  for (const row of id === undefined
    ? rowsBetween(reads, seqs)
    : reads.rows(family, id, seqs.last)) {
    if (row.family !== family || row.seq < seqs.first) continue;
    if (txn !== undefined && row.txn !== txn) continue;
    if (by !== undefined && row.by !== by) continue;
    const isInvalidate = row.action === 'invalidate';
    if (id !== undefined && isWholeRecord && isInvalidate) continue;
    const ofRecord = selected.get(row.id) ?? { counting: [], others: [], takesBack: false };
    const counts = reads.inForce(row.seq);
    (counts ? ofRecord.counting : ofRecord.others).push(row.seq);
    ofRecord.takesBack ||= counts && isInvalidate;
    selected.set(row.id, ofRecord);
  }
  const taken = [...selected]
    .filter(([, { counting }]) => counting.length > 0)
    .map(([record, rows]) => [record, withReturning(reads, [family, record], rows)] as const);
  return new Map(taken.toSorted(([, [one = 0]], [, [other = 0]]) => one - other));
}

/** The rows of a record that a selection is about. */
interface Selected {
  readonly counting: number[];
  /** Those that are out of force. */
  readonly others: number[];
  /** Whether an invalidate is among those in force. */
  takesBack: boolean;
}

/**
 * What was written and taken back within a selection must not return when the taking back is
 * taken back.
 */
function withReturning(
  reads: Reads,
  [family, id]: readonly [RevertibleFamily, string],
  { counting, others, takesBack }: Selected,
): readonly number[] {
  if (!takesBack || others.length === 0) return counting;
  const history = reads.rows(family, id);
  let taken = new Set(counting);
  for (;;) {
    const rows = [...taken].toSorted((one, other) => one - other);
    const { invalidated } = foldRecord(family, withRevert(history, rows));
    const returning = others.filter((seq) => !invalidated.has(seq));
    if (returning.length === 0) return rows;
    taken = new Set([...rows, ...returning]);
  }
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
    family,
    id,
    rows,
    history,
  }: {
    readonly family: RevertibleFamily;
    readonly id: string;
    readonly rows: readonly number[];
    readonly history: readonly Change[];
  },
): RecordRevert {
  const [first = 0] = rows;
  const taken = new Set(rows);
  const now = currentRecord(reads, family, id);
  const then = foldRecord(family, withRevert(history, rows)).record;
  return {
    id,
    rows,
    conflicts: history
      .map(({ seq }) => seq)
      .filter((seq) => seq > first && !taken.has(seq) && reads.inForce(seq)),
    becomes: becoming(now, then),
    fields: fieldChanges(now, then),
  };
}

function currentRecord(reads: Reads, family: RevertibleFamily, id: string): JsonObject | undefined {
  const record = family === 'webhook' ? reads.hook(id)?.hook : reads.rule(id)?.rule;
  return record as unknown as JsonObject | undefined;
}

/** A history with the row that would be written, as far as the fold looks at it. */
function withRevert(history: readonly Change[], rows: readonly number[]): readonly Change[] {
  const newest = history.at(-1);
  if (newest === undefined) return [];
  const data = { rows: [...rows] };
  return [...history, { ...newest, seq: newest.seq + 1, action: 'invalidate', data }];
}

function becoming(
  now: JsonObject | undefined,
  then: JsonObject | undefined,
): RecordRevert['becomes'] {
  if (then === undefined) return now === undefined ? 'same' : 'gone';
  if (now === undefined) return 'restored';
  return Object.keys(fieldChanges(now, then)).length === 0 ? 'same' : 'changed';
}

function fieldChanges(before: JsonObject | undefined, after: JsonObject | undefined): JsonObject {
  if (after === undefined || before === undefined) return {};
  return Object.fromEntries(
    [...new Set([...Object.keys(before), ...Object.keys(after)])]
      .map((name) => [name, before[name] ?? null, after[name] ?? null] as const)
      .filter(([, one, other]) => !sameJson(one, other))
      .map(([name, one, other]) => [name, { now: shortened(one), then: shortened(other) }]),
  );
}

/** Long values are told by their beginning: as_of shows them whole. */
function shortened(value: Json): Json {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= invalidateShownCharactersMax) return value;
  const start = text.slice(0, invalidateShownCharactersMax).toWellFormed();
  return `${start}… (${text.length} characters${isJsonObject(value) ? ' of JSON' : ''})`;
}
