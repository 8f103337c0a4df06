import { parseDateTime } from '../../model/time.ts';
import { Failure } from '../../model/failure.ts';
import type { PastRules, Reads } from '../../store/store.ts';

/**
 * The part of an input schema by which reading operations take a moment
 * (docs/design/history.md#the-change-log).
 */
export const asOfProperty = {
  type: 'string',
  nullable: true,
  description: 'A seq or a date-time: the answer as it was then, for callers with the scope read.',
} as const;

/** What a moment is looked up in. */
type MomentReads = Pick<Reads, 'seq' | 'seqAt'>;

/**
 * The seq of the newest change at a moment, which is a seq itself or a date-time, in UTC where it
 * names no offset. Fails with `invalid`, naming the field, for any other text and for a seq that
 * the log has not reached.
 */
export function seqOfMoment(reads: MomentReads, field: string, text: string): number {
  const moment = parseMoment(reads, field, text);
  return 'seq' in moment ? moment.seq : reads.seqAt(moment.timeMs);
}

/** The seq of the first change at a moment or after it. Fails as seqOfMoment does. */
export function seqFromMoment(reads: MomentReads, field: string, text: string): number {
  const moment = parseMoment(reads, field, text);
  return 'seq' in moment ? moment.seq : reads.seqAt(moment.timeMs - 1) + 1;
}

/**
 * The time of a moment in milliseconds since 1970: of a seq, when its change was stored. Undefined
 * where no moment is asked for, or nothing had been stored yet; fails as seqOfMoment does.
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
    throw new Failure('invalid', `${field} is beyond the newest change, ${reads.seq()}.`, {
      field,
    });
  }
  // In a query a + that was not percent-encoded stands for a blank.
  const iso = parseDateTime(text) ?? parseDateTime(text.replace(/ (?=\d\d:\d\d$)/, '+'));
  if (iso !== undefined) return { timeMs: Date.parse(iso) };
  const forms = 'a seq such as 17, or a date-time such as 2026-01-31T12:00:00Z';
  throw new Failure('invalid', `${field} must be ${forms}.`, { field });
}

/** The page rules at the moment that a caller asks for; undefined where it asks for none. */
export function rulesThen(
  reads: MomentReads & Pick<Reads, 'at'>,
  asOf: string | undefined | null,
): PastRules | undefined {
  return asOf === undefined || asOf === null
    ? undefined
    : reads.at(seqOfMoment(reads, 'as_of', asOf));
}
