import type { Change, Draft, Family, HistoryRow } from '../model/change.ts';
import type { Failure } from '../model/failure.ts';
import type { HookSecret, StoredHook } from '../model/hook.ts';
import type { ApiKey } from '../model/key.ts';
import type { Candidate, StoredRule } from '../model/rule.ts';
import type { CacheUse } from '../observability/memory-use.ts';
import type { RulePlace } from './candidates.ts';
import type { Deliveries } from './deliveries.ts';
import type { ReadyRule } from './ready.ts';

/** What an idempotency key was used for (docs/design/history.md#idempotency-and-concurrency). */
export interface VkClaim {
  readonly vk: string;
  /** Lower-case hex SHA-256 of the request's operation and canonical fields. */
  readonly requestHash: string;
}

/** A claim that was committed: the record and the seq that the first request wrote. */
export interface StoredVkClaim extends VkClaim {
  readonly id: string;
  /** Who the change is by. */
  readonly by: string;
  readonly seq: number;
}

/** Seqs from `first` to `last`, both included. */
export interface SeqRange {
  readonly first: number;
  readonly last: number;
}

/** A step of a walk through the page rules. */
export interface WalkedRecord {
  readonly id: string;
  /**
   * Undefined for what a walk through the past comes by as well, so that who walks can pause: a
   * record that was no page rule, or was not there then.
   */
  readonly stored: StoredRule | undefined;
  /** How much was read for it, in characters or bytes of what is stored. */
  readonly size: number;
}

/** The page rules at one position of the log, found by every place that a record ever had. */
export type PastRules = Pick<Reads, 'rule' | 'exactRules' | 'wildcardRules' | 'recordsAfter'>;

/**
 * What can be read of the store; all reads of one event-loop turn see one state, the one that was
 * newest a few milliseconds before at the latest: see Store.refresh.
 */
export interface Reads {
  /** The current state of a page rule; undefined when there is none. */
  rule(id: string): StoredRule | undefined;
  /** A page rule as it was right after the change `seq` of the log. */
  ruleAt(id: string, seq: number): StoredRule | undefined;
  /**
   * Rules of exactly this origin (or `*`) and exactly this path, wildcards not counted; in no
   * special order.
   */
  exactRules(origin: string, path: string): readonly Candidate[];
  /**
   * The rules of each wildcard of exactly this origin (or `*`) that covers the path, longest first;
   * to be gone through in one turn.
   */
  wildcardRules(origin: string, path: string): Iterable<readonly Candidate[]>;
  /**
   * Why a page rule more cannot stand at a place, as a Failure `too_large`; undefined where it can.
   * `planned` is how many others are about to be put there.
   */
  roomFailure(place: Pick<RulePlace, 'database' | 'key'>, planned: number): Failure | undefined;
  /**
   * Rows of a record, newest first, those below `before` only; at most `limit`, and no more behind
   * the one that makes them more than `characters` long.
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
  /**
   * All rows of a record that can be taken back, oldest first; up to and with `upTo`, if that is
   * given.
   */
  rows(family: Family, id: string, upTo?: number): readonly Change[];
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
  /** The current page rules in the order of their ids, those behind `after` only. */
  recordsAfter(after: string): Iterable<WalkedRecord>;
  /** All page rules as they were right after the change `seq`. */
  at(seq: number): PastRules;
  vkClaim(vk: string): StoredVkClaim | undefined;
  key(id: string): ApiKey | undefined;
  keyByHash(hash: string): ApiKey | undefined;
  keys(): readonly ApiKey[];
  /** The current state of a hook; undefined when there is none. */
  hook(id: string): StoredHook | undefined;
  /** A hook as it was right after the change `seq` of the log. */
  hookAt(id: string, seq: number): StoredHook | undefined;
  /** The current hooks in the order of their ids, those behind `after` only. */
  hooksAfter(after: string): Iterable<StoredHook>;
  /** The current hooks that ask for events of a type, or for all events. */
  hooksFor(type: string): readonly StoredHook[];
  /** Another text after each change of any hook or secret; undefined as long as there was none. */
  hooksStamp(): string | undefined;
  /** What a hook's deliveries are signed with; also of a hook that is gone. */
  hookSecret(id: string): HookSecret | undefined;
  /** Seq of the newest change; 0 for an empty log. */
  seq(): number;
}

