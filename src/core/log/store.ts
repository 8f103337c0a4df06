import type { CacheUse } from '../report/memory-use.ts';
import type { JsonObject } from '../values/json/json.ts';
import type { ApiKey } from '../values/key.ts';
import type {
  Change,
  ChangeAuthor,
  Draft,
  Family,
  HistoryRow,
  Placed,
  RevertibleFamily,
} from './change.ts';
import type { Databases } from './databases.ts';
import type { EventFields } from './events/event.ts';
import type { KeyUses } from './key-uses.ts';
import type { Notice } from './shared/entry.ts';
import type { ClusterTask, DeliveryWriter, SharedFiles } from './shared/shared-log.ts';
import type { SharedPlace } from './shared/shared-place.ts';
import type { ReadValues, Values } from './shared/shared-values.ts';
import type { DataTexts, PlannedEntries, Transition } from './write/planned-entries.ts';
import type { WriteQueue } from './write/write-queue.ts';

/**
 * The request that used an idempotency key (docs/design/history.md#idempotency-and-concurrency).
 */
export interface VkClaim {
  readonly vk: string;
  /** Lower-case hex SHA-256 of the request's operation and canonical fields. */
  readonly requestHash: string;
}

/** A claim that was committed: the record and the seq that the first request wrote. */
export interface StoredVkClaim extends VkClaim {
  readonly id: string;
  /** The author of the change. */
  readonly by: string;
  readonly seq: number;
}

/** Seqs from `first` to `last`, both included. */
export interface SeqRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Reads of the store. All reads of one event-loop turn see the same state, which is at most a few
 * milliseconds old: see Store.refresh.
 */
export interface Reads {
  /**
   * Rows of a record below `before`, newest first. It returns at most `limit` rows, and stops after
   * the row with which they exceed `characters`.
   */
  history(
    family: Family,
    id: string,
    page: {
      readonly before: number | undefined;
      readonly limit: number;
      readonly characters?: number;
    },
  ): readonly HistoryRow[];
  /** All rows of a revertible record, oldest first; up to and including `upTo`, if given. */
  readonly rows: (family: Family, id: string, upTo?: number) => readonly Change[];
  /**
   * The seqs of all rows of a record, oldest first; in a draft, those of the draft come behind the
   * live ones, in the order in which they apply.
   */
  rowSeqs(id: string): readonly number[];
  /** A row of the log; undefined for a seq that it has not reached. */
  change(seq: number): Change | undefined;
  /** Bytes of a row of the log as it is stored; 0 for a seq that it has not reached. */
  rowBytes(seq: number): number;
  /** Whether a row of the log counts, that is, has not been invalidated. */
  inForce(seq: number): boolean;
  /** The seqs of a transaction's first and last row; undefined for an unknown one. */
  txnSeqs(txn: string): SeqRange | undefined;
  /**
   * The newest change that was stored at or before a time, in milliseconds since 1970; 0 for none.
   */
  seqAt(timeMs: number): number;
  vkClaim(vk: string): StoredVkClaim | undefined;
  key(id: string): ApiKey | undefined;
  keyByHash(hash: string): ApiKey | undefined;
  keys(): readonly ApiKey[];
  /** Seq of the newest change; 0 for an empty log. */
  seq(): number;
  /** How the log keeps the records of a family; undefined if only the log has them. */
  projectionOf(family: Family): FamilyProjection<object> | undefined;
  readonly families: readonly LogFamily[];
  /** The reads of a family, which is opened when it is first asked for. */
  readonly of: <R extends object>(family: ReadFamily<R>) => R;
}

/** Makes reads of the data of a store. */
export type View = (databases: Databases, families: readonly LogFamily[]) => Reads;

/**
 * What a module keeps in the log: how changes become the state of records, and what it derives from
 * them.
 */
export interface LogFamily {
  /** By the names of their families in the log. */
  readonly records?: Readonly<Partial<Record<Family, FamilyProjection<object>>>>;
  /** What followers of the log wait for besides rows: names in the database `meta`. */
  readonly watched?: readonly string[];
  /** Derives more from changes that were put. Called in their write transaction. */
  readonly afterPut?: (
    databases: Databases,
    families: readonly LogFamily[],
    changes: readonly Change[],
  ) => void;
  /** Upgrades data of a former layout; called in a transaction whenever a folder is opened. */
  readonly upgrade?: (databases: Databases, former: number, families: readonly LogFamily[]) => void;
}

