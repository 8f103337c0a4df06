import { Failure } from '../../model/failure.ts';
import type { Store } from '../../store/store.ts';
import type { OperationResult, Stream } from '../operation.ts';

/** The log as operations that stream read it. */
export type StreamedLog = Pick<Store, 'seq' | 'changesAfter'>;

/** The input field of an operation that streams: where it goes on after a lost connection. */
export const fromSeqProperty = {
  type: 'integer',
  minimum: 0,
  nullable: true,
  description: 'Changes after this seq come; after now where it is left out.',
} as const;

/**
 * The seq of now, and then the changes behind `from`, or behind now where that is not given. Throws
 * `invalid` for a seq that the log has not reached.
 */
export function streamFrom(
  store: StreamedLog,
  from: number | undefined,
  matches: Stream['matches'],
): OperationResult {
  const seq = store.seq();
  const after = from ?? seq;
  if (after > seq) {
    throw new Failure('invalid', `from_seq is beyond the newest change, ${seq}.`, {
      field: 'from_seq',
    });
  }
  const changesAfter: Stream['changesAfter'] = (...asked) => store.changesAfter(...asked);
  return { kind: 'stream', data: { seq }, stream: { after, changesAfter, matches } };
}
