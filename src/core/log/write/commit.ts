import { spanned } from '../../report/trace.ts';
import { Failure } from '../../values/failure.ts';
import type { Databases } from '../databases.ts';
import { keyOf } from '../encoding.ts';
import { copyFailure, followsOf } from '../identity.ts';
import { storedAt } from '../reads.ts';
import { sharedFailure, sharedPlace } from '../shared/shared-place.ts';
import type { Reads, Store } from '../store.ts';
import { type CarriedPlans, type WritePlan, planWrites } from './write-plan.ts';
import { putWrites } from './write-puts.ts';
import type { BatchPosition, WriteQueue } from './write-queue.ts';

/** Changes that wait for their commit; further ones are answered with `unavailable`. */
export const commitQueueMax = 20_000;

/** A decision, and the rows that it writes. */
export interface DecidedWrite<T> {
  readonly plan: WritePlan;
  readonly result: T;
}

/**
 * The end of the log after a decision, for the next one if that follows in the same transaction
 * with no other write between: it then does not read from the store what cannot have changed.
 */
interface LogTail {
  readonly seq: number;
  /** The time at which the newest row was stored, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly carried: CarriedPlans | undefined;
}

/** Writes decisions to the log: that of this data folder, or one that several nodes share. */
export interface LogWriter {
  /** The number of decisions that are not answered yet. */
  readonly length: number;
  /**
   * Runs `decide` inside a write transaction, maybe several times, and resolves with its last
   * result once that is durable. Rejects with what `decide` throws, or with a Failure of storage.
   * `tail` is undefined if the state of the log is not known.
   */
  write<T>(decide: (tail?: LogTail) => DecidedWrite<T>): Promise<T>;
}

/** `now` in milliseconds since 1970. */
interface CommitParts {
  readonly databases: Databases;
  readonly reads: Reads;
  readonly writer: LogWriter;
  readonly now: () => number;
  readonly newId: () => string;
  /** The id of the transaction of a commit; by default, each has a new one. */
  readonly txn?: () => string;
}

/** Creates `Store.commit`, which decides on a write inside a transaction of the writer. */
export function createCommit(parts: CommitParts): Store['commit'] {
  const { databases, reads, writer, now, newId, txn = newId } = parts;
  const timeOf = cachedTimes();
  return (author, decide) => {
    const given = typeof author === 'string' ? { by: author } : author;
    if (writer.length >= commitQueueMax) {
      const tooMany = 'Too many changes at once.';
      return Promise.reject(new Failure('unavailable', tooMany, { retryAfterSeconds: 1 }));
    }
    const decideAt = (tail = tailOf(databases, reads)) => {
      const { seq } = tail;
      // Times must never go back, even if the clock does, because reads search them.
      let { timeMs } = tail;
      const time = (): string => {
        timeMs = Math.max(timeMs, now());
        return timeOf(timeMs);
      };
      const decided = time();
      const { drafts, answer, dtu_txn = decided } = decide(reads);
      const stamp = { ...given, txn: txn(), dtu_txn, dtu_stored: time() };
      const { carried } = tail;
      const order = { ...stamp, firstSeq: seq + 1, newEventId: newId, carried };
      const plan = planWrites(reads, drafts, order);
      return { plan, result: answer(plan.changes) };
    };
    return spanned('commit', spanAttributes, () => writer.write(decideAt));
  };
}

/** The database of a commit, by OpenTelemetry's conventions. */
const spanAttributes = { 'db.system.name': 'lmdb', 'db.operation.name': 'commit' };

/** The end of the log as the store has it. Throws `conflict` if the log is a copy of another. */
function tailOf(databases: Databases, reads: Reads): LogTail {
  const follows = followsOf(databases);
  if (follows !== undefined) throw copyFailure(follows);
  const seq = reads.seq();
  return { seq, timeMs: Date.parse(storedAt(databases, seq) ?? '') || 0, carried: undefined };
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
  let written: WrittenDecision | undefined;
  return {
    get length() {
      return queue.length;
    },
    write: (decide) =>
      queue.write((batch) => {
        const follows = written?.batch === batch && written.taken === batch.taken - 1;
        if (!follows && sharedPlace(databases) !== undefined) throw sharedFailure();
        const { plan, result } = decide(follows ? written?.tail : undefined);
        return () => {
          const bytes = putWrites(databases, plan);
          written = { batch, taken: batch.taken, tail: tailAfter(plan) };
          return { result, bytes };
        };
      }),
  };
}

/**
 * The writer of a transaction that is open already: it puts each decision at once, so that the next
 * one sees it. All rows belong to `txn`.
 */
export function createHeldWriter(databases: Databases, txn: string): LogWriter {
  let tail: LogTail | undefined;
  let first: number | undefined;
  return {
    length: 0,
    // The write is done when this returns: a promise of its own would let other code run between.
    write: (decide) =>
      Promise.try(() => {
        const { plan, result } = decide(tail);
        putWrites(databases, plan);
        const { steps, firstSeq } = plan;
        if (steps.length === 0) return result;
        first ??= firstSeq;
        databases.txn.putSync(keyOf(txn), `${first} ${firstSeq + steps.length - 1}`);
        tail = tailAfter(plan);
        return result;
      }),
  };
}

/** The latest decision that was put. */
interface WrittenDecision {
  readonly batch: BatchPosition;
  /** Its place among the writes of its transaction. */
  readonly taken: number;
  readonly tail: LogTail | undefined;
}

/** Undefined after a decision without changes. */
function tailAfter({ stamp, firstSeq, steps, carried }: WritePlan): LogTail | undefined {
  if (steps.length === 0) return undefined;
  const seq = firstSeq + steps.length - 1;
  return { seq, timeMs: Date.parse(stamp.dtu_stored), carried };
}
