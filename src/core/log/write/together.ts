import { Failure } from '../../values/failure.ts';
import type { Change, ChangeAuthor } from '../change.ts';
import type { Databases } from '../databases.ts';
import { transactHeld } from '../environment.ts';
import { unfollowedParts } from '../part.ts';
import { sharedFailure, sharedPlace } from '../shared/shared-place.ts';
import type { LoggedDraft, Reads, Store } from '../store.ts';
import { createCommit, createHeldWriter } from './commit.ts';
import { storageFailure } from './write-queue.ts';

/** How often changes that belong together are made anew because another node has written. */
const togetherAttemptsMax = 5;

interface TogetherParts {
  readonly databases: Databases;
  readonly reads: Reads;
  /** Undefined for a folder that shares its log with other nodes. */
  readonly sharedCommit: Store['commit'] | undefined;
  readonly now: () => number;
  readonly newId: () => string;
}

/**
 * Creates `Store.together`. On a single machine, the commits are puts into one LMDB transaction.
 * With a log that nodes share, that transaction is a rehearsal: it is rolled back, and all drafts
 * go to the other nodes as one decision, unless the log has moved on meanwhile.
 */
export function createTogether(parts: TogetherParts, store: () => Store): Store['together'] {
  const { databases, reads, sharedCommit } = parts;
  return async (run, isKept) => {
    if (sharedCommit === undefined) {
      if (sharedPlace(databases) !== undefined) throw sharedFailure();
      const { result } = await held(parts, store(), run, isKept);
      return { result, seqOf: (seq) => seq };
    }
    for (let attempt = 1; attempt <= togetherAttemptsMax; attempt += 1) {
      const rehearsed = await held(parts, store(), run, () => false);
      const { result, written, author, startSeq } = rehearsed;
      const drafts = written.flatMap((one) => one.drafts);
      if (!isKept(result) || drafts.length === 0 || author === undefined) {
        return { result, seqOf: (seq) => seq };
      }
      const changes = await sharedCommit<readonly Change[] | undefined>(author, () => {
        if (reads.seq() !== startSeq) return { drafts: [], answer: () => undefined };
        return { drafts, answer: (rows) => rows };
      });
      if (changes === undefined) continue;
      const former = written.flatMap((one) => one.seqs);
      const seqs = new Map(former.map((seq, at) => [seq, changes[at]?.seq ?? seq]));
      return { result, seqOf: (seq) => seqs.get(seq) ?? seq };
    }
    throw new Failure(
      'unavailable',
      'Other nodes wrote all the time, so these changes found no moment for all of them at once. ' +
        'Repeat the request.',
      { retryAfterSeconds: 1 },
    );
  };
}

/** The changes that were put, and the state of the log before them. */
interface Held<T> {
  readonly result: T;
  readonly startSeq: number;
  readonly author: ChangeAuthor | undefined;
  readonly written: readonly WrittenDrafts[];
}

/** The drafts of one decision, and the seqs that they got. */
interface WrittenDrafts {
  readonly drafts: readonly LoggedDraft[];
  readonly seqs: readonly number[];
}

/** Runs commits in one transaction, and rolls back if one of them, or `run`, fails. */
async function held<T>(
  { databases, reads, now, newId }: TogetherParts,
  store: Store,
  run: (store: Store) => Promise<T>,
  isKept: (result: T) => boolean,
): Promise<Held<T>> {
  const written: WrittenDrafts[] = [];
  let author: ChangeAuthor | undefined;
  let decidedAt: string | undefined;
  let startSeq = 0;
  const txn = newId();
  const commit = createCommit({
    ...{ databases, reads, now, newId },
    writer: createHeldWriter(databases, txn),
    txn: () => txn,
  });
  const inside: Store = {
    ...store,
    // The answer to each change is made before any delivery can follow it.
    part: unfollowedParts(store),
    commit: (by, decide) =>
      commit(by, (before) => {
        const decision = decide(before);
        const { drafts, answer } = decision;
        return {
          ...decision,
          ...(decidedAt !== undefined && { dtu_txn: decidedAt }),
          answer: (rows) => {
            author ??= by;
            decidedAt ??= rows[0]?.dtu_txn;
            written.push({ drafts, seqs: rows.map(({ seq }) => seq) });
            return answer(rows);
          },
        };
      }),
  };
  try {
    const whole = (): Promise<T> => {
      startSeq = reads.seq();
      return run(inside);
    };
    const result = await transactHeld(databases.environment, whole, isKept);
    return { result, startSeq, author, written };
  } catch (error) {
    throw (error as { code?: unknown }).code === undefined || error instanceof Failure
      ? error
      : await storageFailure(error);
  }
}
