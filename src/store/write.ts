import type { Change } from '../model/change.ts';
import type { StoredRule } from '../model/rule.ts';
import { candidatePlace } from './candidates.ts';
import type { CandidatePlace } from './place-values.ts';
import { foldRule } from './fold.ts';
import type { LoggedDraft, Reads, ReadyInsert } from './store.ts';
import type { Stamp, WriteStep, WritePlan } from './write-plan.ts';
import { RecordPlanner } from './write-records.ts';
import { afterRow, type WrittenRow } from './write-row.ts';

/**
 * Plans the writes of a decision without writing. All checks happen here, so that a decision is
 * written as a whole or not at all; a caller with prepared drafts calls roomFailure first. Throws
 * Failures of candidatePlace and roomFailure, and an Error for a change that cannot follow, which
 * is a bug of the caller.
 */
export function planWrites(
  reads: Reads,
  drafts: readonly (LoggedDraft | ReadyInsert)[],
  { firstSeq, ...stamp }: Stamp & { readonly firstSeq: number },
): WritePlan {
  // Several drafts of one decision may concern the same record.
  const rules = new Map<string, WrittenRow<StoredRule>>();
  const places = new PlannedPlaces(reads);
  const records = new RecordPlanner(reads);
  const steps = drafts.map((draft, index): WriteStep => {
    if ('ready' in draft) return draft;
    const seq = firstSeq + index;
    const { dtu_txn, dtu_stored, by, txn } = stamp;
    const { family, id, action, data, vk } = draft;
    const change: Change = { seq, dtu_txn, dtu_stored, by, txn, family, id, action, data };
    const claim = vk && { ...vk, seq };
    if (family !== 'userinterface') {
      return { change, claim, rule: undefined, ...records.plan(change) };
    }
    const state = rules.get(id) ?? { stored: reads.rule(id), written: [] };
    const { stored: after, marks } = afterRow(reads, state, change, foldRule);
    const place = after && candidatePlace(after);
    places.move(state.stored && candidatePlace(state.stored), place);
    rules.set(id, { stored: after, written: [...state.written, change] });
    const rule = { before: state.stored, after, place };
    return { change, claim, rule, marks, putRecord: undefined };
  });
  const changes = steps.flatMap((step) => ('change' in step ? step.change : []));
  return { stamp, firstSeq, steps, changes };
}

/** Counts the rules that one decision adds to each place. */
class PlannedPlaces {
  readonly #reads: Reads;
  readonly #more = new Map<string, number>();

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Moves a rule to another place. Throws `too_large` if that has no room. */
  move(from: CandidatePlace | undefined, to: CandidatePlace | undefined): void {
    const [left, reached] = [from, to].map((place) => place && nameOf(place));
    if (left === reached) return;
    if (to !== undefined && reached !== undefined) {
      const planned = this.#more.get(reached) ?? 0;
      const failure = this.#reads.roomFailure(to, planned);
      if (failure !== undefined) throw failure;
      this.#more.set(reached, planned + 1);
    }
    if (left !== undefined) this.#more.set(left, (this.#more.get(left) ?? 0) - 1);
  }
}

function nameOf({ database, key }: CandidatePlace): string {
  return `${database} ${key.toString('latin1')}`;
}
