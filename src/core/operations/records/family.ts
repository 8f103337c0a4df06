import type { WorkTurns } from '../../fair/turns.ts';
import type { Change, RevertibleFamily } from '../../log/change.ts';
import type { LoggedDraft, Reads, Store } from '../../log/store.ts';
import type { Problem } from '../../values/failure.ts';
import type { JsonObject } from '../../values/json/json.ts';
import type { Scope } from '../../values/key.ts';
import type { Call } from '../operation.ts';
import type { WriteReport } from './idempotency.ts';
import type { FieldWrite } from './placement.ts';
import type {
  PartSelection,
  RecordRevert,
  RevertPlacing,
  RevertReader,
  RevertRequest,
  SelectedId,
} from './revert.ts';
import type { RecordPart, RecordSchema } from './schema.ts';
import type { Reader, ShowFields } from './shown.ts';

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
  /** The position after the step, if it is not the id. */
  readonly cursor?: string;
}

/** The parts that the operations of every record family need. */
export interface RecordParts {
  readonly store: Store;
  readonly newId: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Runs a large invalidate in another thread. Rejects as runRevert does. */
  readonly revertInThread: (request: RevertRequest) => Promise<WriteReport>;
}

/** A call of an operation on the records of a family. */
export interface FamilyCall {
  readonly operation: RecordOperation;
  /** Its input. */
  readonly v: JsonObject;
  readonly call: Call;
  /**
   * The JSON Schema of its input, if that may have no members besides these and the key of the
   * record.
   */
  readonly input?: JsonObject;
}

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
  /** Whether the access settings of the part in the input decide about a call. */
  readonly tableDecides?: true;
  readonly schema: RecordSchema;
  /** Set if every call is about one part of the records. */
  readonly part?: RecordPart;
  /** Sentences for the documents, where the general ones do not say all. */
  readonly summaries?: Readonly<Partial<Record<RecordOperation, string>>>;

  /** Loads what forCall reads about the visitor; undefined if there is nothing to wait for. */
  prepare?(call: Call): Promise<void> | undefined;
  /**
   * The family as a call sees it: only with records that the caller may see, and with the
   * definition that they have now. A write calls it before its transaction and in it. Throws
   * `unauthenticated` or `forbidden` for an operation that the caller may not call. Returns
   * `earlier`, which it has made for the same call, while that is still right.
   */
  forCall?(
    given: FamilyCall,
    reads: Reads,
    parts: Parts,
    earlier?: RecordFamily<Parts, R>,
  ): RecordFamily<Parts, R>;
  /**
   * The object that forCall has read: while the store returns the same one, its result is the same.
   */
  readonly definition?: object;
  /**
   * The id of the record that an input without `id` names; undefined if there is no such record.
   * Throws `invalid` for an input that names none.
   */
  idOf?(v: JsonObject, reads: Reads): string | undefined;
  /** Whether a record with this id, which may be deleted, is or was one that the caller may see. */
  hadRecord?(reads: Reads, id: string): boolean;
  /** The name of the caller in the log, if it is not that of its key. */
  readonly author?: string;
  /** Distinguishes the requests of this caller from equal requests of others without a key. */
  readonly identity?: JsonObject;
  /**
   * Runs once before a write, outside of its transaction. Throws `rate_limited`, or `forbidden` for
   * a request that another site has caused. Returns whether the write is only to look done.
   */
  beforeWrite?(sent: JsonObject, parts: Parts): { readonly isDiscarded: boolean };

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
  /** The fields of a form or query, in which every value is a text, as JSON has them. */
  fromText?(sent: JsonObject): JsonObject;
  /** Members of answers that an edit ignores if a caller sends them back. */
  readonly ignored?: readonly string[];
  /** The problems of the named fields of a record. */
  problems(record: R, names: readonly string[], parts: Parts): readonly Problem[];
  /** Names for `unknowns` besides those of whole fields that wait. */
  unknownMembers?(record: R, names: readonly string[]): readonly string[];
  /**
   * How long an exact repeat of an insert without a vk is no second record. By default it is none
   * while the record exists.
   */
  readonly repeatsForMs?: number;
  /**
   * Runs in the transaction of an insert, before it writes: throws a Failure if there is no room
   * for the record, and returns further drafts and members of the answer.
   */
  onInsert?(id: string, parts: Parts): { drafts: readonly LoggedDraft[]; members: JsonObject };
  /** Runs after a write that is no repeat; returns further problems. */
  afterWrite?(write: DoneWrite<R>, parts: Parts): readonly Problem[];
  /** Resolves when a change of a record is in effect; the answer to an edit waits for that. */
  applied?(seq: number, parts: Parts): Promise<void>;

  /**
   * The record as a reader sees it; by default as it is stored. `written` are the names of the
   * fields that the caller has sent now, for the answer to a write.
   */
  view?(record: R, written?: JsonObject): JsonObject;
  /** Fields that the server adds to a record; `seq` is its version. */
  serverFields?(record: R, parts: Parts, origin: string, seq: number): JsonObject;
  /**
   * Examines an edit before its transaction. Returns a report that is the answer, or undefined to
   * carry the edit out. Throws `precondition_failed` if `confirm` is not the digest of the report.
   */
  review?(edit: ReviewedEdit<R>, parts: Parts): Promise<JsonObject | undefined>;
  /** JSON Schema of the report of a review. */
  readonly reviewSchema?: JsonObject;
  /** Throws `conflict` if records cannot be reverted as planned. Runs in the transaction, too. */
  requireRevertible?(reads: Reads, records: readonly RecordRevert[]): void;
  /**
   * Places the fields that a revert leaves; returns the data of an edit. Throws as `place` does.
   */
  placeAgain?(reads: Reads, record: JsonObject, placing: RevertPlacing | undefined): JsonObject;
  /** What `placeAgain` needs of the parts. */
  placing?(parts: Parts): RevertPlacing;
  /** Further drafts of a revert. */
  afterRevert?(reads: Reads, records: readonly RecordRevert[]): readonly LoggedDraft[];
  /**
   * Throws `forbidden` for a caller who may not write these records, for an undo of several
   * families; by default the scope decides.
   */
  requireWriter?(reads: Reads, records: readonly SelectedId[], writer: RevertReader): void;
  /** Throws `forbidden` for a revert that the caller may not make. */
  requireRevertAccess?(reads: Reads, v: JsonObject): void;
  /** Selects the records of the part that a call is about, in data that a thread can get. */
  readonly within?: JsonObject;
  /** Whether a record is or was within a part of the family. */
  isWithin?(reads: Reads, id: string, within: JsonObject): boolean;

  /** The records of a revert as its caller sees them. Throws `not_found` or `forbidden`. */
  boundRevert?(
    reads: Reads,
    selection: PartSelection,
    records: readonly RecordRevert[],
  ): readonly RecordRevert[];

  /** Which rows of a history a caller sees; by default all. */
  shownRows?(reads: Reads, id: string): (seq: number) => boolean;
  /** See shownTo; by default a reader sees all versions of a record. */
  shown?(states: readonly Reads[], reader: Reader): ShowFields;

  readonly list: RecordList<R>;
}

