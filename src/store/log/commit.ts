import { Failure } from '../../model/failure.ts';
import type { Databases } from '../databases.ts';
import { commitQueueMax } from '../limits.ts';
import { storedAt } from '../projections/reads.ts';
import { sharedFailure, sharedPlace } from '../shared/shared-place.ts';
import type { Reads, Store } from '../store.ts';
import { planWrites, type WritePlan } from './write-plan.ts';
import { putWrites } from './write-puts.ts';
import { copyFailure, followsOf } from './create-row-log.ts';
import type { WriteQueue } from './write-queue.ts';

/** A decision, and the rows that it writes. */
export interface DecidedWrite<T> {
  readonly plan: WritePlan;
  readonly result: T;
}

/** Writes decisions to the log: that of this data folder, or one that several nodes share. */
export interface LogWriter {
  /** The number of decisions that are not answered yet. */
  readonly length: number;
  /**
   * Runs `decide` inside a write transaction, maybe several times, and resolves with its last
   * result once that is durable. Rejects with what `decide` throws, or with a Failure of storage.
   */
  write<T>(decide: () => DecidedWrite<T>): Promise<T>;
}

/** The dependencies of a commit; `now` in milliseconds since 1970. */
interface CommitParts {
  readonly databases: Databases;
  readonly reads: Reads;
  readonly writer: LogWriter;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Creates `Store.commit`, which decides on a write inside a transaction of the writer. */
export function createCommit(parts: CommitParts): Store['commit'] {
  const { databases, reads, writer, now, newId } = parts;
  const timeOf = cachedTimes();
  return async (by, decide) => {
    if (writer.length >= commitQueueMax) {
      throw new Failure('unavailable', 'Too many changes at once.', { retryAfterSeconds: 1 });
    }
    return writer.write(() => {
      const seq = reads.seq();
      // Times must never go back, even if the clock does, because reads search them.
      let timeMs = Date.parse(storedAt(databases, seq) ?? '') || 0;
      const time = (): string => {
        timeMs = Math.max(timeMs, now());
        return timeOf(timeMs);
      };
      const decided = time();
      const follows = followsOf(databases);
      if (follows !== undefined) throw copyFailure(follows);
      const { drafts, answer, dtu_txn = decided } = decide(reads);
      const stamp = { by, txn: newId(), dtu_txn, dtu_stored: time() };
      const plan = planWrites(reads, drafts, { ...stamp, firstSeq: seq + 1, newEventId: newId });
      return { plan, result: answer(plan.changes) };
    });
  };
}

/** Makes a function that formats times: many decisions fall into one millisecond. */
function cachedTimes(): (timeMs: number) => string {
  let [last, text] = [NaN, ''];
  return (timeMs) => {
    if (timeMs !== last) [last, text] = [timeMs, new Date(timeMs).toISOString()];
    return text;
  };
}

/** The writer of a single machine: a decision and its puts are in one transaction. */
export function createLocalWriter(databases: Databases, queue: WriteQueue): LogWriter {
  return {
    get length() {
      return queue.length;
    },
    write: (decide) =>
      queue.write(() => {
        if (sharedPlace(databases) !== undefined) throw sharedFailure();
        const { plan, result } = decide();
        return () => ({ result, bytes: putWrites(databases, plan) });
      }),
  };
}
