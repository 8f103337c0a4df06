import type { WaymarkEvent } from '../model/event.ts';
import type { Node } from '../model/hook.ts';

/**
 * A hook in the queues: the seq of its insert, which is shorter than its id and as much its own.
 */
export type QueueKey = number;

/** An event in the queue of a hook, of which no attempt has been recorded. */
export interface QueuedEvent {
  /** Its place in the hook's own count: 1, 2, 3 … without gaps. */
  readonly n: number;
  /** Seq in the log of the change that it is or that causes it. */
  readonly logSeq: number;
}

/** How an attempt ended (contract §7); `exhausted` when no other one follows. */
export const attemptOutcomes = ['completed', 'completed_404', 'failed', 'exhausted'] as const;

/** How an attempt ended. */
export type AttemptOutcome = (typeof attemptOutcomes)[number];

/** An attempt to deliver a message, as it is kept. */
export interface AttemptRecord {
  /** Seqs in the log of the message's events, the first of which is the hook's n-th. */
  readonly logSeqs: readonly number[];
  /** The message's attempts so far, this one included. */
  readonly attempt: number;
  /** Those of them since it was last sent from the start: by a replay, or at all. */
  readonly tries: number;
  /** ISO 8601, UTC: when it began. */
  readonly at: string;
  readonly outcome: AttemptOutcome;
  /** Undefined where no answer came. */
  readonly status?: number;
  /** What went wrong, in words. */
  readonly error?: string;
  readonly ms: number;
  /** The beginning of the answer's content. */
  readonly answer?: string;
  /** When the next one is due, by the deliverer's own clock. */
  readonly dueMs?: number;
}

/** A kept attempt with the place of its message's first event in the hook's count. */
export interface NumberedAttempt extends AttemptRecord {
  readonly n: number;
}

/** A message that waits to be sent again. */
export interface DueMessage {
  readonly n: number;
  readonly dueMs: number;
}

/** What one attempt changes. */
export interface RecordedAttempt {
  readonly queue: QueueKey;
  readonly n: number;
  readonly record: AttemptRecord;
  /** When it was due, where it had been tried before. */
  readonly wasDueMs: number | undefined;
}

/** What a dispatch has done. */
export interface Dispatched {
  /** The seq up to which events are in the queues. */
  readonly upTo: number;
  /** The queues that have grown. */
  readonly grown: ReadonlySet<QueueKey>;
  /** The queues of hooks that have changed. */
  readonly changed: ReadonlySet<QueueKey>;
}

/**
 * The queues of the hooks and what became of their messages (contract §7). All of it is the
 * deliverer's own, and none of it is in the log: an attempt costs no row. Of several processes on
 * one folder, the one that called `begin` last may write; the writes of others reject.
 */
export interface Deliveries {
  /** Makes this process the one that may write. */
  begin(): Promise<void>;
  /** Leaves that to others. */
  end(): Promise<void>;
  /** Seq of the newest change whose events are in the queues; readable by every process. */
  cursor(): number;
  /** Says that from here on nothing is sent otherwise than the hooks were after a change. */
  settle(seq: number): Promise<void>;
  /**
   * Resolves once that has been said of a seq, by whichever process delivers; or when none does, or
   * the one that did says nothing for obeyedMsMax.
   */
  obeyed(seq: number): Promise<void>;
  /** The deliverer's clock when it last wrote, in milliseconds; 0 if it never has. */
  clockMs(): number;
  /**
   * Appends the next events of the log to the queues of the hooks that get them on this node, and
   * moves the cursor, in one transaction.
   */
  dispatch(node: Node): Promise<Dispatched>;
  /** The queues with anything in them. */
  busy(): readonly QueueKey[];
  /** Events of a queue of which no attempt was recorded, those behind `n` only, in order. */
  queued(queue: QueueKey, after: number, limit: number): readonly QueuedEvent[];
  /** Messages that wait for their next attempt, from the one that is due first. */
  waiting(queue: QueueKey, limit: number): readonly DueMessage[];
  /** The newest attempt of a message. */
  latest(queue: QueueKey, n: number): AttemptRecord | undefined;
  /**
   * Attempts at a hook's messages, the highest n first, and the newest first; of messages below
   * `before` only, where that is given. To be gone through in one turn.
   */
  attempts(queue: QueueKey, before: number | undefined): Iterable<NumberedAttempt>;
  /**
   * How many messages were never tried, and how many wait to be tried again: these are counted up
   * to waitingCountedMax.
   */
  depth(queue: QueueKey): { readonly queued: number; readonly waiting: number };
  /** The oldest event of a queue, as far as waitingCountedMax of those that wait tell. */
  oldest(queue: QueueKey): WaymarkEvent | undefined;
  /** The event that a change of the log is or causes. Throws where there is none. */
  event(logSeq: number): WaymarkEvent;
  /**
   * Records attempts, those of many deliveries in one transaction; resolves when that is durable.
   */
  record(attempt: RecordedAttempt, clockMs: number): Promise<void>;
}
