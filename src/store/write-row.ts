import type { Change } from '../model/change.ts';
import { foldRows, type Folded, type FoldOne } from './fold.ts';
import type { Reads } from './store.ts';

/** A record before and after a change; undefined if it does not exist. */
export interface Transition<T> {
  readonly before: T | undefined;
  readonly after: T | undefined;
}

/** A record in the middle of a decision, with the rows that the decision has added to it. */
export interface WrittenRow<S> {
  readonly stored: S | undefined;
  readonly written: readonly Change[];
}

/** Seqs of rows, each with the row that invalidates it, if any. */
export type Marks = readonly (readonly [number, Change | undefined])[];

/** Most rows follow from the state before them; an invalidate needs all rows of its record. */
export function afterRow<S extends { readonly seq: number; readonly insertedSeq: number }>(
  reads: Reads,
  { stored, written }: WrittenRow<S>,
  change: Change,
  foldOne: FoldOne<S>,
): { readonly stored: S | undefined; readonly marks: Marks } {
  if (change.action !== 'invalidate') return { stored: foldOne(stored, change), marks: [] };
  const rows = [...reads.rows(change.family, change.id), ...written];
  const [before, after] = [foldRows(rows, foldOne), foldRows([...rows, change], foldOne)];
  return { stored: after.stored, marks: marksBetween(before, after) };
}

function marksBetween(
  before: Pick<Folded<never>, 'invalidated'>,
  after: Pick<Folded<never>, 'invalidated'>,
): Marks {
  const seqs = new Set([...before.invalidated.keys(), ...after.invalidated.keys()]);
  return [...seqs]
    .filter((seq) => before.invalidated.get(seq)?.seq !== after.invalidated.get(seq)?.seq)
    .map((seq) => [seq, after.invalidated.get(seq)] as const);
}
