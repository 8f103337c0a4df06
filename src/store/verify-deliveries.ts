import { eventOf } from '../model/event.ts';
import type { Databases } from './databases.ts';
import type { AttemptRecord, QueueKey } from './deliveries.ts';
import { dueKey, dueOf, nOf, queueOf } from './delivery-keys.ts';
import { latestAttempt } from './latest-attempt.ts';
import { rowOf } from './verify-record.ts';
import type { StrayCheck } from './verify-strays.ts';

/**
 * Checks entries of the deliverer's databases. They are not derived from the log, but each must
 * refer to hooks and events in the log.
 */
export const deliveryChecks = {
  pending(databases, key, value) {
    return placeProblem(databases, key) ?? eventProblem(databases, Number(value));
  },
  attempt(databases, key, value) {
    const { logSeqs, attempt, dueMs } = JSON.parse(value) as AttemptRecord;
    const problem = placeProblem(databases, key, logSeqs.length);
    if (problem !== undefined) return problem;
    for (const logSeq of logSeqs) {
      const wrong = eventProblem(databases, logSeq);
      if (wrong !== undefined) return wrong;
    }
    const [queue, n] = [queueOf(key), nOf(key)];
    const latest = latestAttempt(databases, queue, n);
    if (dueMs === undefined || latest?.attempt !== attempt) return undefined;
    const isDue = databases.due.doesExist(dueKey(queue, dueMs, n));
    return isDue ? undefined : 'has a next attempt, which is not due';
  },
  due(databases, key) {
    const { dueMs, n } = dueOf(key);
    const latest = latestAttempt(databases, queueOf(key), n);
    return latest?.dueMs === dueMs ? undefined : 'refers to no message that is due then';
  },
  exhausted(databases, key) {
    const latest = latestAttempt(databases, queueOf(key), nOf(key));
    return latest?.outcome === 'exhausted' ? undefined : 'refers to no message that was given up';
  },
} as const satisfies Readonly<Record<string, StrayCheck>>;

/** Checks the count of a hook, or a replay, with this key. */
export const numberedChecks = {
  lane: (databases: Databases, queue: number) => hookProblem(databases, queue),
  job: (databases: Databases, seq: number) =>
    rowOf(databases, seq)?.family === 'replay' ? undefined : 'is no replay',
} as const;

function hookProblem(databases: Databases, queue: QueueKey): string | undefined {
  const row = rowOf(databases, queue);
  const isHook = row?.family === 'webhook' && row.action === 'insert';
  return isHook ? undefined : 'is of no hook';
}

function placeProblem(databases: Databases, key: Uint8Array, events = 1): string | undefined {
  const queue = queueOf(key);
  const newest = Number(databases.lane.get(queue) ?? 0);
  if (nOf(key) + events - 1 > newest) return `is beyond the hook's newest event, ${newest}`;
  return hookProblem(databases, queue);
}

function eventProblem(databases: Databases, logSeq: number): string | undefined {
  const row = rowOf(databases, logSeq);
  const isEvent = row !== undefined && eventOf(row) !== undefined;
  return isEvent ? undefined : `tells of change ${logSeq}, which is no event`;
}
