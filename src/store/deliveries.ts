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

/**
 * How an attempt ended (docs/design/webhooks.md#registration); `exhausted` when no other one
 * follows.
 */
export const attemptOutcomes = ['completed', 'completed_404', 'failed', 'exhausted'] as const;

/** How an attempt ended; `frozen` for a batch that was made and is to be sent. */
type AttemptOutcome = (typeof attemptOutcomes)[number] | 'frozen';

/** A message as its newest attempt left it. */
export interface AttemptRecord {
  /** Seqs in the log of the message's events, the first of which is the hook's n-th. */
  readonly logSeqs: readonly number[];
  /** Whether they are told as a batch. */
  readonly batch?: true;
  /** The message's attempts so far. */
  readonly attempt: number;
  /** Those of them since it was last sent from the start: by a replay, or at all. */
  readonly tries: number;
  /** ISO 8601, UTC: when the attempt began. */
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

/** A message that waits to be sent, again or for the first time. */
export interface DueMessage {
  readonly n: number;
  readonly dueMs: number;
}

/** Events that are to be sent together, in the order of the hook's count, without gaps. */
export interface Batch {
  /** The place of the first one. */
  readonly n: number;
  readonly logSeqs: readonly number[];
}

/** What is to be sent again. */
export interface ReplayRange {
  /** Places in the hook's count, both included; messages that begin there. */
  readonly from: number;
  readonly to: number;
  /** Whether only what was given up is. */
  readonly failed: boolean;
}

/** What one attempt changes. */
export interface RecordedAttempt {
  readonly queue: QueueKey;
  readonly n: number;
  readonly record: AttemptRecord;
  /** When it was due; undefined for an event out of the queue. */
  readonly wasDueMs: number | undefined;
  /** The batches that it is to be sent as from now on, where it was too large. */
  readonly split?: readonly Batch[];
}

/** A time in which no process delivered, in milliseconds by the deliverer's clock. */
export interface Outage {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What a dispatch has done. */
export interface Dispatched {
  /** The seq up to which events are in the queues. */
  readonly upTo: number;
  /** The queues that have grown. */
  readonly grown: ReadonlySet<QueueKey>;
  /** The queues of hooks that have changed … */
  readonly changed: ReadonlySet<QueueKey>;
  /** … less those that changed in a part of the log that is nobody's, which was not read. */
  readonly hasSkipped: boolean;
}

/**
 * The queues of the hooks and what became of their messages (docs/design/webhooks.md#registration).
 * All of it is the deliverer's own, and none of it is in the log: an attempt costs no row. Of
 * several processes on one folder, the one that called `begin` last may write; the writes of others
 * reject.
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
  /** When no process delivered for long, oldest first. */
  outages(): readonly Outage[];
  /** Writes the deliverer's clock down, and the outages where they have changed. */
  noteClock(clockMs: number, outages?: readonly Outage[]): Promise<void>;
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
  /**
   * Of the messages that wait, the one with the lowest n, as far as those tell that are due first
   * and last.
   */
  firstWaiting(queue: QueueKey): DueMessage | undefined;
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
  /** The oldest event of a queue, as far as those tell that are due first and last. */
  oldest(queue: QueueKey): WaymarkEvent | undefined;
  /** Whether the log asks for messages to be sent again that are not due yet. */
  isReplaying(): boolean;
  /** The messages of a range that were tried, by their n, in order: a seek for each. */
  messagesIn(queue: QueueKey, range: ReplayRange): Iterable<number>;
  /** The message that holds the n-th event; undefined where it was never tried, or is forgotten. */
  messageWith(queue: QueueKey, n: number): number | undefined;
  /** The place of the first event that was stored with a seq of the log or later. */
  placeOf(queue: QueueKey, logSeq: number): number;
  /** n of the newest event that the hook was given; 0 for none. */
  newest(queue: QueueKey): number;
  /** The event that a change of the log is or causes. Throws where there is none. */
  event(logSeq: number): WaymarkEvent;
  /** About how long such an event is at most, in bytes, without reading it. */
  eventBytes(logSeq: number): number;
  /**
   * Records attempts, those of many deliveries in one transaction; resolves when that is durable.
   */
  record(attempt: RecordedAttempt, clockMs: number): Promise<void>;
  /** Every queue that there ever was. */
  queues(): readonly QueueKey[];
  /** Whether the oldest message of a queue is from before a time, ISO 8601. */
  hasExpired(queue: QueueKey, before: string): boolean;
  /**
   * Lets the oldest messages of a queue go, as long as they are from before a time: some of them.
   * Resolves to how many had come to their end, and how many events were never delivered.
   */
  expire(
    queue: QueueKey,
    before: string,
  ): Promise<{ readonly ended: number; readonly unsent: number }>;
  /** Makes a batch of events out of the queue, for good, and due. */
  freeze(
    queue: QueueKey,
    batch: Batch,
    made: { readonly at: string; readonly dueMs: number },
  ): Promise<void>;
  /**
   * Makes the next messages due that the log asks to be sent again; resolves to their queue, to
   * undefined where there are none.
   */
  replaySome(clockMs: number): Promise<{ readonly queue: QueueKey | undefined }>;
}
