import type { Change, RevertibleFamily } from '../../model/change.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Scope } from '../../model/key.ts';
import type { Problem } from '../../model/failure.ts';
import type { LoggedDraft, Reads, Store } from '../../store/store.ts';
import type { Call } from '../operation.ts';
import type { FieldWrite } from './placement.ts';
import type { RevertRequest, RevertResult } from './revert.ts';
import type { RecordSchema } from './schema.ts';

/** The fields of a record: its id, its `_unknowns_`, and those of its family. */
export interface RecordFields {
  readonly id: string;
  readonly _unknowns_?: JsonObject;
}

/** A record with its place in the log. */
export interface StoredRecord<R> {
  readonly record: R;
  /** Seq of its newest change: its version. */
  readonly seq: number;
  readonly insertedSeq: number;
}

/** A step of an iteration over the records of a family. */
export interface RecordStep<R> {
  readonly id: string;
  /** Undefined for an id that has no record of the family at that time. */
  readonly stored: StoredRecord<R> | undefined;
  /** The amount of stored data that the step read, in characters or bytes. */
  readonly size: number;
}

/** The parts that the operations of every record family need. */
export interface RecordParts {
  readonly store: Store;
  readonly newId: () => string;
  /** Runs a large invalidate in another thread. Rejects as runRevert does. */
  readonly revertInThread: (request: RevertRequest) => Promise<RevertResult>;
}

/** Replaces what a caller may not see in fields that a record had, or that a row wrote. */
export type MaskFields = (id: string, fields: JsonObject) => JsonObject;

/** A write that is done. */
interface DoneWrite<R> {
  readonly stored: StoredRecord<R>;
  /** The names of the fields that the caller sent. */
  readonly names: readonly string[];
  readonly call: Call;
}

/**
 * The description of a record family (docs/design/records.md#one-description-a-family): all that
 * distinguishes its operations from those of other families. `Parts` is what its operations need to
 * run, `R` the type of its records.
 */
export interface RecordFamily<Parts extends RecordParts, R extends RecordFields> {
  /** Its name in the log and in the names of its operations. */
  readonly name: RevertibleFamily;
  /** The word for one of its records in messages and documents. */
  readonly noun: string;
  /** The command of the command line for its records. */
  readonly command: string;
  readonly scopes: { readonly read: Scope; readonly write: Scope };
  readonly schema: RecordSchema;
  /** Sentences for the documents, where the general ones do not say all. */
  readonly summaries?: Readonly<Partial<Record<RecordOperation, string>>>;

  /** The current record; undefined if there is none. */
  find(reads: Reads, id: string): StoredRecord<R> | undefined;
  /** The record as it was right after a change of the log. */
  findAt(reads: Reads, id: string, seq: number): StoredRecord<R> | undefined;
  /** The current records in the order of their ids, after an id. */
  after(reads: Reads, id: string): Iterable<RecordStep<R>>;
  /** The records at a seq, likewise. A list without it takes no `as_of`. */
  afterAt?(reads: Reads, id: string, seq: number): Iterable<RecordStep<R>>;
  /** Applies an insert or edit to a record. */
  fold(before: StoredRecord<R> | undefined, change: Change): StoredRecord<R>;

  /**
   * Places the fields of a write (docs/design/page-rules.md#invalid-values), and returns the data
   * of the change. Throws `invalid` for fields that make no record, `too_large` past a limit.
   */
  place(write: FieldWrite<R>, parts: Parts): JsonObject;
  /** Members of answers that an edit ignores if a caller sends them back. */
  readonly ignored?: readonly string[];
  /** What is wrong with the fields of these names in a record. */
  problems(record: R, names: readonly string[], parts: Parts): readonly Problem[];
  /** Names for `unknowns` besides those of whole fields that wait. */
  unknownMembers?(record: R, names: readonly string[]): readonly string[];
  /**
   * Runs in the transaction of an insert, before it writes: throws a Failure if there is no room
   * for the record, and returns further drafts and members of the answer.
   */
  onInsert?(id: string, parts: Parts): { drafts: readonly LoggedDraft[]; members: JsonObject };
  /** Runs after a write that is no repeat; returns further problems. */
  afterWrite?(write: DoneWrite<R>, parts: Parts): readonly Problem[];
  /** Resolves when a change of a record is in effect; the answer to an edit waits for that. */
  applied?(seq: number, parts: Parts): Promise<void>;

  /** The record as a reader sees it; by default as it is stored. */
  view?(record: R): JsonObject;
  /** Fields that the configuration adds to a record. */
  serverFields?(record: R, parts: Parts, origin: string): JsonObject;
  /** Makes the mask of the past for a caller; by default a reader sees all of it. */
  mask?(reads: Reads, call: Pick<Call, 'caller'>): MaskFields;

  readonly list: RecordList<R>;
}

/** The operations that every record family has. */
type RecordOperation = 'insert' | 'edit' | 'read' | 'list' | 'invalidate';

/** What distinguishes the list operation of a family. */
interface RecordList<R> {
  /** JSON Schemas of the filters, besides `text`. */
  readonly filters: Readonly<Record<string, JsonObject>>;
  /** The filters in the form that `matches` takes. Throws `invalid` for an unusable one. */
  parse?(filters: JsonObject): JsonObject;
  matches(record: R, filters: JsonObject): boolean;
  /** A row of the list, from the record as a reader sees it. */
  row?(record: JsonObject): JsonObject;
  /** The columns of the list on the command line, by heading: a field, or the cell of a row. */
  readonly columns: Readonly<Record<string, string | ((row: JsonObject) => string)>>;
}

/** The record of an id; undefined if there is none. `seq` selects a moment of the past. */
export function findRecord<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  reads: Reads,
  { id, seq }: { readonly id: string; readonly seq: number | undefined },
): StoredRecord<R> | undefined {
  return seq === undefined ? family.find(reads, id) : family.findAt(reads, id, seq);
}
