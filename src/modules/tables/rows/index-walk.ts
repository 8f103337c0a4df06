import type { Reads } from '../../../core/log/store.ts';
import type { IndexRange, RowStep } from '../log/reads.ts';
import type { RecordStep, StoredRecord } from '../../../core/operations/records/family.ts';
import { examinedRecords } from '../../../core/operations/records/list.ts';
import { Failure } from '../../../core/values/failure.ts';
import {
  type Row,
  type Scalar,
  type StoredRow,
  compareScalars,
  comparedValue,
  sameScalar,
} from '../row.ts';
import { isInstant } from '../table.ts';
import type { RowCondition } from './row-conditions.ts';
import { storedTables } from '../log/family.ts';

/** Rows of each condition that are counted to find the one with the fewest. */
const comparedRowsMax = 2_000;

/** Rows that a list reads and sorts at once, where a condition has no more in the whole table. */
export const sortedRowsMax = 1_000;

/** The field that sorts the list, by its index. */
export interface SortOrder {
  readonly field: string;
  readonly descending: boolean;
}

/**
 * The conditions of a list that an index can answer, and the cursor after which the list continues.
 */
interface Selection {
  readonly conditions: readonly RowCondition[];
  readonly order: SortOrder | undefined;
  readonly cursor: string;
}

/** The index that a list walks. */
type WalkedIndex = Pick<RowCondition, 'field' | 'ranges'>;

/**
 * The rows of a table that may meet conditions, in an order; the caller checks the conditions. A
 * cursor begins with the field and number of the range. Throws `invalid` for another cursor.
 */
export function* walkIndexes(
  reads: Reads,
  table: string,
  { conditions, order, cursor }: Selection,
): Iterable<RecordStep<Row>> {
  const sorted: WalkedIndex | undefined =
    conditions.find(({ field }) => field === order?.field) ??
    (order && { field: order.field, ranges: [{ field: order.field }] });
  const { field, ranges: unordered } = sorted ?? walkedCondition(reads, table, conditions, cursor);
  const descending = order?.descending === true;
  const ranges = inOrder(unordered, descending);
  const { at: start, place } = parsedCursor(field, cursor);
  const few = sorted && fewRows(reads, table, conditions, sorted);
  if (few !== undefined) {
    const definition = reads.of(storedTables).table(table)?.table ?? {};
    const asInstant = isInstant(definition, field);
    const whole = { field, descending, after: place };
    const rows = [...few.values()].map(({ record }) => record);
    for (const { id, cursor: next } of reads.of(storedTables).placesInIndex(table, whole, rows)) {
      const found = few.get(id);
      if (found === undefined) continue;
      const at = rangeOf(ranges, comparedValue(found.record[field], asInstant));
      yield { ...found.step, cursor: cursorOf(field, at, next) };
    }
    return;
  }
  for (const [at, range] of ranges.entries()) {
    if (at < start) continue;
    const after = at === start ? place : undefined;
    for (const step of reads.of(storedTables).rowsByIndex(table, { ...range, after })) {
      yield { ...storedRow(reads, step.id), cursor: cursorOf(field, at, step.cursor) };
    }
  }
}

/**
 * The condition whose index has the fewest rows. The next pages use the index of the first one,
 * which their cursor names. Throws `invalid` for another cursor.
 */
function walkedCondition(
  reads: Reads,
  table: string,
  conditions: readonly RowCondition[],
  cursor: string,
): RowCondition {
  const [first, ...others] = conditions;
  const used = conditions.find(({ field }) => cursor.startsWith(`${markOf(field)}:`));
  if (first === undefined || (cursor !== '' && used === undefined)) throw unusableCursor();
  if (used !== undefined || others.length === 0) return used ?? first;
  const counted = conditions.map((condition) => {
    return { condition, rows: countOf(reads, table, condition, comparedRowsMax) };
  });
  return counted.reduce((best, one) => (one.rows < best.rows ? one : best)).condition;
}

/**
 * The rows of another condition than that of the order, if it has few and the order has more: the
 * list reads and sorts these. Otherwise it would read rows in their order until enough of them meet
 * the condition, which may be all rows of the table.
 */
