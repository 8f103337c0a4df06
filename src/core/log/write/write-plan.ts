import { isRevertible, type Change, type Draft, type Family } from '../change.ts';
import { eventDraft, type EventFields } from '../events/event.ts';
import type { JsonObject } from '../../values/json/json.ts';
import type { StoredRow } from '../../../modules/tables/row.ts';
import type { StoredTable, TableDefinition } from '../../../modules/tables/table.ts';
import {
  eventsShowValues,
  raisesEvent,
  tableEventData,
  tableEvents,
  type TableEvent,
} from '../../../modules/tables/table-events.ts';
import type { SeqClaim } from '../claims.ts';
import type { LoggedDraft, Reads } from '../store.ts';
import { DataTexts, PlannedEntries, type Marks, PlannedPlaces } from './planned-entries.ts';
import { familyProjection, type FamilyProjection, type Planning } from './families.ts';
import { foldRows, type ApplyChange, type Folded } from './fold.ts';
import { PlannedRows, type CarriedTables } from '../../../modules/tables/log/planned-rows.ts';

/** One change with the vk that it claims. */
export interface PlannedStep {
  readonly change: Change;
  readonly claim: SeqClaim | undefined;
  /** The row as it is stored, if it is a copy. */
  readonly text?: string | undefined;
}

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
  readonly tables: CarriedTables | undefined;
}

/**
 * Plans the writes of a decision without writing. All checks happen here, so that a decision is
 * written as a whole or not at all. With `newEventId`, the events that tables declare follow the
 * drafts; a copy of a log has them already. Throws the Failures of the projections (families.ts),
 * and an Error for a change that cannot follow, which is a bug of the caller.
 */
export function planWrites(
  reads: Reads,
  drafts: readonly LoggedDraft[],
  {
    firstSeq,
    newEventId,
    tables: carried,
    ...stamp
  }: ChangeStamp & {
    readonly firstSeq: number;
    readonly newEventId?: () => string;
    /** The tables after the decision before, in the same transaction. */
    readonly tables?: CarriedTables | undefined;
  },
): WritePlan {
  // Only a record that several drafts change has to be remembered between them.
  const isOnceEach =
    drafts.length < 2 || new Set(drafts.map(({ id }) => id)).size === drafts.length;
  const planner = new Planner(reads, { isOnceEach, carried });
  const planned = (draft: LoggedDraft, seq: number): PlannedStep => {
    const { dtu_txn, dtu_stored, by, via, txn } = stamp;
    const { family, id, action, vk, text } = draft;
    const data = planner.loggedData(draft);
    const made: Change = { seq, dtu_txn, dtu_stored, by, txn, family, id, action, data };
    const change = via === undefined ? made : { ...made, via };
    planner.plan(change);
    return { change, claim: vk && { ...vk, seq }, text };
  };
  const steps = drafts.map((draft, index) => planned(draft, firstSeq + index));
  const changes = steps.map(({ change }) => change);
  const events =
    newEventId === undefined ? [] : planner.raised.map((data) => eventDraft(newEventId(), data));
  const raised = events.map((draft, index) => planned(draft, firstSeq + steps.length + index));
  const all = raised.length === 0 ? steps : [...steps, ...raised];
  return { stamp, firstSeq, steps: all, changes, ...planner.finish() };
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
  readonly #isOnceEach: boolean;
  readonly #texts = new DataTexts();
  // Several changes of one decision may concern the same record.
  readonly #records = new Map<string, WrittenRecord>();
  readonly #tables = new Map<string, DeclaredEvents>();
  /** The events that the tables of changed rows declare. */
  readonly raised: EventFields[] = [];

  constructor(
    reads: Reads,
    {
      isOnceEach,
      carried,
    }: { readonly isOnceEach: boolean; readonly carried: CarriedTables | undefined },
  ) {
    this.#reads = reads;
    this.#isOnceEach = isOnceEach;
    const entries = new PlannedEntries();
    const places = new PlannedPlaces(reads);
    const rows = new PlannedRows(reads, { entries, texts: this.#texts, carried });
    this.#planning = { entries, places, rows, texts: this.#texts };
  }

  /** The data of a change. Each change of a row names the table, so that it says what changed. */
  loggedData({ family, id, action, data }: Draft): JsonObject {
    if (family !== 'record' || action === 'insert' || data.table !== undefined) return data;
    const { stored, written } = this.#record('record', id);
    const table = (stored as StoredRow | undefined)?.row.table;
    const [first] = table === undefined ? this.#reads.rows('record', id) : [];
    const name = table ?? (first ?? written[0])?.data.table;
    return name === undefined ? data : { table: name, ...data };
  }

  /** Plans the next change. */
  plan(change: Change): void {
    const projection = familyProjection(change.family);
    if (projection === undefined) return;
    const { stored: before, written } = this.#record(change.family, change.id);
    const after = this.#after({ stored: before, written }, change, projection);
    if (!this.#isOnceEach) {
      const record = { stored: after, written: [...written, change] };
      this.#records.set(`${change.family} ${change.id}`, record);
    }
    projection.plan(this.#planning, change, { before, after });
    if (change.family === 'record') {
      this.#raise(change, before as StoredRow | undefined, after as StoredRow | undefined);
    }
    if (change.family === 'table' && after !== undefined) {
      const { table } = after as StoredTable;
      this.#tables.set(table.name, declaredEvents(table));
    }
  }

  /** Returns the entries of all changes, and the tables after them. */
  finish(): Pick<WritePlan, 'entries' | 'tables' | 'texts'> {
    const { entries, rows } = this.#planning;
    const tables = rows.finish();
    return { entries, tables, texts: this.#texts };
  }

  /** The state of a record, and the changes of this decision to it. */
  #record(family: Family, id: string): WrittenRecord {
    const written = this.#isOnceEach ? undefined : this.#records.get(`${family} ${id}`);
    if (written !== undefined) return written;
    return { stored: familyProjection(family)?.stored(this.#reads, id), written: [] };
  }

  /** Adds the events that a change of a row raises (docs/design/webhooks.md#events-of-tables). */
  #raise({ dtu_txn }: Change, before: StoredRow | undefined, after: StoredRow | undefined): void {
    if (after === undefined) return;
    const { table } = after.row;
    const { events, ...shown } = this.#declared(table);
    for (const event of events) {
      if (!raisesEvent(event, before?.row, after.row)) continue;
      const data = tableEventData(event, { before: before?.row, after: after.row, ...shown });
      this.raised.push({ type: event.type, occurred_at: dtu_txn, data, table });
    }
  }

  #declared(name: string): DeclaredEvents {
    const known = this.#tables.get(name);
    if (known !== undefined) return known;
    const declared = declaredEvents(this.#reads.table(name)?.table ?? {});
    this.#tables.set(name, declared);
    return declared;
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

/** The events that a table declares, and the property that identifies its rows. */
interface DeclaredEvents {
  readonly key: string | undefined;
  readonly showsValues: boolean;
  readonly events: readonly TableEvent[];
}

/** By definition: the store parses each version of one once. */
const declaredBy = new WeakMap<Partial<TableDefinition>, DeclaredEvents>();

function declaredEvents(definition: Partial<TableDefinition>): DeclaredEvents {
  const known = declaredBy.get(definition);
  if (known !== undefined) return known;
  const { key, schema, events, read } = definition;
  const shown = { key, showsValues: eventsShowValues(read) };
  const declared = { ...shown, events: tableEvents(events, schema) };
  declaredBy.set(definition, declared);
  return declared;
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
