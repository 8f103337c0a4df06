import type { WaymarkEvent } from '../../../core/log/events/event.ts';
import type { Node } from '../hook.ts';

/** The highest number of attempts that is recorded for one message. */
const attemptsMax = 65_535;

/** The greatest n, and the greatest time in milliseconds, that keys have room for. */
const uint48Max = 2 ** 48 - 1;
const queueBytes = 4;
const uint48Bytes = 6;

/**
 * The id of a hook in the queues: the seq of its insert, which is unique and shorter than its id.
 */
export type QueueKey = number;

/** An event in the queue of a hook, without a recorded attempt. */
export interface QueuedEvent {
  /** Its place in the hook's own count: 1, 2, 3 … without gaps. */
  readonly n: number;
  /** Seq of the log row that is the event or causes it. */
  readonly logSeq: number;
}

/**
 * How an attempt ended (docs/design/webhooks.md#registration); `exhausted` if it failed and no
 * other attempt follows.
 */
export const attemptOutcomes = ['completed', 'completed_404', 'failed', 'exhausted'] as const;

/** How an attempt ended; `frozen` for a batch that is stored and not sent yet. */
type AttemptOutcome = (typeof attemptOutcomes)[number] | 'frozen';

/** A message as its newest attempt left it. */
export interface AttemptRecord {
  /** Seqs in the log of the message's events, the first of which is the hook's n-th. */
  readonly logSeqs: readonly number[];
  /** Whether they are sent as a batch. */
  readonly batch?: true;
  /** The number of the message's attempts so far. */
  readonly attempt: number;
  /** The number of attempts since the last replay, or since the first attempt without one. */
  readonly tries: number;
  /** The start of the attempt, ISO 8601, UTC. */
  readonly at: string;
  readonly outcome: AttemptOutcome;
  /** Undefined if the receiver sent no answer. */
  readonly status?: number;
  /** Why the attempt failed, as a sentence. */
  readonly error?: string;
  readonly ms: number;
  /** The beginning of the answer's content. */
  readonly answer?: string;
  /** The answer's first header fields, without secrets: name, value, name, value. */
  readonly answerFields?: readonly string[];
  /** Version of the hook that the attempt was made for: the seq of its newest change. */
  readonly hookSeq?: number;
  /** When the next attempt is due, on the deliverer's clock … */
  readonly dueMs?: number;
  /**
   * … and in the time of the system, ISO 8601, UTC; absent if it is due at once, by a replay or a
   * pause.
   */
  readonly dueAt?: string;
}

/** A stored attempt with n, the place of its message's first event in the hook's count. */
export interface NumberedAttempt extends AttemptRecord {
  readonly n: number;
}

/** A message that waits for its first or next attempt. */
export interface DueMessage {
  readonly n: number;
  readonly dueMs: number;
}

/** Consecutive events of a hook to send together. */
export interface Batch {
  /** The place of the first one. */
  readonly n: number;
  readonly logSeqs: readonly number[];
}

/** The range of a replay. */
export interface ReplayRange {
  /**
   * First and last place in the hook's count, both included; it covers messages that begin there.
   */
  readonly from: number;
  readonly to: number;
  /** Whether the replay covers only messages that were given up. */
  readonly failed: boolean;
}

/** The result of one attempt, to be stored. */
export interface RecordedAttempt {
  readonly queue: QueueKey;
  readonly n: number;
  readonly record: AttemptRecord;
  /** When the message was due; undefined for an event from the queue. */
  readonly wasDueMs: number | undefined;
  /** The batches that replace the message, if it was too large. */
  readonly split?: readonly Batch[];
}

