import type { JsonObject } from './json.ts';

/** The kinds of record that the log holds. */
export type Family = 'userinterface' | 'key';

/** What was done to a record. */
export type Action = 'insert' | 'edit' | 'invalidate';

/** One row of the append-only log (contract §4.3): all state is a fold of these. */
export interface Change {
  /** Position in the log: 1, 2, 3 … without gaps. */
  readonly seq: number;
  /** When the transaction was decided, ISO 8601 UTC. */
  readonly dtu_txn: string;
  /** When the row was stored, ISO 8601 UTC. */
  readonly dtu_stored: string;
  /** Id of the key that wrote it, or the name of the command that did. */
  readonly by: string;
  /** Id of the transaction; rows of one import share it. */
  readonly txn: string;
  readonly family: Family;
  /** Id of the record. */
  readonly id: string;
  readonly action: Action;
  /**
   * For an insert the record's fields; for an edit what changed, null standing for a removed field.
   */
  readonly data: JsonObject;
}

/** A row of `qk=history` (seed 2.2), newest first in every list. */
export interface HistoryRow {
  readonly seq: number;
  readonly txn: string;
  readonly by: string;
  readonly action: Action;
  readonly dtu_stored: string;
  readonly dtu_txn: string;
  readonly data: JsonObject;
}

/** What a caller of commit wants written: a change before the log gave it a place. */
export interface Draft {
  readonly family: Family;
  readonly id: string;
  readonly action: Action;
  readonly data: JsonObject;
}

/** Merges an edit into the fields before it: null removes, `_unknowns_` is merged name by name. */
export function mergeFields(fields: JsonObject, edit: JsonObject): JsonObject {
  const merged: Record<string, JsonObject[string]> = { ...fields };
  for (const [name, value] of Object.entries(edit)) {
    if (value === null) {
      Reflect.deleteProperty(merged, name);
    } else if (name === '_unknowns_') {
      const unknowns = mergeFields((fields[name] ?? {}) as JsonObject, value as JsonObject);
      if (Object.keys(unknowns).length > 0) merged[name] = unknowns;
      else Reflect.deleteProperty(merged, name);
    } else {
      merged[name] = value;
    }
  }
  return merged;
}
