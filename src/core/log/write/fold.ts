import type { JsonObject } from '../../values/json/json.ts';
import { type Change, type Placed, mergeFields } from '../change.ts';

/** Applies one insert or edit to a record. */
export type ApplyChange<S extends Placed> = (before: S | undefined, change: Change) => S;

/** The fold of the rows of one record. */
export interface Folded<S extends Placed> {
  /** The record after its newest row; undefined if no insert of it counts. */
  readonly stored: S | undefined;
  /** Seqs of the rows that do not count, each with the row that invalidated it. */
  readonly invalidated: ReadonlyMap<number, Change>;
}

/**
 * Folds all rows of a record, oldest first (docs/design/history.md#the-change-log): a row that an
 * invalidate names does not count, unless that invalidate is invalidated itself.
 */
export function foldRows<S extends Placed>(
  rows: readonly Change[],
  apply: ApplyChange<S>,
): Folded<S> {
  const invalidated = invalidatedRows(rows);
  let stored: S | undefined;
  for (const row of rows) {
    if (row.action === 'invalidate' || invalidated.has(row.seq)) continue;
    // A record without a valid insert cannot be edited.
    if (row.action === 'insert' || stored !== undefined) stored = apply(stored, row);
  }
  const newest = rows.at(-1);
  return { stored: stored && newest && { ...stored, seq: newest.seq }, invalidated };
}

/** The rows of a record that do not count, by seq: see Folded.invalidated. */
export function invalidatedRows(rows: readonly Change[]): ReadonlyMap<number, Change> {
  const invalidated = new Map<number, Change>();
  for (const row of rows.toReversed()) {
    if (row.action !== 'invalidate' || invalidated.has(row.seq)) continue;
    for (const seq of rowsNamed(row)) invalidated.set(seq, row);
  }
  return invalidated;
}

/** The seqs that an invalidate names. */
export function rowsNamed({ seq, data }: Change): readonly number[] {
  const { rows } = data;
  if (!Array.isArray(rows)) throw new Error(`change ${seq} invalidates no rows`);
  return rows.filter((row) => typeof row === 'number' && row < seq) as number[];
}

/**
 * The fields of a record after an insert, which holds all of them, or an edit, which is merged into
 * them. Throws for a change that cannot follow, or without a text that is `needed`: a bug.
 */
export function recordAfter(
  before: { readonly id: string } | undefined,
  { id, action, data }: Change,
  needed: readonly string[],
): JsonObject {
  if (action === 'insert' && before !== undefined) throw new Error(`${id} is inserted already`);
  if (action !== 'insert' && before === undefined) {
    throw new Error(`${id} cannot be edited, it does not exist`);
  }
  const fields = action === 'insert' ? data : mergeFields(fieldsOf(before), data);
  for (const name of needed) {
    if (typeof fields[name] !== 'string') throw new Error(`${id} has no ${name}`);
  }
  return { id, ...fields };
}

function fieldsOf(record: object | undefined): JsonObject {
  const { id: _id, ...fields } = asJson(record ?? {});
  return fields;
}

function asJson(record: object): JsonObject {
  return record as JsonObject;
}