function fewRows(
  reads: Reads,
  table: string,
  conditions: readonly RowCondition[],
  sorted: WalkedIndex,
): ReadonlyMap<string, FoundRow> | undefined {
  const limit = sortedRowsMax + 1;
  let [best, fewest]: [RowCondition | undefined, number] = [undefined, limit];
  for (const condition of conditions) {
    if (condition.field === sorted.field) continue;
    const rows = countOf(reads, table, condition, fewest);
    if (rows < fewest) [best, fewest] = [condition, rows];
  }
  if (best === undefined || countOf(reads, table, sorted, fewest + 1) <= fewest) return undefined;
  const found = new Map<string, FoundRow>();
  let examined = 0;
  for (const range of best.ranges) {
    for (const { id } of reads.of(storedTables).rowsByIndex(table, range)) {
      const step = storedRow(reads, id);
      if (step.stored !== undefined) found.set(id, { step, record: step.stored.record });
      examined += examinedRecords(step.size);
      // A few long rows are as much work as many short ones.
      if (examined > sortedRowsMax) return undefined;
    }
  }
  return found;
}

/** A row that a condition has found. */
interface FoundRow {
  readonly step: RecordStep<Row>;
  readonly record: Row;
}

/** The rows in the ranges of an index, counted up to a limit for all of them together. */
function countOf(reads: Reads, table: string, { ranges }: WalkedIndex, limit: number): number {
  let rows = 0;
  for (const range of ranges) {
    if (rows >= limit) return limit;
    rows += reads.of(storedTables).countByIndex(table, range, limit - rows);
  }
  return rows;
}

/** Ranges of single values in the order of the list. */
function inOrder(ranges: readonly IndexRange[], descending: boolean): readonly IndexRange[] {
  const sorted = ranges.toSorted((one, other) => {
    return compareScalars(one.from?.value ?? null, other.from?.value ?? null);
  });
  return (descending ? sorted.toReversed() : sorted).map((range) => ({ ...range, descending }));
}

/** The number of the range that a value is in: several ranges have one value each. */
function rangeOf(ranges: readonly IndexRange[], value: Scalar): number {
  return Math.max(
    0,
    ranges.findIndex(({ from }) => from !== undefined && sameScalar(from.value, value)),
  );
}

function cursorOf(field: string, at: number, place: string): string {
  return `${markOf(field)}:${at}:${place}`;
}

/** The number of a range and the place in it. Throws `invalid` for the cursor of another index. */
function parsedCursor(
  field: string,
  cursor: string,
): { readonly at: number; readonly place: string | undefined } {
  if (cursor === '') return { at: 0, place: undefined };
  const [mark, number = '', place] = cursor.split(':', 3);
  const at = Number(number || NaN);
  if (mark !== markOf(field) || place === undefined || !Number.isInteger(at) || at < 0) {
    throw unusableCursor();
  }
  return { at, place };
}

/** The name of a field in a cursor, without a colon. */
function markOf(field: string): string {
  return Buffer.from(field).toString('base64url');
}

/** The failure for a cursor that is not the `next` of a list with the same conditions and order. */
export function unusableCursor(): Failure {
  const message = 'after has to be the `next` of an earlier answer, with the same where and sort.';
  return new Failure('invalid', message, { field: 'after' });
}

/** A stored row as the operations of all families have records. */
export function rowRecord({ row, ...place }: StoredRow): StoredRecord<Row> {
  return { record: row, ...place };
}

/** As rowRecord; undefined for no row. */
export function rowRecordOf(stored: StoredRow | undefined): StoredRecord<Row> | undefined {
  return stored && rowRecord(stored);
}

/** The steps of an iteration over rows. */
export function* rowSteps(walked: Iterable<RowStep>): Iterable<RecordStep<Row>> {
  for (const { stored, ...step } of walked) yield { ...step, stored: rowRecordOf(stored) };
}

/** A step with the current row of an id. */
export function storedRow(reads: Pick<Reads, 'of'>, id: string): RecordStep<Row> {
  const { stored, size } = reads.of(storedTables).rowStep(id);
  return { id, stored: rowRecordOf(stored), size };
}
