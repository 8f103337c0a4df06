import type { Json, JsonObject } from '../../core/values/json/json.ts';

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
export type Scalar = null | boolean | number | string;

/**
 * The value of a field as an index has it. A row without a field `constructor` has none, whatever
 * all objects inherit.
 */
export function scalarOf(value: Json | undefined): Scalar {
  const isScalar =
    typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  return isScalar ? value : null;
}

/** A field of a row or an input by a name that a table has chosen: `constructor` is one, too. */
export function fieldOf(fields: JsonObject | Row, name: string): Json | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}
