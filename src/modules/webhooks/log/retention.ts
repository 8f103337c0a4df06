import type { Change } from '../../../core/log/change.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { storedJson } from '../../../core/log/encoding.ts';
import { storedAt } from '../../../core/log/reads.ts';
import { latestAttempt } from './attempts.ts';
import {
  type AttemptRecord,
  type QueueKey,
  type ReplayRange,
  attemptKey,
  dueKey,
  eventKey,
  nOf,
  queueRange,
} from './deliveries.ts';

/** Messages that a replay makes due again in one transaction. */
const replayMessagesMax = 500;

/** Expired messages that are deleted in one transaction. */
const expiredAtOnceMax = 500;

/** The number of removed messages of a hook: finished ones, and events that were not delivered. */
interface Expired {
  readonly ended: number;
  readonly unsent: number;
}

/** Whether the oldest message of a hook is older than a time, ISO 8601. */
export function hasExpired(databases: Databases, queue: QueueKey, before: string): boolean {
  for (const _ of expiredEvents(databases, queue, before)) return true;
  for (const _ of expiredMessages(databases, queue, before)) return true;
  return false;
}

/**
 * Removes the oldest messages of a hook: those whose newest attempt is older than a time, and
 * events without an attempt that were stored before it. The caller runs it in a write transaction.
 * It removes some messages in each call, so the caller may have to call it again.
 */
export function removeExpired(databases: Databases, queue: QueueKey, before: string): Expired {
  const { pending, attempt, due, exhausted } = databases;
  const counts = { ended: 0, unsent: 0 };
  for (const { n, keys, latest } of expiredMessages(databases, queue, before)) {
    for (const key of keys) attempt.removeSync(key);
    if (latest.dueMs !== undefined) due.removeSync(dueKey(queue, latest.dueMs, n));
    if (latest.outcome === 'exhausted') exhausted.removeSync(eventKey(queue, n));
    if (latest.dueMs === undefined) counts.ended += 1;
    else counts.unsent += latest.logSeqs.length;
    if (counts.ended + counts.unsent >= expiredAtOnceMax) return counts;
  }
  for (const n of expiredEvents(databases, queue, before)) {
    pending.removeSync(eventKey(queue, n));
    counts.unsent += 1;
    if (counts.unsent >= expiredAtOnceMax) break;
  }
  return counts;
}

interface ExpiredMessage {
  readonly n: number;
  /** The keys of its attempts. */
  readonly keys: readonly Uint8Array[];
  readonly latest: AttemptRecord;
}

/** The oldest messages, up to the first that has not expired. */
function* expiredMessages(
  databases: Databases,
  queue: QueueKey,
  before: string,
): Iterable<ExpiredMessage> {
  const { end } = queueRange(queue);
  let n = 0;
  for (;;) {
    const [first] = databases.attempt.getKeys({ start: eventKey(queue, n), end, limit: 1 });
    if (first === undefined) return;
    n = nOf(first);
    const latest = latestAttempt(databases, queue, n);
    if (latest === undefined || latest.at >= before) return;
    const own = { start: eventKey(queue, n), end: eventKey(queue, n + 1) };
    yield { n, keys: [...databases.attempt.getKeys(own)], latest };
    n += 1;
  }
}

function* expiredEvents(databases: Databases, queue: QueueKey, before: string): Iterable<number> {
  const { end } = queueRange(queue);
  let n = 0;
  for (;;) {
    const [entry] = databases.pending.getRange({ start: eventKey(queue, n), end, limit: 1 });
    if (entry === undefined) return;
    if ((storedAt(databases, Number(entry.value)) ?? '') >= before) return;
    yield nOf(entry.key);
    n = nOf(entry.key) + 1;
  }
}

/** A running replay, with the rest of its range. */
type Job = ReplayRange & { readonly queue: QueueKey };

/** The result of a step of a replay. */
interface Replayed {
  /** The queue with messages that are due now; undefined if no replay is running. */
  readonly queue: QueueKey | undefined;
}

/** Stores a replay that the log requests. The caller runs it in a write transaction. */
export function putReplayJob({ job }: Databases, { seq, data }: Change): void {
  job.putSync(seq, JSON.stringify(data));
}

/** Makes the next messages of the first replay due. The caller runs it in a write transaction. */
export function putReplayed(databases: Databases, nowMs: number): Replayed {
  const [entry] = databases.job.getRange({ limit: 1 });
  if (entry === undefined) return { queue: undefined };
  const job = storedJson(entry.value) as Job;
  const { queue } = job;
  let [count, next] = [0, job.from];
  for (const n of messagesIn(databases, queue, job)) {
    if (count === replayMessagesMax) break;
    makeDue(databases, queue, n, nowMs);
    count += 1;
    next = n + 1;
  }
  if (count < replayMessagesMax) databases.job.removeSync(entry.key);
  else databases.job.putSync(entry.key, JSON.stringify({ ...job, from: next }));
  return { queue };
}

/**
 * The messages of a range that have an attempt, or only those that were given up: one seek each.
 */
export function* messagesIn(
  { attempt, exhausted }: Pick<Databases, 'attempt' | 'exhausted'>,
  queue: QueueKey,
  { from, to, failed }: ReplayRange,
): Iterable<number> {
  const database = failed ? exhausted : attempt;
  const end = eventKey(queue, to + 1);
  for (let n = from; ; n += 1) {
    const [key] = database.getKeys({ start: eventKey(queue, n), end, limit: 1 });
    if (key === undefined) return;
    n = nOf(key);
    yield n;
  }
}

/**
 * The message that holds an event, by the place of its first event; undefined if it has no attempt.
 */
export function messageWith(
  { attempt }: Pick<Databases, 'attempt'>,
  queue: QueueKey,
  n: number,
): number | undefined {
  const start = eventKey(queue, n + 1);
  const range = { start, end: queueRange(queue).start, reverse: true, limit: 1 };
  for (const { key, value } of attempt.getRange(range)) {
    const first = nOf(key);
    const { logSeqs } = storedJson(value) as AttemptRecord;
    return n < first + logSeqs.length ? first : undefined;
  }
  return undefined;
}

/** Makes a message due and restarts its retry schedule; attempt numbers continue. */
function makeDue(databases: Databases, queue: QueueKey, n: number, nowMs: number): void {
  const { attempt, due, exhausted } = databases;
  const latest = latestAttempt(databases, queue, n);
  if (latest === undefined) return;
  const { dueMs, outcome, attempt: attempts } = latest;
  if (dueMs !== undefined) due.removeSync(dueKey(queue, dueMs, n));
  if (outcome === 'exhausted') exhausted.removeSync(eventKey(queue, n));
  // A batch without an attempt is stored at the key of its first attempt.
  const at = outcome === 'frozen' ? attempts + 1 : attempts;
  const { dueAt: _, ...again } = { ...latest, tries: 0, dueMs: nowMs };
  attempt.putSync(attemptKey(queue, n, at), JSON.stringify(again));
  due.putSync(dueKey(queue, nowMs, n), '1');
}
