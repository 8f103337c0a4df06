import { Failure } from '../../values/failure.ts';
import type { RevertibleFamily, Placed } from '../../log/change.ts';
import type { RecordChange, Store } from '../../log/store.ts';
import { catchUpTo } from '../../log/catch-up.ts';
import type { ChangeStream, Feed, OperationResult } from '../operation.ts';

/** The reads of the log that operations need to stream it. */
export type StreamedLog = Pick<Store, 'seq' | 'changesAfter' | 'shared'>;

/** The input field from which a subscriber resumes after a lost connection. */
export const fromSeqProperty = {
  type: 'integer',
  minimum: 0,
  nullable: true,
  description: 'Send changes after this seq; by default, those after the current one.',
} as const;

/**
 * The current seq, and then the changes of a family after `from`, by default after the current seq.
 * Rejects with `invalid` for a seq that the log has not reached.
 */
export async function streamFrom<S extends Placed>(
  store: StreamedLog,
  from: number | undefined,
  {
    family,
    matches,
    others,
  }: {
    readonly family: RevertibleFamily;
    readonly matches: (change: RecordChange<S>) => boolean;
    readonly others?: Feed;
  },
): Promise<OperationResult<{ readonly seq: number }>> {
  await catchUpTo(store, from ?? 0);
  const seq = store.seq();
  const after = from ?? seq;
  if (after > seq) {
    throw new Failure('invalid', `from_seq is greater than the newest seq, ${seq}.`, {
      field: 'from_seq',
    });
  }
  const changesAfter: ChangeStream['changesAfter'] = (...given) => store.changesAfter(...given);
  const isOfFamily: ChangeStream['matches'] = (change) => {
    return change.change.family === family && matches(change as RecordChange<S>);
  };
  const stream = {
    ...{ after, changesAfter, family, matches: isOfFamily },
    ...(others !== undefined && { others }),
  };
  return { kind: 'stream', data: { seq }, stream };
}
