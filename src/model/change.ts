import { isJsonObject, type Json, type JsonObject } from './json.ts';

/** The kinds of record whose changes can be taken back (docs/design/history.md#the-change-log). */
export type RevertibleFamily = 'userinterface' | 'webhook';

/**
 * The kinds of record that the log holds: `secret` is that of a hook; `event`, `replay`, which asks
 * for messages to be sent again, and `purge`, which says what was taken out of the log, have a row
 * and nothing else.
 */
export type Family = RevertibleFamily | 'key' | 'secret' | 'event' | 'replay' | 'purge';

/** What can be done to a record. */
export const actions = ['insert', 'edit', 'invalidate'] as const;

/** What was done to a record. */
type Action = (typeof actions)[number];

/**
 * One row of the append-only log (docs/design/history.md#the-change-log): all state is a fold of
 * these.
 */
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
   * For an insert the record's fields; for an edit what changed, null standing for a removed field;
   * for an invalidate of a page rule or a hook `{rows: [seq, …]}`, the rows of its record that do
   * not count any more.
   */
  readonly data: JsonObject;
}

/** A row of `qk=history` (docs/design/history.md#history-rows), newest first in every list. */
export interface HistoryRow {
  readonly seq: number;
  readonly txn: string;
  readonly by: string;
  readonly action: Action;
  readonly dtu_stored: string;
  readonly dtu_txn: string;
  readonly data: JsonObject;
  /** When the row was invalidated, ISO 8601 UTC; undefined for one that counts. */
  readonly invalidated: string | undefined;
}

/** What a caller of commit wants written: a change before the log gave it a place. */
export interface Draft {
  readonly family: Family;
  readonly id: string;
  readonly action: Action;
  readonly data: JsonObject;
}

/**
 * Merges an edit into the fields before it: null removes, `_unknowns_` is merged name by name.
 */
export function mergeFields(fields: JsonObject, edit: JsonObject): JsonObject {
  // A Map, for a field may have any name, `__proto__` too.
  const merged = new Map(Object.entries(fields));
  for (const [name, value] of Object.entries(edit)) {
    const next = name === '_unknowns_' ? mergeUnknowns(merged.get(name), value) : value;
    if (next === null) merged.delete(name);
    else merged.set(name, next);
  }
  return Object.fromEntries(merged);
}

function mergeUnknowns(before: Json | undefined, edit: Json): Json {
  if (!isJsonObject(edit)) return edit;
  const unknowns = mergeFields(isJsonObject(before) ? before : {}, edit);
  return Object.keys(unknowns).length > 0 ? unknowns : null;
}
