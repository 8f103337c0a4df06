import { createHash } from 'node:crypto';
import {
  type Change,
  type Family,
  type RevertibleFamily,
  type ToolUse,
  mergeFields,
} from '../../log/change.ts';
import { Failure } from '../../values/failure.ts';
import type { JsonObject } from '../../values/json/json.ts';
import { foldRows, type Folded } from '../../log/write/fold.ts';
import type { LoggedDraft, Reads, SeqRange } from '../../log/store.ts';
import { type Caller, type Scope, hasScope } from '../../values/key.ts';
import { namedAuthor } from '../keys/author-name.ts';
import type { KeyedRequest } from './idempotency.ts';
import { editBetween, fieldsOf } from './placement.ts';
import { conflictsShownMax, invalidateListedMax } from './limits.ts';
import { differingNames, fieldVersions, type Reader, type ShownFamily, shownTo } from './shown.ts';

/** The families with changes that an undo takes back: an undone insert of a key revokes it. */
type RevertedFamily = RevertibleFamily | 'key';

/** Selects rows of the log: those to which every given condition applies. */
export interface RevertSelection {
  readonly families: readonly RevertedFamily[];
  readonly id: string | undefined;
  readonly txn: string | undefined;
  /** Id of the key, or name of the command, that wrote the row. */
  readonly by: string | undefined;
  readonly seqs: SeqRange;
  /** Ids of records that stay as they are. */
  readonly except?: readonly string[];
  /** The part of a family that its rows have to be in; by default, all of it. */
  readonly within?: RevertParts;
}

/** Parts of families, as their forCall names them. */
type RevertParts = Readonly<Partial<Record<RevertedFamily, JsonObject>>>;

/** A caller whose rights decide about an undo, in data that a thread can get. */
export type RevertReader = Reader & Pick<Caller, 'bounds'>;

/** What decides which values of page rules are valid, in data that a thread can get. */
export interface RevertPlacing {
  readonly engines: readonly string[];
  readonly accessNames: readonly string[];
}

/** An invalidate as data, which another thread can run. */
export interface RevertRequest {
  readonly selection: RevertSelection;
  /** The digest of the dry run to carry out; undefined for a dry run. */
  readonly confirm: string | undefined;
  readonly by: string;
  readonly via?: ToolUse | undefined;
  /** The caller that gets the report. */
  readonly reader: RevertReader;
  /** The caller who has to have the right to write all that an undo of several families changes. */
  readonly writer?: RevertReader;
  readonly placing?: RevertPlacing | undefined;
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
  readonly name: RevertedFamily;
  /** The word for one of its records in messages. */
  readonly noun: string;
  readonly scopes: { readonly write: Scope };
  fold(before: FoldedRecord | undefined, change: Change): FoldedRecord;
  /** Whether a row of the log can be reverted; by default, each. */
  isRevertible?(reads: Reads, row: Change): boolean;
  /** See RecordFamily. */
  isWithin?(reads: Reads, id: string, within: JsonObject): boolean;
  requireRevertible?(reads: Reads, records: readonly RecordRevert[]): void;
  requireWriter?(reads: Reads, records: readonly SelectedId[], writer: RevertReader): void;
  boundRevert?(
    reads: Reads,
    selection: PartSelection,
    records: readonly RecordRevert[],
  ): readonly RecordRevert[];
  afterRevert?(reads: Reads, records: readonly RecordRevert[]): readonly LoggedDraft[];
  placeAgain?(reads: Reads, record: JsonObject, placing: RevertPlacing | undefined): JsonObject;
}

/** A selection of rows in one part of a family. */
export type PartSelection = Pick<RevertSelection, 'txn' | 'id'> & {
  readonly within: JsonObject | undefined;
};

/** A record that an undo is about. */
export type SelectedId = Pick<RecordRevert, 'id'>;

/** The effect of an invalidate on one record. */
export interface RecordRevert {
  readonly family: RevertedFamily;
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
  /** The edit that places the fields that are left; without members if they are placed right. */
  readonly placed: JsonObject;
}

/** Rows of a transaction in other families than an invalidate is about: they stay. */
type OtherRows = ReadonlyMap<Family, number>;

/** The effect of an invalidate, with its digest. */
interface Revert {
  readonly records: readonly RecordRevert[];
  readonly others: OtherRows;
  /** Lower-case hex SHA-256, which differs if the effect does. */
  readonly digest: string;
}

/**
 * The effect of invalidating the selected rows (docs/design/history.md#undo). Writes nothing.
 * Throws as requireRevertible, requireWriter and boundRevert of its families do.
 */
