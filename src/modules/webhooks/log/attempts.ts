import type { Databases } from '../../../core/log/databases.ts';
import { storedJson } from '../../../core/log/encoding.ts';
import {
  type AttemptRecord,
  type Batch,
  type QueueKey,
  type RecordedAttempt,
  attemptKey,
  dueKey,
  eventKey,
} from './deliveries.ts';

/** Stores the result of an attempt. The caller runs it in a write transaction. */
export function putAttempt(databases: Databases, recorded: RecordedAttempt): void {
  const { pending, attempt, due, exhausted } = databases;
  const { queue, n, wasDueMs, split = [] } = recorded;
  const againMs = replayDueMs(databases, recorded);
  if (againMs !== undefined) due.removeSync(dueKey(queue, againMs, n));
  const record =
    againMs === undefined || split.length > 0
      ? recorded.record
      : withNewRound(recorded.record, againMs);
  if (wasDueMs === undefined) pending.removeSync(eventKey(queue, n));
  else due.removeSync(dueKey(queue, wasDueMs, n));
  if (record.dueMs !== undefined) due.putSync(dueKey(queue, record.dueMs, n), '1');
  attempt.putSync(attemptKey(queue, n, record.attempt), JSON.stringify(record));
  if (record.outcome === 'exhausted') exhausted.putSync(eventKey(queue, n), '1');
  for (const batch of split) {
    const attempts = batch.n === n ? record.attempt : 0;
    putFrozen(databases, { queue, batch, attempts, at: record.at, dueMs: wasDueMs ?? 0 });
  }
}

/** The due time of a message that a replay requested during this attempt. */
function replayDueMs(
  databases: Databases,
  { queue, n, wasDueMs }: RecordedAttempt,
): number | undefined {
  if (wasDueMs === undefined) return undefined;
  const dueMs = latestAttempt(databases, queue, n)?.dueMs;
  return dueMs === wasDueMs ? undefined : dueMs;
}

/**
 * Whatever the outcome, the replay starts a new round of attempts, which replaces the next retry.
 */
function withNewRound(record: AttemptRecord, dueMs: number): AttemptRecord {
  const { outcome, dueAt: _, ...rest } = record;
  return { ...rest, tries: 0, dueMs, outcome: outcome === 'exhausted' ? 'failed' : outcome };
}

/** Removes the events of a batch from the queue, and stores the batch as a message. */
export function putBatch(
  databases: Databases,
  queue: QueueKey,
  batch: Batch,
  made: { readonly at: string; readonly dueMs: number },
): void {
  for (const [at] of batch.logSeqs.entries()) {
    databases.pending.removeSync(eventKey(queue, batch.n + at));
  }
  putFrozen(databases, { queue, batch, attempts: 0, ...made });
}

/** Stores a batch as a message that is due. */
function putFrozen(
  { attempt, due }: Databases,
  {
    queue,
    batch: { n, logSeqs },
    attempts,
    at,
    dueMs,
  }: {
    readonly queue: QueueKey;
    readonly batch: Batch;
    readonly attempts: number;
    readonly at: string;
    readonly dueMs: number;
  },
): void {
  const record: AttemptRecord = {
    ...{ logSeqs, batch: true, attempt: attempts, tries: 0, at },
    ...{ outcome: 'frozen', ms: 0, dueMs },
  };
  attempt.putSync(attemptKey(queue, n, attempts + 1), JSON.stringify(record));
  due.putSync(dueKey(queue, dueMs, n), '1');
}

/** The newest attempt of a message. */
export function latestAttempt(
  { attempt }: Databases,
  queue: QueueKey,
  n: number,
): AttemptRecord | undefined {
  const range = { start: eventKey(queue, n + 1), end: eventKey(queue, n), reverse: true, limit: 1 };
  for (const { value } of attempt.getRange(range)) return storedJson(value) as AttemptRecord;
  return undefined;
}