/** A family with reads of its own: the key of `Reads.of`. */
export interface ReadFamily<R extends object> extends LogFamily {
  /** `databases` and `reads` are those of a store, of a moment of it, or of a draft. */
  reads(databases: Databases, reads: Reads): R;
}

/** How the log keeps the records of a family: their state, and what it derives from that. */
export interface FamilyProjection<S extends object> {
  /** The current state of the record that a change concerns. */
  stored(reads: Reads, id: string): S | undefined;
  /** The state right after a change; only of a family that can be reverted. */
  at?(reads: Reads, id: string, seq: number): S | undefined;
  /** Applies a change; of a family that can be reverted, only an insert or edit. */
  fold(before: S | undefined, change: Change): S | undefined;
  /** The data with which a change that is no insert is logged; by default, its own. */
  dataOf?(reads: Reads, draft: Draft, record: WrittenRecord<S>): JsonObject;
  /** Plans the entries of a change. Throws a Failure if the change cannot be made. */
  plan(planning: Planning, change: Change, transition: Transition<S>): void;
}

/** A record in the middle of a decision, with the rows that the decision has added to it. */
export interface WrittenRecord<S extends object = object> {
  readonly stored: S | undefined;
  readonly written: readonly Change[];
}

/** What the changes of one decision share while they are planned. */
export interface Planning {
  readonly reads: Reads;
  readonly entries: PlannedEntries;
  readonly texts: DataTexts;
  /** Whether another node has decided the changes, and found room for them. */
  readonly isCopy: boolean;
  /** What the changes of a family share. */
  shared<P extends object>(plan: SharedPlan<P>): P;
  /** Adds an event that follows the drafts. */
  raise(event: EventFields): void;
}

/** What the changes of a family share within one decision: the key of `Planning.shared`. */
export interface SharedPlan<P extends object> {
  /** `carried` is what `finish` returned for the decision before, in the same transaction. */
  begin(planning: Planning, carried: unknown): P;
  finish?(state: P): unknown;
}

/**
 * A change to be logged; with a `vk`, the claim is stored in the same transaction, for the draft's
 * id and seq.
 */
export interface LoggedDraft extends Draft {
  readonly vk?: VkClaim;
  /** The text of the row, if it is a copy of that of another node. */
  readonly text?: string;
}

/** The drafts of a decide function; the store writes all of them or none. */
export interface Decision<T> {
  readonly drafts: readonly LoggedDraft[];
  /** Makes the answer from the changes as they were logged, in the order of the drafts. */
  readonly answer: (changes: readonly Change[]) => T;
  /** When another node decided the transaction: ISO 8601 UTC, not in the future. */
  readonly dtu_txn?: string;
}

/** A change of a record, with the record before and after it. */
export interface RecordChange<S extends Placed = Placed> {
  readonly change: Change;
  /** Undefined if the record did not exist. */
  readonly before: S | undefined;
  /** Undefined if the record no longer exists. */
  readonly after: S | undefined;
}

/** A piece of the log, for its followers. */
export interface FeedSlice {
  /** The changes of the given families in it, in the order of seq. */
  readonly changes: readonly RecordChange[];
  /** The seq up to which the log was read; the next piece starts after it. */
  readonly upTo: number;
}

/** The sizes of the store. */
export interface StoreCounts {
  readonly seq: number;
  readonly rules: number;
  readonly keys: number;
  readonly hooks: number;
  readonly tables: number;
  /** Rows of all tables. */
  readonly rows: number;
  /** Size of the data file in bytes. */
  readonly bytes: number;
}

/** The reactions of a node to the log that it shares with others (docs/design/cluster.md). */
export interface SharedPart {
  /** Whether the node follows the shared log, and if not, why, as a sentence. */
  state(): { readonly isConnected: boolean; readonly problem: string | undefined };
  /** Tells all nodes; resolves when this node has applied it. Rejects as commit does. */
  tell(notice: Notice): Promise<void>;
  /**
   * Resolves when this node has all changes that the shared log has now. Rejects with
   * `unavailable` if no change comes for some seconds.
   */
  catchUp(): Promise<void>;
  /** The name of this data folder in the cluster. */
  readonly member: string;
  /** The tasks that one node does at a time, and the member that does each. */
  tasks(): readonly { readonly task: string; readonly member: string }[];
  /** SharedLog.broadcast and SharedLog.onBroadcast: messages that nothing stores. */
  broadcast(data: Uint8Array): Promise<void>;
  onBroadcast(listener: (data: Uint8Array) => void): () => void;
  /** The files of assets that the nodes share. */
  readonly files: SharedFiles;
  /** A task that one node does at a time, such as to follow a data host, by its name. */
  task(name: string): ClusterTask;
  /** The values that the nodes share besides the log. */
  readonly values: Values;
}