/** The operations that every record family has; some have further ones. */
export type RecordOperation =
  | 'insert'
  | 'edit'
  | 'read'
  | 'list'
  | 'invalidate'
  | 'get'
  | 'schema'
  | 'subscribe';

/** An edit that a family examines before it is carried out. */
export interface ReviewedEdit<R> {
  readonly current: StoredRecord<R>;
  /** The data of the change. */
  readonly data: JsonObject;
  /** The digest of an earlier report. */
  readonly confirm: string | undefined;
  readonly call: Call;
}

/** The differences of a family's list operation from that of others. */
interface RecordList<R> {
  /** JSON Schemas of the filters, besides `text`. */
  readonly filters: Readonly<Record<string, JsonObject>>;
  /** JSON Schemas of further members of its answer. */
  readonly members?: Readonly<Record<string, JsonObject>>;
  /** The meaning of the filter `text`, if it differs from that of other families. */
  readonly textMeans?: string;
  /**
   * The records that match all filters, in the order of the list, after a position; used instead of
   * `matches`.
   */
  select?(given: ListSelection, reads: Reads): ListSteps<R>;
  /**
   * Its orders besides that of the inserts, by their names in `sort`: the steps after the position
   * of a step, `after`; '' is the start. Throws `invalid` for an unusable position.
   */
  readonly orders?: Readonly<Record<string, OrderedSteps<R>>>;
  /** The meaning of the orders, for the documents. */
  readonly ordersMean?: string;
  /** See ListSteps. */
  readonly endsAtShown?: boolean;
  /** The filters in the form that `matches` takes. Throws `invalid` for an unusable one. */
  parse?(filters: JsonObject): JsonObject;
  matches(record: R, filters: JsonObject): boolean;
  /** A row of the list, from the record as a reader sees it. */
  row?(record: JsonObject): JsonObject;
  /** The columns of the list on the command line, by heading: a field, or the cell of a row. */
  readonly columns: Readonly<Record<string, string | ((row: JsonObject) => string)>>;
}

/** The records of a list in one of its orders; it may leave out some that match no filter. */
export type OrderedSteps<R> = (
  reads: Reads,
  given: { readonly after: string; readonly filters: JsonObject },
) => Iterable<RecordStep<R>>;

/** The selection of a list. */
export interface ListSelection {
  /** The filters, with `text`. */
  readonly filters: JsonObject;
  /** A moment of the past; undefined for the present. */
  readonly seq: number | undefined;
}

/** A list that a family has selected itself. */
export interface ListSteps<R> {
  /** The steps after the position of a step, `cursor`; '' is the start. */
  stepsAfter(cursor: string): Iterable<RecordStep<R>>;
  /**
   * Whether a page ends at a row that the caller sees: the cursor of another one would show it the
   * place of that row in the index, which is its value.
   */
  readonly endsAtShown?: boolean;
  /** Further members of the answer, in turns of the list. */
  members?(turns: WorkTurns): JsonObject | Promise<JsonObject>;
}

/** The family as a call sees it; `earlier` is the result for the same call before. */
export function familyFor<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  given: FamilyCall,
  reads: Reads,
  parts: Parts,
  earlier?: RecordFamily<Parts, R>,
): RecordFamily<Parts, R> {
  return family.forCall?.(given, reads, parts, earlier) ?? family;
}

/** The id of the record that an input names. Throws `invalid` if it names none. */
export function namedId<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  v: JsonObject,
  reads: Reads,
): string {
  if (typeof v.id === 'string' && v.id !== '') return v.id;
  return family.idOf?.(v, reads) ?? '';
}

/** The fields of an input, without the members that name a part of the family. */
export function fieldsSent(
  { part }: Pick<RecordFamily<RecordParts, RecordFields>, 'part'>,
  v: JsonObject,
): JsonObject {
  if (part === undefined) return v;
  return Object.fromEntries(
    Object.entries(v).filter(([name]) => !Object.hasOwn(part.members, name)),
  );
}

/** The record of an id; undefined if there is none. `seq` selects a moment of the past. */
export function findRecord<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  reads: Reads,
  { id, seq }: { readonly id: string; readonly seq: number | undefined },
): StoredRecord<R> | undefined {
  return seq === undefined ? family.find(reads, id) : family.findAt(reads, id, seq);
}
