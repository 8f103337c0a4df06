import { Failure } from '../../model/failure.ts';
import type { Databases } from '../databases.ts';
import { commitQueueMax } from '../limits.ts';
import { storedAt } from '../projections/reads.ts';
import type { Reads, Store } from '../store.ts';
import { planWrites } from './write-plan.ts';
import { putWrites } from './write-puts.ts';
import { copyFailure, identityOf } from './create-row-log.ts';
import type { WriteQueue } from './write-queue.ts';

/** The dependencies of a commit; `now` in milliseconds since 1970. */
interface CommitParts {
  readonly databases: Databases;
  readonly reads: Reads;
  readonly queue: WriteQueue;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Creates `Store.commit`, which queues a decision; the write queue runs it in a transaction. */
export function createCommit(parts: CommitParts): Store['commit'] {
  const { databases, reads, queue, now, newId } = parts;
  return async (by, decide) => {
    if (queue.length >= commitQueueMax) {
      throw new Failure('unavailable', 'Too many changes at once.', { retryAfterSeconds: 1 });
    }
    return queue.write(() => {
      const seq = reads.seq();
      // Times must never go back, even if the clock does, because reads search them.
      let timeMs = Date.parse(storedAt(databases, seq) ?? '') || 0;
      const time = (): string => {
        timeMs = Math.max(timeMs, now());
        return new Date(timeMs).toISOString();
      };
      const decided = time();
      const { follows } = identityOf(databases);
      if (follows !== undefined) throw copyFailure(follows);
      const { drafts, answer, dtu_txn = decided } = decide(reads);
      const stamp = { by, txn: newId(), dtu_txn, dtu_stored: time() };
      const plan = planWrites(reads, drafts, { ...stamp, firstSeq: seq + 1, newEventId: newId });
      const result = answer(plan.changes);
      return () => ({ result, bytes: putWrites(databases, plan) });
    });
  };
}