/** What a store gives to each of its parts. */
export interface OpenPart {
  /** Absolute path of the data folder. */
  readonly folder: string;
  readonly databases: Databases;
  readonly reads: Reads;
  readonly queue: WriteQueue;
  /** Makes writes durable that all nodes of a cluster get. */
  readonly writer: DeliveryWriter;
  readonly shared: SharedPart | undefined;
  /** Wakes all that wait for rows of the log. */
  readonly wake: () => void;
  readonly newId: () => string;
  /** Store.checkPages. */
  readonly checkPages: () => Promise<void>;
  /** Aborts when the store closes. */
  readonly closing: AbortSignal;
}

/**
 * What a module keeps in the data folder besides records of the log. It is the key of
 * `Store.part`, which opens it when it is first asked for.
 */
export interface LogPart<P extends object> {
  open(given: OpenPart): P;
  /** The part for changes that nothing follows yet: in a draft, or in an open transaction. */
  unfollowed?(part: P): P;
}

/** The log and its projections (docs/design/history.md#the-change-log). */
export interface Store extends Reads {
  /**
   * Makes further reads see everything that all processes have committed so far. Called at the
   * start of each request, because the client may already know of a change.
   */
  refresh(): void;
  /**
   * Runs `decide` inside the write transaction, where it sees everything committed before it; then
   * appends its drafts, updates the projections and claims its vk in the same transaction. Resolves
   * with the decision's answer once the transaction is durable. Rejects with the error that
   * `decide` threw (nothing is written), or with the Failure `storage_full` or `unavailable`; in a
   * copy of another node's log with `conflict`.
   */
  commit<T>(author: ChangeAuthor, decide: (reads: Reads) => Decision<T>): Promise<T>;
  /**
   * Runs `run` with a store whose commits belong together: they have one txn, each sees those
   * before it, and they are durable when this resolves. Nothing is written if `run` rejects, or
   * `isKept` is false for its result. `run` awaits nothing but these commits and turns of the event
   * loop; only a thread that does nothing else may call this. With a log that nodes share, `run`
   * may run several times; `seqOf` then translates the seqs that it has seen to those of the log.
   * Rejects as `run` and `commit` do.
   */
  together<T>(
    run: (store: Store) => Promise<T>,
    isKept: (result: T) => boolean,
  ): Promise<{ readonly result: T; readonly seqOf: (seq: number) => number }>;
  /**
   * The next piece of the log after a seq: existing rows at once, otherwise the next rows that this
   * or another process commits, with the changes of the given families. Empty if the signal aborts;
   * rejects with `unavailable` if the store is closed.
   */
  changesAfter(
    families: readonly RevertibleFamily[],
    seq: number,
    signal: AbortSignal,
  ): Promise<FeedSlice>;
  /**
   * Resolves once the log has a row after a seq, or the signal aborts: at once for rows of this
   * process, within `pollMs` for rows of others. Waits with the same `pollMs` share a timer.
   * Rejects as changesAfter does.
   */
  waitForRows(seq: number, signal: AbortSignal, pollMs?: number): Promise<void>;
  /** Other reads of the same data than the store's own, such as those of a draft. */
  view(view: View): Reads;
  /**
   * Runs a read that takes several turns of the event loop: all that it reads is of the state in
   * which the log is now. It waits for nothing but its turns. Rejects as `read` does, and with
   * `unavailable` if the store is closed.
   */
  inSnapshot<T>(read: (reads: Reads) => Promise<T>, view?: View): Promise<T>;
  /** A part of the data folder besides the log: see LogPart. */
  part<P extends object>(part: LogPart<P>): P;
  /** When each key was used last at this node. */
  readonly keyUses: KeyUses;
  /** The log that the node shares with others; undefined for a single machine. */
  readonly shared: SharedPart | undefined;
  /** How far the folder has applied a shared log; undefined if it is no part of a cluster. */
  sharedPlace(): SharedPlace | undefined;
  /** The values of the folder, also of one that has left its cluster. */
  readonly sharedValues: ReadValues;
  counts(): StoreCounts;
  /** The size of the cache of changes that followers read last. */
  memory(): CacheUse;
  /**
   * Checks all pages of the data file in a thread, unless opening it has already done so. Rejects
   * with `unavailable`, naming the damage, for a page that LMDB cannot have written; the store then
   * refuses changes.
   */
  checkPages(): Promise<void>;
  /** Waits for pending commits, then closes the data folder. */
  close(): Promise<void>;
}
