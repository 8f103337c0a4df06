import { isRevertible, type Change, type Draft, type Family, type Placed } from '../change.ts';
import { eventDraft, type EventFields } from '../events/event.ts';
import type { JsonObject } from '../../values/json/json.ts';
import type { SeqClaim } from '../claims.ts';
import type {
  LogFamily,
  LoggedDraft,
  Planning,
  Reads,
  FamilyProjection,
  SharedPlan,
  WrittenRecord,
} from '../store.ts';
import { DataTexts, PlannedEntries, type Marks } from './planned-entries.ts';
import { foldRows, type ApplyChange, type Folded } from './fold.ts';

/** One change with the vk that it claims. */
export interface PlannedStep {
  readonly change: Change;
  readonly claim: SeqClaim | undefined;
  /** The row as it is stored, if it is a copy. */
  readonly text?: string | undefined;
}

/** What decisions leave for the next one of the same transaction. */
export type CarriedPlans = ReadonlyMap<SharedPlan<object>, unknown>;

/** The fields that a plan adds to its changes besides their drafts and seqs. */
type ChangeStamp = Pick<Change, 'dtu_txn' | 'dtu_stored' | 'by' | 'via' | 'txn'>;

/** All writes of one decision. */
export interface WritePlan {
  readonly stamp: ChangeStamp;
  readonly firstSeq: number;
  /** The changes of the drafts, without the events that they raise. */
  readonly changes: readonly Change[];
  readonly steps: readonly PlannedStep[];
  /** The entries of projections. */
  readonly entries: PlannedEntries;
  readonly texts: DataTexts;
  /** For the next decision of the same transaction, if this one is put. */
  readonly carried: CarriedPlans;
  readonly families: readonly LogFamily[];
}

/**
 * Plans the writes of a decision without writing. All checks happen here, so that a decision is
 * written as a whole or not at all. With `newEventId`, the events that tables declare follow the
 * drafts; a copy of a log has them already. Throws the Failures of the families,
 * and an Error for a change that cannot follow, which is a bug of the caller.
 */
export function planWrites(
  reads: Reads,
  drafts: readonly LoggedDraft[],
  {
    firstSeq,
    newEventId,
    carried,
    isCopy,
    ...stamp
  }: ChangeStamp & {
    readonly firstSeq: number;
    readonly newEventId?: () => string;
    /** Of the decision before, in the same transaction. */
    readonly carried?: CarriedPlans | undefined;
    /** Whether another node has decided the changes. */
    readonly isCopy?: boolean;
  },
): WritePlan {
  // Only a record that several drafts change has to be remembered between them.
  const isOnceEach =
    drafts.length < 2 || new Set(drafts.map(({ id }) => id)).size === drafts.length;
  const planning = new OpenPlanning(reads, { carried, isCopy });
  const planner = new Planner(planning, isOnceEach);
  const planned = (draft: LoggedDraft, seq: number): PlannedStep => {
    const { dtu_txn, dtu_stored, by, via, txn } = stamp;
    const { family, id, action, vk, text } = draft;
    const data = planner.dataOf(draft);
    const made: Change = { seq, dtu_txn, dtu_stored, by, txn, family, id, action, data };
    const change = via === undefined ? made : { ...made, via };
    planner.plan(change);
    return { change, claim: vk && { ...vk, seq }, text };
  };
  const steps = drafts.map((draft, index) => planned(draft, firstSeq + index));
  const changes = steps.map(({ change }) => change);
  const events =
    newEventId === undefined ? [] : planning.raised.map((data) => eventDraft(newEventId(), data));
  const raised = events.map((draft, index) => planned(draft, firstSeq + steps.length + index));
  const all = raised.length === 0 ? steps : [...steps, ...raised];
  const { entries, texts } = planning;
  const carriedOn = planning.finish();
  const { families } = reads;
  return { stamp, firstSeq, steps: all, changes, entries, texts, carried: carriedOn, families };
}

/** What the changes of one decision have together while they are planned. */
export class OpenPlanning implements Planning {
  readonly reads: Reads;
  readonly isCopy: boolean;
  readonly entries = new PlannedEntries();
  readonly texts = new DataTexts();
  /** The events that follow the drafts. */
  readonly raised: EventFields[] = [];
  readonly #carried: CarriedPlans;
  readonly #shared = new Map<SharedPlan<object>, object>();

  constructor(
    reads: Reads,
    {
      carried = new Map(),
      isCopy = false,
    }: { readonly carried?: CarriedPlans | undefined; readonly isCopy?: boolean | undefined } = {},
  ) {
    this.reads = reads;
    this.#carried = carried;
    this.isCopy = isCopy;
  }

  shared<P extends object>(plan: SharedPlan<P>): P {
    const known = this.#shared.get(plan) as P | undefined;
    if (known !== undefined) return known;
    const begun = plan.begin(this, this.#carried.get(plan));
    this.#shared.set(plan, begun);
    return begun;
  }

  raise(event: EventFields): void {
    this.raised.push(event);
  }

  /** Plans what changes have together; returns what the next decision may use. */
  finish(): CarriedPlans {
    if (this.#shared.size === 0) return this.#carried;
    const carried = new Map(this.#carried);
    for (const [plan, state] of this.#shared) carried.set(plan, plan.finish?.(state));
    return carried;
  }
}

/** Plans the effects of one decision on the projections. */
class Planner {
  readonly #reads: Reads;
  readonly #planning: Planning;
  readonly #isOnceEach: boolean;
  // Several changes of one decision may concern the same record.
  readonly #records = new Map<string, WrittenRecord>();

  constructor(planning: Planning, isOnceEach: boolean) {
    this.#reads = planning.reads;
    this.#planning = planning;
    this.#isOnceEach = isOnceEach;
  }

  /** The data of a change. */
  dataOf(draft: Draft): JsonObject {
    const { family, id, action, data } = draft;
    const projection = this.#reads.projectionOf(family);
    if (projection?.dataOf === undefined || action === 'insert') return data;
    return projection.dataOf(this.#reads, draft, this.#record(family, id));
  }

  /** Plans the next change. */
  plan(change: Change): void {
    const family = this.#reads.projectionOf(change.family);
    if (family === undefined) return;
    const record = this.#record(change.family, change.id);
    const after = this.#after(record, change, family);
    if (!this.#isOnceEach) {
      const next = { stored: after, written: [...record.written, change] };
      this.#records.set(`${change.family} ${change.id}`, next);
    }
    family.plan(this.#planning, change, { before: record.stored, after });
  }

  /** The state of a record, and the changes of this decision to it. */
  #record(family: Family, id: string): WrittenRecord {
    const written = this.#isOnceEach ? undefined : this.#records.get(`${family} ${id}`);
    if (written !== undefined) return written;
    return { stored: this.#reads.projectionOf(family)?.stored(this.#reads, id), written: [] };
  }

  /** Most rows follow from the state before them; an invalidate needs all rows of its record. */
  #after(
    { stored, written }: WrittenRecord,
    change: Change,
    family: FamilyProjection<object>,
  ): object | undefined {
    if (change.action !== 'invalidate' || !isRevertible(change.family)) {
      return family.fold(stored, change);
    }
    const apply: ApplyChange<Placed> = (before, row) => family.fold(before, row) as Placed;
    const rows = [...this.#reads.rows(change.family, change.id), ...written];
    const [before, after] = [foldRows(rows, apply), foldRows([...rows, change], apply)];
    this.#planning.entries.mark(marksBetween(before, after));
    return after.stored;
  }
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
