import { type Json, type JsonObject, isJsonObject } from '../values/json/json.ts';

const revertibleFamilies = ['userinterface', 'webhook', 'table', 'record'] as const;

/**
 * The families of records whose changes can be reverted (docs/design/history.md#the-change-log):
 * page rules, hooks, tables, and the rows of tables.
 */
export type RevertibleFamily = (typeof revertibleFamilies)[number];

/**
 * The families of records in the log. `secret` is the secret of a hook; `draft` is a draft, and
 * `draftchange` a change of a record in one (docs/design/drafts.md). The other three have a
 * single row for each record: `event`; `replay`, a request to send messages again; and `purge`,
 * which records the removal of secrets from the log.
 */
export type Family =
  | RevertibleFamily
  | 'key'
  | 'secret'
  | 'draft'
  | 'draftchange'
  | 'event'
  | 'replay'
  | 'purge';

/** Whether the changes of a family can be reverted. */
export function isRevertible(family: Family): family is RevertibleFamily {
  return (revertibleFamilies as readonly Family[]).includes(family);
}

/**
 * The tool through which a key made a change (docs/design/tools.md#history). The client says this
 * about itself: it tells changes apart and grants nothing.
 */
export interface ToolUse {
  /** The name and version of the client: `example-client/1.0`. */
  readonly client: string;
  /** The tool that it called: `userinterface_edit`. */
  readonly tool: string;
  /** The id of the conversation, if the client has one. */
  readonly conversation?: string;
}

/** The author of a change for commit: a key or a command, and the tool that it used, if any. */
export type ChangeAuthor = string | { readonly by: string; readonly via: ToolUse };

/** The kinds of change. */
export const actions = ['insert', 'edit', 'invalidate'] as const;

/** The kind of a change. */
type Action = (typeof actions)[number];

/**
 * One row of the append-only log (docs/design/history.md#the-change-log); all state is a fold of
 * the rows.
 */
export interface Change {
  /** Position in the log: 1, 2, 3 … without gaps. */
  readonly seq: number;
  /** When the transaction was decided, ISO 8601 UTC. */
  readonly dtu_txn: string;
  /** When the row was stored, ISO 8601 UTC. */
  readonly dtu_stored: string;
  /** Id of the key, or name of the command, that wrote it. */
  readonly by: string;
  /** The tool that the key used; undefined for a change without one. */
  readonly via?: ToolUse;
  /** Id of the transaction; rows of one import share it. */
  readonly txn: string;
  readonly family: Family;
  /** Id of the record. */
  readonly id: string;
  readonly action: Action;
  /**
   * For an insert, the fields of the record. For an edit, the changed fields, with null for a
   * removed one. For an invalidate of a revertible record, `{rows: [seq, …]}`: the rows of the
   * record that no longer apply.
   */
  readonly data: JsonObject;
  /** The draft in which alone the row counts; only in the reads of that draft. */
  readonly draft?: string;
}

/** A record with its place in the log. */
export interface Placed {
  readonly seq: number;
  readonly insertedSeq: number;
}

/** A row of `qk=history` (docs/design/history.md#history-rows), newest first in every list. */
export interface HistoryRow {
  readonly seq: number;
  readonly txn: string;
  readonly by: string;
  readonly via?: ToolUse;
  readonly action: Action;
  readonly dtu_stored: string;
  readonly dtu_txn: string;
  readonly data: JsonObject;
  /** When the row was invalidated, ISO 8601 UTC; undefined if it applies. */
  readonly invalidated: string | undefined;
}

/** A change for commit, before it has a place in the log. */
export interface Draft {
  readonly family: Family;
  readonly id: string;
  readonly action: Action;
  readonly data: JsonObject;
}

/** The author of a change by a key or a command, through a tool or without one. */
export function authorVia(by: string, via: ToolUse | undefined): ChangeAuthor {
  return via === undefined ? by : { by, via };
}

/** Merges an edit into fields: null removes a field, and `_unknowns_` is merged name by name. */
export function mergeFields(fields: JsonObject, edit: JsonObject): JsonObject {
  // A Map, because a field may have any name, such as `__proto__`.
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

/** A text without control characters, marks of direction and line breaks. */
export function visibleText(text: string): string {
  return text.replaceAll(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '').trim();
}
