import type { Change } from '../../core/log/change.ts';
import { recordAfter } from '../../core/log/write/fold.ts';
import { compareNumbers, type ExactNumber } from '../../core/values/json/exact-number.ts';
import { isNumber, type Json, type JsonObject } from '../../core/values/json/json.ts';
import { instantText } from '../../core/values/time.ts';

/** A row of a table: its fields are the properties of the table's schema. */
export interface Row {
  /** A UUIDv7 that the server assigns. */
  readonly id: string;
  /** The name of the table, which never changes. */
  readonly table: string;
  readonly _unknowns_?: JsonObject;
  readonly [field: string]: Json | undefined;
}

/** A row with its place in the log. */
export interface StoredRow {
  readonly row: Row;
  /** Seq of the row's newest change: its version. */
  readonly seq: number;
  readonly insertedSeq: number;
}

/** A value by which rows are found: everything else is indexed as null, and so is no value. */
export type Scalar = null | boolean | number | ExactNumber | string;

/**
 * The value of a field as an index has it. A row without a field `constructor` has none, whatever
 * all objects inherit.
 */
export function scalarOf(value: Json | undefined): Scalar {
  const isScalar = typeof value === 'string' || typeof value === 'boolean' || isNumber(value);
  return isScalar ? value : null;
}

/**
 * The value by which an index and a condition compare a field: of a field with the format date-time
 * it is the instant, so that other offsets and precisions of one instant are one value.
 */
export function comparedValue(value: Json | undefined, isInstant: boolean): Scalar {
  const scalar = scalarOf(value);
  return isInstant && typeof scalar === 'string' ? (instantText(scalar) ?? scalar) : scalar;
}

/** Compares values in the order of an index: null, false, true, numbers, texts by code points. */
export function compareScalars(one: Scalar, other: Scalar): number {
  const [rank, otherRank] = [rankOf(one), rankOf(other)];
  if (rank !== otherRank) return rank - otherRank;
  if (typeof one === 'string' && typeof other === 'string') {
    return Buffer.compare(Buffer.from(one), Buffer.from(other));
  }
  return isNumber(one) && isNumber(other) ? compareNumbers(one, other) : 0;
}

/** Whether two values are one in an index. */
export function sameScalar(one: Scalar, other: Scalar): boolean {
  return one === other || (typeof one !== 'string' && compareScalars(one, other) === 0);
}

const numberRank = 3;

/** The place of a value's type in the order of an index: from 0 for null to 4 for a text. */
export function rankOf(value: Scalar): number {
  if (value === null) return 0;
  if (typeof value === 'boolean') return value ? 2 : 1;
  return typeof value === 'string' ? numberRank + 1 : numberRank;
}

/** A field of a row or an input by a name that a table has chosen: `constructor` is one, too. */
export function fieldOf(fields: JsonObject | Row, name: string): Json | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

/** Applies an insert or edit to a row of a table, as for a page rule. */
export function foldRow(before: StoredRow | undefined, change: Change): StoredRow {
  const row = recordAfter(before?.row, change, ['table']);
  const { seq } = change;
  return { row: row as unknown as Row, seq, insertedSeq: before?.insertedSeq ?? seq };
}
