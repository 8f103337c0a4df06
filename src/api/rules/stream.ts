import { Failure } from '../../model/failure.ts';
import type { Store } from '../../store/store.ts';
import type { OperationResult, Stream } from '../operation.ts';

/** The reads of the log that operations need to stream it. */
export type StreamedLog = Pick<Store, 'seq' | 'changesAfter'>;

/** The input field from which a subscriber resumes after a lost connection. */
export const fromSeqProperty = {
  type: 'integer',
  minimum: 0,
  nullable: true,
  description: 'Send changes after this seq; by default, those after the current one.',
} as const;

/**
 * The current seq, and then the changes after `from`, by default after the current seq. Throws
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
    throw new Failure('invalid', `from_seq is greater than the newest seq, ${seq}.`, {
      field: 'from_seq',
    });
  }
  const changesAfter: Stream['changesAfter'] = (...given) =>
    store.changesAfter(['userinterface'], ...given);
  return { kind: 'stream', data: { seq }, stream: { after, changesAfter, matches } };
}
