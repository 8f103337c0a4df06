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
  readonly max: OutboxMax;
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