export function planRevert(
  reads: Reads,
  { selection, writer, placing }: Pick<RevertRequest, 'selection' | 'writer' | 'placing'>,
  foldings: readonly Folding[],
): Revert {
  const hash = createHash('sha256');
  const { selected, others } = selectRows(reads, selection, foldings);
  const { txn, id: only, within } = selection;
  const partOf = ({ name }: Folding): PartSelection => ({ txn, id: only, within: within?.[name] });
  if (writer !== undefined) {
    // Before anything is folded: a caller without the right is not worth that work.
    for (const folding of foldings) folding.boundRevert?.(reads, partOf(folding), []);
    requireWriter(reads, { selected, foldings, writer });
  }
  const records = selected.map(({ folding, id, rows }) => {
    const history = reads.rows(folding.name, id);
    hash.update(JSON.stringify([id, rows, history.at(-1)?.seq]));
    return revertOf(reads, { id, rows, history, placing }, folding);
  });
  let shown: readonly RecordRevert[] = records;
  for (const folding of foldings) {
    const { name } = folding;
    const own = shown.filter(({ family }) => family === name);
    const bounded = folding.boundRevert?.(reads, partOf(folding), own) ?? own;
    if (bounded !== own) {
      const inBounds = new Map(bounded.map((record) => [record.id, record]));
      shown = shown.map((one) => (one.family === name ? (inBounds.get(one.id) ?? one) : one));
    }
    folding.requireRevertible?.(reads, own);
  }
  return { records: shown, others, digest: hash.digest('hex') };
}

/** Throws `forbidden` for a caller who may not write records that are selected. */
function requireWriter(
  reads: Reads,
  {
    selected,
    foldings,
    writer,
  }: {
    readonly selected: readonly SelectedRecord[];
    readonly foldings: readonly Folding[];
    readonly writer: RevertReader;
  },
): void {
  for (const folding of foldings) {
    const { noun, scopes } = folding;
    const own = selected.filter((one) => one.folding === folding);
    if (folding.requireWriter !== undefined) folding.requireWriter(reads, own, writer);
    else if (own.length > 0 && !hasScope(writer, scopes.write)) {
      throw new Failure(
        'forbidden',
        `The transaction has changed records of the kind ${noun}: to take it back needs the ` +
          `scope ${scopes.write}. Use a key with this scope.`,
        { field: 'txn' },
      );
    }
  }
}

/** The rows that an undo writes: tables come before their rows, and go after them. */
export function revertDrafts(
  reads: Reads,
  records: readonly RecordRevert[],
  foldings: readonly Folding[],
): { readonly reverts: readonly LoggedDraft[]; readonly after: readonly LoggedDraft[] } {
  const stageOf = ({ family, becomes }: RecordRevert): number =>
    family === 'table' ? (becomes === 'gone' ? 2 : 0) : 1;
  const inOrder = records.toSorted((one, other) => stageOf(one) - stageOf(other));
  const isPlaced = ({ placed }: RecordRevert): boolean => Object.keys(placed).length > 0;
  const reverts = inOrder.map((record): LoggedDraft => {
    const { family, id, rows } = record;
    const data = { rows: [...rows], ...(isPlaced(record) && { placed: true }) };
    return { family, id, action: 'invalidate', data };
  });
  const placements = inOrder.filter(isPlaced).map(({ family, id, placed }): LoggedDraft => {
    return { family, id, action: 'edit', data: placed };
  });
  const others = foldings.flatMap((folding) => {
    const own = records.filter(({ family }) => family === folding.name);
    return folding.afterRevert?.(reads, own) ?? [];
  });
  return { reverts, after: [...placements, ...others] };
}

/** The scope that reads the changes of each family; that of a hook has its secret, too. */
export const readScopes: Readonly<Record<Exclude<Family, 'secret'>, Scope>> = {
  userinterface: 'read',
  webhook: 'webhook',
  table: 'admin',
  record: 'record.read',
  key: 'admin',
  draft: 'read',
  draftchange: 'read',
  event: 'verify',
  replay: 'webhook',
  purge: 'admin',
};

/** The part of a caller that decides about an undo. */
export function revertReader({ scopes, bounds }: Caller): RevertReader {
  return { scopes, ...(bounds && { bounds }) };
}

/** The rows of the transaction of a selection that stay; see Revert. */
export function othersOf(
  reads: Reads,
  selection: RevertSelection,
  foldings: readonly Folding[],
): OtherRows {
  return selectRows(reads, selection, foldings).others;
}

