import type { LogIdentity } from '../../../core/log/identity.ts';
import type { FailureCode } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';

/** The operation whose entries are events; `v` of such an entry has the fields of the event. */
export const eventInsert = 'svc1.event.insert';

/** The operation whose entries are rows; `v` of such an entry has the fields of the row. */
export const rowInsert = 'svc1.record.insert';

/** A write that this node took while its centre decides about it later. */
export interface OutboxEntry {
  /** Its place: 1, 2, 3 … in the order in which the node took them. */
  readonly n: number;
  /** The id of the record that it inserts. */
  readonly id: string;
  /** The operation. */
  readonly a: string;
  readonly v: JsonObject;
  /** When the node took it: ISO 8601, UTC. */
  readonly dtu_txn: string;
  /** The id of the caller's key, or the part of the server that wrote it. */
  readonly by: string;
  /** The claim of its request: the vk, and the hash of the request. */
  readonly vk?: { readonly vk: string; readonly requestHash: string };
  /** Why the centre has refused it. */
  readonly refused?: { readonly code: FailureCode; readonly message: string; readonly at: string };
  /** Its seq in the log, once the centre has stored it. */
  readonly seq?: number;
}

/** A new entry; the outbox gives it its place. */
type NewOutboxEntry = Omit<OutboxEntry, 'n' | 'refused' | 'seq'>;

/** The decision of the centre about an entry. */
export interface Settled {
  readonly n: number;
  readonly seq?: number;
  readonly refused?: NonNullable<OutboxEntry['refused']>;
}

/** Which refused entries are meant. */
export interface RefusedEntries {
  /** Those after this place … */
  readonly after: number;
  /** … up to this one. */
  readonly upTo?: number;
  /** Only those that were refused with this code. */
  readonly code?: string | undefined;
  /** At most this many. */
  readonly limit: number;
}

/** What an outbox may have at most: entries that wait or were refused, and bytes of them. */
export interface OutboxMax {
  readonly entries: number;
  readonly bytes: number;
}

/** What an outbox has; the bytes are those of entries that wait or were refused. */
interface OutboxCounts {
  readonly waiting: number;
  readonly refused: number;
  readonly bytes: number;
}

/** The writes that a node took for its centre (docs/design/nodes.md#outbox). */
export interface Outbox {
  /**
   * Appends the entry that `decide` returns, or nothing for undefined; `earlier` finds the request
   * that claimed a vk. Resolves once that is durable. Rejects with what `decide` threw, and with
   * `unavailable` if the outbox is full.
   */
  put(
    decide: (earlier: (vk: string) => OutboxClaim | undefined) => NewOutboxEntry | undefined,
  ): Promise<OutboxEntry | undefined>;
  /**
   * Entries that wait for the centre, in order: at most `limit`, and no further ones once they have
   * `characters`.
   */
  waiting(limit: number, characters?: number): readonly OutboxEntry[];
  /** Entries that the centre has refused. */
  refused(which: RefusedEntries): readonly OutboxEntry[];
  /** Records decisions of the centre. */
  settle(settled: readonly Settled[]): Promise<void>;
  /** Makes a refused entry wait again, as the last. Rejects with `not_found`. */
  retry(n: number): Promise<void>;
  /** Removes a refused entry. Rejects with `not_found`. */
  discard(n: number): Promise<void>;
  /** Does the same with several refused entries, in their order; resolves to their places. */
  changeRefused(verb: 'retry' | 'discard', which: RefusedEntries): Promise<readonly number[]>;
  /** Shortens entries whose rows are in the log now. */
  tidy(): Promise<void>;
  counts(): OutboxCounts;
  /** What it may have: outboxMaxDefault until it is set. */
  max: OutboxMax;
  /** The place of the newest entry. */
  newest(): number;
}

/** A request that this node took, by its vk. */
export interface OutboxClaim {
  /** The id of the record that it inserts. */
  readonly id: string;
  readonly requestHash: string;
  /** Its seq in the log; null until this node has it. */
  readonly seq: number | null;
  /** When the request came. */
  readonly dtu_txn: string;
}

/** A place in a log: the seq of a row, and the id of its transaction; '' for the beginning. */
interface LogPlace {
  readonly log: string;
  readonly seq: number;
  readonly txn: string;
}

/** The rows of the log as texts, for copies of it on other nodes (docs/design/nodes.md). */
export interface RowLog {
  identity(): LogIdentity;
  /** The end of the log. */
  end(): LogPlace;
  /** Whether a place of another node's log is a place in this log, too. */
  has(place: LogPlace): boolean;
  /**
   * Texts of rows after a seq, up to a number of rows and about a number of characters, as
   * followers get them.
   */
  rows(after: number, max: { readonly rows: number; readonly characters: number }): string[];
  /** The rows of a hook that followers get without its secret or its header values. */
  withheldRows(hookId: string): readonly string[];
  /**
   * Makes an empty log a copy of another one, or renews that. Rejects with `conflict` for a log
   * with rows of its own.
   */
  follow(log: Pick<LogIdentity, 'id' | 'generation'>, central: string): Promise<void>;
  /** Records that the first copy is complete. */
  complete(): Promise<void>;
  /** Gives the log a new id, and makes a copy a log of its own. */
  renew(id: string): Promise<void>;
  /**
   * Makes a copy a log of its own with a new id, of the next generation. Rejects with `conflict`
   * for a log that is no complete copy.
   */
  promote(id: string): Promise<void>;
  /**
   * Appends rows of the log that this one copies: whole transactions, in one transaction of LMDB.
   * Rejects with `conflict` for rows that do not continue this log.
   */
  append(rows: readonly string[]): Promise<void>;
  /** Replaces rows that came without secrets by whole ones. Ignores all others. */
  reveal(rows: readonly string[]): Promise<void>;
  /** The digest of the rows up to a seq (docs/design/nodes.md#digest), lower-case hex. */
  digest(upTo: number): Promise<string>;
}
