import { instantMs } from '../../values/time.ts';
import { Failure } from '../../values/failure.ts';
import type { Reads } from '../../log/store.ts';

/** The input field of a moment of the past (docs/design/history.md#the-change-log). */
export const asOfProperty = {
  type: 'string',
  nullable: true,
  description: 'A seq or a date-time: the answer as it was then. It needs the scope read.',
} as const;

/** The reads that find a moment in the log. */
type MomentReads = Pick<Reads, 'seq' | 'seqAt'>;

/**
 * The seq of the newest change at a moment: a seq, or a date-time, which is in UTC unless it has an
 * offset. Throws `invalid` for another text, and for a seq that the log has not reached.
 */
export function seqOfMoment(reads: MomentReads, field: string, text: string): number {
  const moment = parseMoment(reads, field, text);
  return 'seq' in moment ? moment.seq : reads.seqAt(moment.timeMs);
}

/** The seq of the first change at a moment or after it. Throws as seqOfMoment does. */
export function seqFromMoment(reads: MomentReads, field: string, text: string): number {
  const moment = parseMoment(reads, field, text);
  return 'seq' in moment ? moment.seq : reads.seqAt(Math.ceil(moment.timeMs) - 1) + 1;
}

/**
 * The time of a moment in milliseconds since 1970; that of a seq is when its change was stored.
 * Undefined without a moment, and before the first change. Throws as seqOfMoment does.
 */
export function timeThen(
  reads: MomentReads & Pick<Reads, 'change'>,
  asOf: string | undefined,
): number | undefined {
  if (asOf === undefined) return undefined;
  const moment = parseMoment(reads, 'as_of', asOf);
  if ('timeMs' in moment) return moment.timeMs;
  const change = reads.change(moment.seq);
  return change && Date.parse(change.dtu_stored);
}

function parseMoment(
  reads: MomentReads,
  field: string,
  text: string,
): { readonly seq: number } | { readonly timeMs: number } {
  if (/^\d{1,10}$/.test(text)) {
    const seq = Number(text);
    if (seq <= reads.seq()) return { seq };
    throw new Failure('invalid', `${field} is greater than the newest seq, ${reads.seq()}.`, {
      field,
    });
  }
  // In a query, a + that is not percent-encoded means a blank.
  const [timeMs = NaN] = [text, text.replace(/ (?=\d\d:\d\d$)/, '+')]
    .map(instantMs)
    .filter((one) => !Number.isNaN(one));
  if (!Number.isNaN(timeMs)) return { timeMs };
  const forms = 'a seq such as 17, or a date-time such as 2026-01-31T12:00:00Z';
  throw new Failure('invalid', `${field} must be ${forms}.`, { field });
}