/** The rows that stay, by the families that a reader may read; a bound key reads no others. */
export function shownOthers(others: OtherRows, reader: RevertReader): JsonObject[] {
  if (reader.bounds !== undefined) return [];
  return [...others].flatMap(([family, rows]) =>
    family !== 'secret' && hasScope(reader, readScopes[family]) ? [{ family, rows }] : [],
  );
}

/** The report of a dry run: counts of everything, and details of the first records. */
export function revertReport(
  { records, others, digest }: Revert,
  { reads, foldings, reader }: ReportParts,
): JsonObject {
  const shows = new Map(foldings.map((one) => [one.name, shownTo(one, [reads], reader)] as const));
  const show = ({ family, id }: RecordRevert, fields: JsonObject): JsonObject =>
    shows.get(family)?.(id, fields) ?? {};
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
    changes: listed.map((record) => ({
      ...{ family: record.family, id: record.id },
      ...(record.path !== undefined && { path: record.path }),
      rows: [...record.rows],
      becomes: record.becomes,
      fields: changedFields(record, show),
    })),
    conflicts: conflicts.slice(0, invalidateListedMax).map((record) => ({
      id: record.id,
      rows: record.conflicts.map(({ seq }) => seq),
      later: record.conflicts.slice(-conflictsShownMax).map((row) => ({
        ...{ seq: row.seq, by: row.by, ...namedAuthor(reads, row.by, reader) },
        ...{ at: row.dtu_stored, action: row.action },
        fields: row.action === 'invalidate' ? [] : Object.keys(show(record, row.data)).toSorted(),
      })),
    })),
    conflicting: conflicts.length,
    unlisted: records.length - listed.length,
    others: shownOthers(others, reader),
    digest,
  };
}

/** What the report of a dry run reads. */
interface ReportParts {
  readonly reads: Reads;
  readonly foldings: readonly Folding[];
  readonly reader: RevertReader;
}

/** The fields that a record would have another value of, before and after. */
function changedFields(
  record: RecordRevert,
  show: (record: RecordRevert, fields: JsonObject) => JsonObject,
): JsonObject {
  const { now, then } = record;
  if (now === undefined || then === undefined) return {};
  const versions = { now: show(record, now), then: show(record, then) };
  return fieldVersions(differingNames(versions.now, versions.then), versions);
}

/** The rows of a record that an invalidate names. */
interface SelectedRecord {
  readonly folding: Folding;
  readonly id: string;
  readonly rows: readonly number[];
}

/**
 * The selected rows in force, by record, the records in the order of their rows; with rows that
 * would return into force, because no row of the selection may. `others` counts the rows of the
 * same transaction that stay, because no family of the selection has them.
 */
function selectRows(
  reads: Reads,
  selection: RevertSelection,
  foldings: readonly Folding[],
): { readonly selected: readonly SelectedRecord[]; readonly others: OtherRows } {
  const { id, txn, by, seqs, within } = selection;
  const selected = new Map<string, SelectedRows>();
  const others = new Map<Family, number>();
  const staying = new Set(selection.except);
  const byName = new Map<Family, Folding>(foldings.map((one) => [one.name, one]));
  // To revert a whole record is to delete it. Reverting an invalidate takes a txn, author or time.
  const isWholeRecord = txn === undefined && by === undefined && seqs.first <= 1;
  for (const row of candidateRows(reads, selection)) {
    if (row.seq < seqs.first || staying.has(row.id)) continue;
    if (txn !== undefined && row.txn !== txn) continue;
    if (by !== undefined && row.by !== by) continue;
    const folding = byName.get(row.family);
    if (folding === undefined || folding.isRevertible?.(reads, row) === false) {
      if (reads.inForce(row.seq)) others.set(row.family, (others.get(row.family) ?? 0) + 1);
      continue;
    }
    const isInvalidate = row.action === 'invalidate';
    if (id !== undefined && isWholeRecord && isInvalidate) continue;
    const name = `${row.family} ${row.id}`;
    const ofRecord = selected.get(name) ?? emptyRows(folding, row.id);
    const isInForce = reads.inForce(row.seq);
    (isInForce ? ofRecord.inForce : ofRecord.others).push(row.seq);
    ofRecord.hasInvalidate ||= isInForce && isInvalidate;
    selected.set(name, ofRecord);
  }
  const reverted = [...selected.values()]
    .filter(({ inForce }) => inForce.length > 0)
    .filter(({ folding, id: one }) => {
      const part = within?.[folding.name];
      return part === undefined || folding.isWithin?.(reads, one, part) !== false;
    })
    .map((rows): SelectedRecord => {
      const { folding, id: record } = rows;
      const all = () => withReturning(reads.rows(folding.name, record), rows, folding);
      const isAll = rows.hasInvalidate && rows.others.length > 0;
      return { folding, id: record, rows: isAll ? all() : rows.inForce };
    })
    .toSorted(({ rows: [one = 0] }, { rows: [other = 0] }) => one - other);
  return { selected: reverted, others: txn === undefined ? new Map() : others };
}