/** A period in which no process delivered, in milliseconds on the deliverer's clock. */
export interface Outage {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The result of a dispatch. */
export interface DispatchResult {
  /** The seq up to which events are in the queues. */
  readonly upTo: number;
  /** The queues that have grown. */
  readonly grown: ReadonlySet<QueueKey>;
  /** The queues of the changed hooks … */
  readonly changed: ReadonlySet<QueueKey>;
  /** … and whether the dispatch skipped a part of the log, which may have more changed hooks. */
  readonly hasSkipped: boolean;
}

/**
 * The queues of the hooks and the attempts at their messages
 * (docs/design/webhooks.md#registration). The deliverer stores them outside the log: an attempt
 * costs no row. If several processes share a folder, the one that called `begin` last may write;
 * the writes of the others reject.
 */
export interface Deliveries {
  /** Makes this process the writer. */
  begin(): Promise<void>;
  /** Ends the role of the writer, so that another process can take over. */
  end(): Promise<void>;
  /** Seq of the newest change whose events are in the queues; readable by every process. */
  cursor(): number;
  /** Records that all hook changes up to a seq are in effect for deliveries. */
  markApplied(seq: number): Promise<void>;
  /**
   * Resolves once the delivering process has recorded that for a seq; also if no process delivers,
   * or if none has recorded anything for appliedMsMax.
   */
  waitUntilApplied(seq: number): Promise<void>;
  /** The stored value of the deliverer's clock, in milliseconds; 0 if there is none. */
  clockMs(): number;
  /** The long periods without a delivering process, oldest first. */
  outages(): readonly Outage[];
  /** Stores the deliverer's clock, and the outages if given. */
  storeClock(clockMs: number, outages?: readonly Outage[]): Promise<void>;
  /**
   * Appends the next events of the log to the queues of the hooks that get them on this node, and
   * moves the cursor, in one transaction.
   */
  dispatch(node: Node): Promise<DispatchResult>;
  /** The queues that are not empty. */
  nonEmptyQueues(): readonly QueueKey[];
  /** Events of a queue without a recorded attempt, after `n`, in order. */
  queued(queue: QueueKey, after: number, limit: number): readonly QueuedEvent[];
  /** Messages that wait for their next attempt, the earliest due first. */
  waiting(queue: QueueKey, limit: number): readonly DueMessage[];
  /** The waiting message with the lowest n, among those that are due first and last. */
  firstWaiting(queue: QueueKey): DueMessage | undefined;
  /** The newest attempt of a message. */
  latest(queue: QueueKey, n: number): AttemptRecord | undefined;
  /**
   * Attempts at a hook's messages, highest n first, newest first; if `before` is given, only of
   * messages below it. The caller iterates within one turn of the event loop.
   */
  attempts(queue: QueueKey, before: number | undefined): Iterable<NumberedAttempt>;
  /**
   * The number of messages without an attempt, and of those that wait for a retry; the latter is
   * counted up to waitingCountedMax.
   */
  depth(queue: QueueKey): { readonly queued: number; readonly waiting: number };
  /** The oldest event of a queue, among those that are due first and last. */
  oldest(queue: QueueKey): WaymarkEvent | undefined;
  /** Whether a replay is in progress. */
  isReplaying(): boolean;
  /** The n of each message in a range that has an attempt, in order: one seek each. */
  messagesIn(queue: QueueKey, range: ReplayRange): Iterable<number>;
  /** The message that holds the n-th event; undefined if it has no attempt or was removed. */
  messageWith(queue: QueueKey, n: number): number | undefined;
  /** The place of the first event whose seq in the log is at least this one. */
  placeOf(queue: QueueKey, logSeq: number): number;
  /** The n of the newest event in the queue; 0 for none. */
  newest(queue: QueueKey): number;
  /** The event that a log row is or causes. Throws if there is none. */
  event(logSeq: number): WaymarkEvent;
  /** An upper estimate of the bytes of such an event, without reading it. */
  eventBytes(logSeq: number): number;
  /**
   * Records attempts, those of many deliveries in one transaction; resolves when that is durable.
   */
  record(attempt: RecordedAttempt, clockMs: number): Promise<void>;
  /** All queues, also of deleted hooks. */
  queues(): readonly QueueKey[];
  /** Whether the oldest message of a queue is older than a time, ISO 8601. */
  hasExpired(queue: QueueKey, before: string): boolean;
  /**
   * Removes some of the messages of a queue that are older than a time. Resolves to the number of
   * finished messages, and of events that were never delivered.
   */
  expire(
    queue: QueueKey,
    before: string,
  ): Promise<{ readonly ended: number; readonly unsent: number }>;
  /** Stores a batch of events from the queue as a message that is due. */
  storeBatch(
    queue: QueueKey,
    batch: Batch,
    made: { readonly at: string; readonly dueMs: number },
  ): Promise<void>;
  /**
   * Makes the next messages of the first replay due. Resolves to their queue, or to undefined if
   * there is no replay.
   */
  continueReplay(clockMs: number): Promise<{ readonly queue: QueueKey | undefined }>;
}

/** The key of the n-th event of a hook. */
export function eventKey(queue: QueueKey, n: number): Buffer {
  const key = Buffer.allocUnsafe(queueBytes + uint48Bytes);
  key.writeUInt32BE(queue, 0);
  key.writeUIntBE(bounded(n), queueBytes, uint48Bytes);
  return key;
}

/** The n of a key that begins with a hook and an n. */
export function nOf(key: Uint8Array): number {
  return uint48At(key, queueBytes);
}

/** The hook that a key begins with. */
export function queueOf(key: Uint8Array): QueueKey {
  return new DataView(key.buffer, key.byteOffset).getUint32(0);
}

/** The key under which a message that waits is found by its time. */
export function dueKey(queue: QueueKey, dueMs: number, n: number): Buffer {
  const key = Buffer.allocUnsafe(queueBytes + 2 * uint48Bytes);
  key.writeUInt32BE(queue, 0);
  key.writeUIntBE(bounded(dueMs), queueBytes, uint48Bytes);
  key.writeUIntBE(bounded(n), queueBytes + uint48Bytes, uint48Bytes);
  return key;
}

/** Parses a dueKey. */
export function dueOf(key: Uint8Array): { readonly dueMs: number; readonly n: number } {
  return { dueMs: uint48At(key, queueBytes), n: uint48At(key, queueBytes + uint48Bytes) };
}

/** The key of an attempt of the message that begins with the n-th event. */
export function attemptKey(queue: QueueKey, n: number, attempt: number): Buffer {
  const key = Buffer.allocUnsafe(queueBytes + uint48Bytes + 2);
  key.writeUInt32BE(queue, 0);
  key.writeUIntBE(bounded(n), queueBytes, uint48Bytes);
  key.writeUInt16BE(Math.min(attempt, attemptsMax), queueBytes + uint48Bytes);
  return key;
}

/** The first and last key of a hook, in each of these databases. */
export function queueRange(queue: QueueKey): { readonly start: Buffer; readonly end: Buffer } {
  const start = Buffer.alloc(queueBytes);
  start.writeUInt32BE(queue);
  const end = Buffer.alloc(queueBytes + 2 * uint48Bytes + 1, 0xff);
  end.writeUInt32BE(queue);
  return { start, end };
}

function bounded(value: number): number {
  return Math.max(0, Math.min(uint48Max, Math.trunc(value)));
}

function uint48At(key: Uint8Array, at: number): number {
  const view = new DataView(key.buffer, key.byteOffset);
  return view.getUint16(at) * 2 ** 32 + view.getUint32(at + 2);
}
