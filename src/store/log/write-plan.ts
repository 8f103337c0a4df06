import { isRevertible, type Change } from '../../model/change.ts';
import type { SeqClaim } from '../projections/claims.ts';
import type { LoggedDraft, Reads, PreparedInsert } from '../store.ts';
import { familyProjection, type FamilyProjection, type Planning } from './families.ts';
import { foldRows, type ApplyChange, type Folded } from './fold.ts';
import { PlannedEntries, type Marks } from './planned-entries.ts';
import { PlannedPlaces } from './planned-places.ts';
import { PlannedRows } from './planned-rows.ts';

/** One change with the vk that it claims. */
export interface PlannedStep {
  readonly change: Change;
  readonly claim: SeqClaim | undefined;
  /** The row as it is stored, if it is a copy. */
  readonly text?: string | undefined;
}

/** The source of one row of the log; the texts of a prepared insert are made last. */
export type WriteStep = PlannedStep | PreparedInsert;

/** The fields that a plan adds to its changes besides their drafts and seqs. */
export type ChangeStamp = Pick<Change, 'dtu_txn' | 'dtu_stored' | 'by' | 'txn'>;

/** All writes of one decision. */
export interface WritePlan {
  readonly stamp: ChangeStamp;
  readonly firstSeq: number;
  /** The changes of the drafts that were not prepared. */
  readonly changes: readonly Change[];
  readonly steps: readonly WriteStep[];
  /** The entries of projections, without those of prepared inserts. */
  readonly entries: PlannedEntries;
}

/**
 * Plans the writes of a decision without writing. All checks happen here, so that a decision is
 * written as a whole or not at all; a caller with prepared drafts calls roomFailure first. Throws
 * the Failures of the projections (families.ts), and an Error for a change that cannot follow,
 * which is a bug of the caller.
 */
export function planWrites(
  reads: Reads,
  drafts: readonly (LoggedDraft | PreparedInsert)[],
  { firstSeq, ...stamp }: ChangeStamp & { readonly firstSeq: number },
): WritePlan {
  const planner = new Planner(reads);
  const steps = drafts.map((draft, index): WriteStep => {
    if ('prepared' in draft) return draft;
    const seq = firstSeq + index;
    const { dtu_txn, dtu_stored, by, txn } = stamp;
    const { family, id, action, data, vk, text } = draft;
    const change: Change = { seq, dtu_txn, dtu_stored, by, txn, family, id, action, data };
    planner.plan(change);
    return { change, claim: vk && { ...vk, seq }, text };
  });
  const changes = steps.flatMap((step) => ('change' in step ? step.change : []));
  return { stamp, firstSeq, steps, changes, entries: planner.finish() };
}

/** A record in the middle of a decision, with the rows that the decision has added to it. */
interface WrittenRecord {
  readonly stored: object | undefined;
  readonly written: readonly Change[];
}

/** Plans the effects of one decision on the projections. */
class Planner {
  readonly #reads: Reads;
  readonly #planning: Planning;
  // Several changes of one decision may concern the same record.
  readonly #records = new Map<string, WrittenRecord>();

  constructor(reads: Reads) {
    this.#reads = reads;
    const entries = new PlannedEntries();
    const [places, rows] = [new PlannedPlaces(reads), new PlannedRows(reads, entries)];
    this.#planning = { entries, places, rows };
  }

  /** Plans the next change. */
  plan(change: Change): void {
    const projection = familyProjection(change.family);
    if (projection === undefined) return;
    const name = `${change.family} ${change.id}`;
    const { stored: before, written } = this.#records.get(name) ?? {
      stored: projection.stored(this.#reads, change.id),
      written: [],
    };
    const after = this.#after({ stored: before, written }, change, projection);
    this.#records.set(name, { stored: after, written: [...written, change] });
    projection.plan(this.#planning, change, { before, after });
  }

  /** Returns the entries of all changes. */
  finish(): PlannedEntries {
    const { entries, rows } = this.#planning;
    rows.finish();
    return entries;
  }

  /** Most rows follow from the state before them; an invalidate needs all rows of its record. */
  #after(
    { stored, written }: WrittenRecord,
    change: Change,
    projection: FamilyProjection<object>,
  ): object | undefined {
    if (change.action !== 'invalidate' || !isRevertible(change.family)) {
      return projection.fold(stored, change);
    }
    const apply: ApplyChange<FoldedState> = (before, row) =>
      projection.fold(before, row) as FoldedState;
    const rows = [...this.#reads.rows(change.family, change.id), ...written];
    const [before, after] = [foldRows(rows, apply), foldRows([...rows, change], apply)];
    this.#planning.entries.mark(marksBetween(before, after));
    return after.stored;
  }
}

interface FoldedState {
  readonly seq: number;
  readonly insertedSeq: number;
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