/**
 * A change to be logged; with a `vk`, the claim is stored in the same transaction, for the draft's
 * id and seq.
 */
export interface LoggedDraft extends Draft {
  readonly vk?: VkClaim;
}

/**
 * A draft too: the insert of a page rule that is ready to be put. Its id is a UUID that no record
 * has had, nor another draft of the decision.
 */
export interface ReadyInsert {
  readonly id: string;
  readonly ready: ReadyRule;
  readonly vk: VkClaim;
}

/** What a decide function wants written, all of it or nothing. */
export interface Decision<T> {
  readonly drafts: readonly (LoggedDraft | ReadyInsert)[];
  /**
   * Makes the answer from the changes as they were logged, in the order of the drafts; those of
   * drafts that came ready are not among them.
   */
  readonly answer: (changes: readonly Change[]) => T;
}

/** A change of a page rule, with the record before and after it. */
export interface RuleChange {
  readonly change: Change;
  /** Undefined where there was none. */
  readonly before: StoredRule | undefined;
  /** Undefined where it is gone. */
  readonly after: StoredRule | undefined;
}

/** A piece of the log, as those who follow it read it. */
export interface FeedSlice {
  /** The changes of page rules in it, in the order of seq. */
  readonly changes: readonly RuleChange[];
  /** The seq up to which the log was read: the next piece is what comes after it. */
  readonly upTo: number;
}

/** How much the store holds. */
export interface StoreCounts {
  readonly seq: number;
  readonly rules: number;
  readonly keys: number;
  readonly hooks: number;
  /** Size of the data file in bytes. */
  readonly bytes: number;
}

/** What a backup holds. */
export interface Backup {
  /** Seq of its newest change. */
  readonly seq: number;
  /** Size of its data file in bytes. */
  readonly bytes: number;
}

/** A place where a projection is not what the log says. */
export interface Difference {
  /** Name of the database: see databases.ts. */
  readonly database: string;
  readonly what: string;
}

/** How far a verification is, and what the last part of it has found. */
export interface Verification {
  /** Entries looked at, of about how many there are. */
  readonly checked: number;
  readonly of: number;
  readonly differences: readonly Difference[];
}

/** The log and its projections (docs/design/history.md#the-change-log). */
export interface Store extends Reads {
  /**
   * Has all that is read from now on see what every process has committed until now, instead of a
   * state that was read a moment ago: called when something is asked from outside, for it may be
   * asked by who knows of a change.
   */
  refresh(): void;
  /**
   * Runs `decide` inside the write transaction, where it sees everything committed before it, then
   * appends its drafts, updates the projections and claims its vk, all in one. Resolves with the
   * decision's answer once that is durable. Rejects with what `decide` threw (nothing written), or
   * with the Failure `storage_full` or `unavailable`.
   */
  commit<T>(by: string, decide: (reads: Reads) => Decision<T>): Promise<T>;
  /**
   * The next piece of the log behind a seq: at once what is there, otherwise as soon as this or
   * another process has committed something. Empty when the signal is aborted; rejects with
   * `unavailable` when the store is closed.
   */
  changesAfter(seq: number, signal: AbortSignal): Promise<FeedSlice>;
  /**
   * Resolves once the log has gone beyond a seq, or the signal is aborted: at once for what this
   * process writes, within `pollMs` for what others do. Rejects as changesAfter does.
   */
  grown(seq: number, signal: AbortSignal, pollMs: number): Promise<void>;
  /** The queues of hooks, and what became of their messages. */
  readonly deliveries: Deliveries;
  counts(): StoreCounts;
  /** What is in memory of the changes that followers read last. */
  memory(): CacheUse;
  /**
   * Copies the data as it is at one moment into a folder that is empty or not there yet, given by
   * its absolute path. Rejects with `conflict` for one that is not empty, with `unavailable` for
   * one that cannot be written, with what the signal says when that is aborted; nothing stays then.
   */
  backUp(target: string, signal?: AbortSignal): Promise<Backup>;
  /**
   * Looks at all pages of the data file, in a thread, as far as that was not done when it was
   * opened. Rejects with `unavailable`, naming the damage, for what LMDB cannot have written; no
   * change is taken from then on.
   */
  checkPages(): Promise<void>;
  /** Holds every projection against the fold of the log, part by part, also while it is written. */
  verify(): AsyncIterable<Verification>;
  /** Waits for pending commits, then closes the data folder. */
  close(): Promise<void>;
}
