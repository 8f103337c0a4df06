import type { Change } from '../../../core/log/change.ts';
import { unpackClaim } from '../../../core/log/claims.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { eventOf } from '../../../core/log/events/event.ts';
import type { IndexBuild } from '../../tables/log/reads.ts';
import { parseJson } from '../../../core/values/json/parse.ts';
import { entryOfSeq, newestEntry } from '../../nodes/log/outbox-entries.ts';
import { buildKey } from '../../tables/log/index-key.ts';
import { latestAttempt } from '../../webhooks/log/attempts.ts';
import {
  type AttemptRecord,
  type QueueKey,
  dueKey,
  dueOf,
  nOf,
  queueOf,
} from '../../webhooks/log/deliveries.ts';

/** Checks an entry; returns a description of the problem if it does not belong there. */
type EntryCheck<K> = (databases: Databases, key: K, value: string) => string | undefined;

/**
 * Checks of entries that the log alone does not decide, but which must fit the log: claims of vks,
 * the progress of indexes, and the queues of the deliverer.
 */
export const entryChecks = {
  vk(databases, _key, value) {
    const { seq } = unpackClaim('', value);
    return rowOf(databases, seq) === undefined
      ? `refers to change ${seq}, which the log does not have`
      : undefined;
  },
  indexbuild(_databases, key, value) {
    const { table, index, phase, done } = JSON.parse(value) as IndexBuild;
    const isBuild = ['empty', 'fill'].includes(phase) && Number.isSafeInteger(done);
    const isOwn = isBuild && buildKey(table, index).equals(key);
    return isOwn ? undefined : 'is not the state of an index';
  },
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
    return isDue ? undefined : 'has a retry that is not in the list of due messages';
  },
  due(databases, key) {
    const { dueMs, n } = dueOf(key);
    const latest = latestAttempt(databases, queueOf(key), n);
    return latest?.dueMs === dueMs ? undefined : 'refers to no message that is due at that time';
  },
  exhausted(databases, key) {
    const latest = latestAttempt(databases, queueOf(key), nOf(key));
    return latest?.outcome === 'exhausted' ? undefined : 'refers to no message that was given up';
  },
} as const satisfies Readonly<Record<string, EntryCheck<Uint8Array>>>;

/** Likewise, by the seq of a hook or of a replay. */
export const numberedChecks = {
  lane: (databases, queue) => hookProblem(databases, queue),
  job: (databases, seq) =>
    rowOf(databases, seq)?.family === 'replay' ? undefined : 'is not a replay',
} as const satisfies Readonly<Record<string, EntryCheck<number>>>;

function rowOf({ log }: Databases, seq: number): Change | undefined {
  const text = log.get(seq);
  return text === undefined ? undefined : (parseJson(text) as Change);
}

function hookProblem(databases: Databases, queue: QueueKey): string | undefined {
  const row = rowOf(databases, queue);
  const isHook = row?.family === 'webhook' && row.action === 'insert';
  return isHook ? undefined : 'does not belong to a hook';
}

function placeProblem(databases: Databases, key: Uint8Array, events = 1): string | undefined {
  const queue = queueOf(key);
  const newest = Number(databases.lane.get(queue) ?? 0);
  if (nOf(key) + events - 1 > newest) return `is beyond the hook's newest event, ${newest}`;
  return hookProblem(databases, queue);
}

function beyondOutbox(n: number): string {
  return `refers to entry ${n} of the outbox, which has fewer`;
}

function eventProblem(databases: Databases, logSeq: number): string | undefined {
  const n = entryOfSeq(logSeq);
  // The outbox forgets the oldest entries before the queues of hooks do.
  if (n !== undefined) return n <= newestEntry(databases) ? undefined : beyondOutbox(n);
  const row = rowOf(databases, logSeq);
  const isEvent = row !== undefined && eventOf(row) !== undefined;
  return isEvent ? undefined : `refers to change ${logSeq}, which is not an event`;
}
