import { Failure, stoppingFailure } from '../../model/failure.ts';
import type { Databases } from '../databases.ts';
import { writeErrorOf } from '../folder/full-disk.ts';
import { commitBatchBytesMax, commitBatchMax, commitQueueMax } from '../limits.ts';
import { storedAt } from '../projections/reads.ts';
import type { Decision, Reads } from '../store.ts';
import { planWrites, type WritePlan } from './write-plan.ts';
import { putWrites } from './write-puts.ts';

/** The dependencies of a commit; `now` in milliseconds since 1970. */
interface CommitParts {
  readonly databases: Databases;
  readonly reads: Reads;
  readonly now: () => number;
  readonly newId: () => string;
  readonly condition: StoreCondition;
}

/** Whether a store accepts changes. */
export interface StoreCondition {
  /** The Failure that refuses changes; undefined while the data is intact. */
  refusal: Failure | undefined;
}

/** A waiting commit, without the type of its answer. */
interface Pending {
  readonly by: string;
  readonly decide: (reads: Reads) => Decision<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Decided {
  readonly pending: Pending;
  readonly answer: unknown;
}

/**
 * Commits in order of arrival: one write transaction takes all waiting commits, and answers them
 * when it is on the disk; meanwhile the next batch collects.
 */
export class CommitQueue {
  readonly #parts: CommitParts;
  #waiting: Pending[] = [];
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(parts: CommitParts) {
    this.#parts = parts;
  }

  /** Store.commit: see there. */
  commit<T>(by: string, decide: (reads: Reads) => Decision<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) {
        reject(stoppingFailure());
      } else if (this.#parts.condition.refusal !== undefined) {
        reject(this.#parts.condition.refusal);
      } else if (this.#waiting.length >= commitQueueMax) {
        reject(new Failure('unavailable', 'Too many changes at once.', { retryAfterSeconds: 1 }));
      } else {
        this.#waiting.push({
          by,
          decide,
          reject,
          resolve: (answer) => {
            resolve(answer as T);
          },
        });
        this.#writing ??= this.#writeAll();
      }
    });
  }

  /** Refuses further commits; resolves when the earlier ones are answered. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // All commits of this turn of the event loop go into the first batch.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#writeBatch();
    this.#writing = undefined;
  }

  async #writeBatch(): Promise<void> {
    const batch: Batch = { taken: 0, bytes: 0, decided: [] };
    try {
      // Only a child transaction is rolled back when something throws in it.
      await this.#parts.databases.environment.childTransaction(() => {
        this.#decideAndPut(batch);
      });
    } catch (error) {
      const failure = await storageFailure(error);
      // A transaction that cannot begin fails all of its commits.
      const concerned = batch.taken === 0 ? this.#waiting.length : batch.taken;
      for (const { reject } of this.#waiting.splice(0, concerned)) reject(failure);
      return;
    }
    this.#waiting.splice(0, batch.taken);
    for (const { pending, answer } of batch.decided) pending.resolve(answer);
  }

  #decideAndPut(batch: Batch): void {
    const { databases, reads, now, newId } = this.#parts;
    let seq = reads.seq();
    // Times must never go back, even if the clock does, because reads search them.
    let timeMs = Date.parse(storedAt(databases.log.get(seq) ?? '') ?? '') || 0;
    const time = (): string => {
      timeMs = Math.max(timeMs, now());
      return new Date(timeMs).toISOString();
    };
    for (const pending of this.#waiting) {
      if (batch.taken >= commitBatchMax || batch.bytes >= commitBatchBytesMax) break;
      batch.taken += 1;
      let plan: WritePlan;
      try {
        const dtu_txn = time();
        const { drafts, answer } = pending.decide(reads);
        plan = planWrites(reads, drafts, {
          by: pending.by,
          txn: newId(),
          dtu_txn,
          dtu_stored: time(),
          firstSeq: seq + 1,
        });
        batch.decided.push({ pending, answer: answer(plan.changes) });
      } catch (error) {
        pending.reject(error);
        continue;
      }
      batch.bytes += putWrites(databases, plan);
      seq += plan.steps.length;
    }
  }
}

interface Batch {
  /** The number of waiting commits that were processed. */
  taken: number;
  bytes: number;
  readonly decided: Decided[];
}

/** The error with which the commits of a failed write transaction reject. */
export async function storageFailure(error: unknown): Promise<Failure> {
  const cause = await writeErrorOf(error);
  if (cause instanceof Failure) return cause;
  return new Failure('unavailable', 'The change could not be stored.', {
    retryAfterSeconds: 1,
    cause,
  });
}
