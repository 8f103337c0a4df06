import type { Databases } from '../../../core/log/databases.ts';
import { storedAt } from '../../../core/log/reads.ts';
import { latestAttempt } from './attempts.ts';
import type { AttemptRecord, QueueKey } from './deliveries.ts';
import { dueKey, eventKey, nOf, queueRange } from './delivery-keys.ts';

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