/** The rows among which a selection chooses: those of its record, or all in its range. */
function candidateRows(reads: Reads, { families, id, seqs }: RevertSelection): Iterable<Change> {
  if (id === undefined) return rowsBetween(reads, seqs);
  return families.flatMap((family) => reads.rows(family, id, seqs.last));
}

function emptyRows(folding: Folding, id: string): SelectedRows {
  return { folding, id, inForce: [], others: [], hasInvalidate: false };
}

/** The selected rows of a record. */
interface SelectedRows {
  readonly folding: Folding;
  readonly id: string;
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
    placing,
  }: {
    readonly id: string;
    readonly rows: readonly number[];
    readonly history: readonly Change[];
    readonly placing: RevertPlacing | undefined;
  },
  folding: Folding,
): RecordRevert {
  const [first = 0] = rows;
  const reverted = new Set(rows);
  const fieldsAfter = (changes: readonly Change[]) =>
    folded(changes, folding).stored?.record as JsonObject | undefined;
  const now = fieldsAfter(history);
  const reverting = withRevert(history, rows);
  const left = fieldsAfter(reverting);
  const then = left && placedAgain(reads, lastWritten(reverting, left, folding), folding, placing);
  return {
    ...{ family: folding.name, id, rows },
    conflicts: history.filter(
      (row, at) =>
        row.seq > first &&
        !reverted.has(row.seq) &&
        !isPlacement(row, history[at - 1]) &&
        reads.inForce(row.seq),
    ),
    // A row of a table may have a field of this name that some callers may not see.
    path: folding.name === 'userinterface' ? pathOf(now ?? then) : undefined,
    becomes: becoming(now, then),
    now,
    then,
    placed: left === undefined || then === undefined ? {} : editBetween(left, then),
  };
}

/** Whether a row places what the invalidate before it has left. */
function isPlacement({ action, txn }: Change, before: Change | undefined): boolean {
  if (action !== 'edit' || before?.action !== 'invalidate') return false;
  return before.data.placed === true && before.txn === txn;
}

/**
 * A record in which the last write in force decides about each field, whether its value was valid
 * then or waited. Otherwise, an old value that waits would return beside the later one.
 * Earlier placements do not count, because they have repeated values of rows that may be reverted.
 */
function lastWritten(history: readonly Change[], left: JsonObject, folding: Folding): JsonObject {
  if (!history.some(({ data }) => data._unknowns_ !== undefined)) return left;
  const { invalidated } = folded(history, folding);
  const rows: Change[] = [];
  let stored: FoldedRecord | undefined;
  for (const [at, row] of history.entries()) {
    if (row.action === 'invalidate') {
      stored = folded(history.slice(0, at + 1), folding).stored;
      continue;
    }
    if (row.action === 'insert' || stored !== undefined) stored = folding.fold(stored, row);
    if (invalidated.has(row.seq) || isPlacement(row, history[at - 1])) continue;
    rows.push(stored === undefined ? row : { ...row, data: wholeWrite(row, stored.record) });
  }
  return (folded(rows, folding).stored?.record ?? left) as JsonObject;
}

/** The data of a row that also removes what its fields had no more after it. */
function wholeWrite({ action, data }: Change, after: object): JsonObject {
  if (action === 'insert') return data;
  const written = fieldsOf(data);
  const { fields, unknowns } = fieldsOf(after);
  const names = [...written.fields.keys(), ...written.unknowns.keys()];
  const ended = names.filter((name) => !unknowns.has(name));
  const removed = ended.filter((name) => !fields.has(name));
  const none = (all: readonly string[]) => all.map((name) => [name, null] as const);
  return {
    ...Object.fromEntries([...written.fields, ...none(removed)]),
    _unknowns_: Object.fromEntries([...written.unknowns, ...none(ended)]),
  };
}

/** A record with its fields placed as a write places them; as it is if that makes no record. */
function placedAgain(
  reads: Reads,
  record: JsonObject,
  folding: Folding,
  placing: RevertPlacing | undefined,
): JsonObject {
  if (folding.placeAgain === undefined) return record;
  try {
    return mergeFields(record, folding.placeAgain(reads, record, placing));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return record;
  }
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
