import { storedTables } from '../../tables/log/family.ts';
import type { TableCounts } from '../../tables/log/reads.ts';
import { type Change, isRevertible } from '../../../core/log/change.ts';
import type { Databases } from '../../../core/log/databases.ts';
import {
  historyKey,
  historyKeyOf,
  historyPrefix,
  keyOf,
  storedJson,
} from '../../../core/log/encoding.ts';
import type { LogFamily, Reads, FamilyProjection } from '../../../core/log/store.ts';
import { foldRows } from '../../../core/log/write/fold.ts';
import type { PlannedEntry } from '../../../core/log/write/planned-entries.ts';
import { OpenPlanning } from '../../../core/log/write/write-plan.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { StoredTable } from '../../tables/table.ts';
import { type DraftedFamily, type SiteDraft, changeInDraft, isDrafted } from '../draft.ts';
import {
  type DraftEntry,
  type LayeredName,
  draftEnd,
  draftEntryKey,
  draftEntryValue,
  draftPrefix,
  isLayered,
  layerPrefix,
  removeOfDraft,
} from './draft-entries.ts';
import { type DraftPlace, createDraftReads, markKey } from './draft-reads.ts';
import {
  type DraftedRecord,
  type DraftedRecordName,
  createDraftsReads,
  draftRecordKey,
} from './drafts-reads.ts';
import { addDraftCounts } from './layered-database.ts';
import { withReads } from '../../../core/log/reads.ts';

/** What a draft changes of a record, as `draftrecord` has it. */
interface StoredDraftRecord extends DraftedRecord {
  /** Its keys in `draftentry` behind the draft, in base64url, each behind `+` or `-`. */
  readonly entries: readonly string[];
  /** The table of a row, and by how much the draft changes its size. */
  readonly table?: string;
  readonly counts?: TableCounts;
}

/** What a draft changes of a record, with the entries themselves: keys in hexadecimal digits. */
interface DerivedRecord {
  readonly stored: StoredDraftRecord;
  readonly entries: ReadonlyMap<string, string>;
}

/** A record to derive, with the changes of the draft to it; undefined if there were others. */
interface NotedRecord extends DraftedRecordName {
  readonly added: readonly Change[] | undefined;
}

/** A record as a draft leaves it. */
interface FoldedRecord {
  readonly name: Omit<StoredDraftRecord, 'entries' | 'counts' | 'problem'>;
  readonly after: object | undefined;
  readonly newest: Change;
  /** The entries of the marks that differ from the live ones: keys in hexadecimal digits. */
  readonly marks: readonly (readonly [string, string])[];
}

/**
 * Derives again what drafts change of the records that a transaction has written: those of the
 * drafts, and the live records under them. The caller runs it in the write transaction, after all
 * other puts of that.
 */
export function refreshDrafts(
  databases: Databases,
  families: readonly LogFamily[],
  changes: readonly Change[],
): void {
  const layers = new Map<number, DraftLayer>();
  const layerOf = (draft: number): DraftLayer => {
    const known =
      layers.get(draft) ?? new DraftLayer(databases, families, placeOf(databases, draft));
    layers.set(draft, known);
    return known;
  };
  // A draft that ends here changes nothing any more.
  for (const { family, id } of changes) if (family === 'draft') endDraft(databases, id);
  const hasRecords = createHasRecords(databases);
  for (const change of changes) {
    const inside = changeInDraft(change);
    if (inside !== undefined) {
      const draft = draftOf(databases, inside.draft);
      layerOf(draft.insertedSeq).add(inside.change);
    } else if (isDrafted(change.family) && hasRecords()) {
      const { family, id } = change;
      for (const draft of draftsTouching(databases, id)) layerOf(draft).note({ family, id });
      if (family === 'table') for (const draft of openDrafts(databases)) layerOf(draft).rows(id);
    }
  }
  for (const layer of layers.values()) layer.refresh();
}

/** Derives the rows of some tables in all open drafts anew, as after a change of the tables. */
export function refreshDraftedRows(
  databases: Databases,
  families: readonly LogFamily[],
  tables: readonly string[],
): void {
  if (tables.length === 0) return;
  for (const draft of openDrafts(databases)) {
    const layer = new DraftLayer(databases, families, placeOf(databases, draft));
    for (const id of tables) layer.rows(id);
    layer.refresh();
  }
}

/** Whether any draft changes any record: one read for a transaction, and usually false. */
function createHasRecords({ drafttouch }: Databases): () => boolean {
  let known: boolean | undefined;
  return () => (known ??= [...drafttouch.getKeys({ limit: 1 })].length > 0);
}

/** Removes everything that was derived for a draft that is no longer open. */
function endDraft(databases: Databases, id: string): void {
  const draft = draftOf(databases, id);
  if (draft.state === 'open') return;
  const { draftentry, draftrecord, drafttouch } = databases;
  const number = draft.insertedSeq;
  const range = { start: draftPrefix(number), end: draftEnd(number) };
  for (const { value } of draftrecord.getRange(range)) {
    const { id: record } = storedJson(value) as StoredDraftRecord;
    drafttouch.removeSync(historyKeyOf(record, number));
  }
  removeOfDraft(draftentry, number);
  removeOfDraft(draftrecord, number);
}

function draftOf({ draft }: Databases, id: string): SiteDraft {
  const text = draft.get(keyOf(id));
  if (text === undefined) throw new Error(`there is no draft ${id}`);
  return storedJson(text) as SiteDraft;
}

function openDrafts(databases: Databases): readonly number[] {
  const open = createDraftsReads(databases).draftsIn('open');
  return Array.from(open, ({ insertedSeq }) => insertedSeq);
}

/** The draft of a number: the log names it in its insert. */
function placeOf({ log }: Databases, insertedSeq: number): DraftPlace {
  const text = log.get(insertedSeq);
  if (text === undefined) throw new Error(`the log has no change ${insertedSeq}`);
  return { id: (storedJson(text) as Change).id, insertedSeq };
}

/** The drafts that change a record. */
function draftsTouching({ drafttouch }: Databases, id: string): readonly number[] {
  const prefix = historyPrefix(id);
  const range = { start: historyKey(prefix, 0), end: historyKey(prefix, 0xffff_ffff) };
  return [...drafttouch.getKeys(range)].map((key) =>
    new DataView(key.buffer, key.byteOffset).getUint32(prefix.length),
  );
}

/** The entries of one draft, which are derived record by record. */
class DraftLayer {
  readonly #databases: Databases;
  readonly #draft: DraftPlace;
  /** Keys of the record that is being derived: its reads show the live record. */
  readonly #hidden = new Set<string>();
  readonly #reads: Reads;
  readonly #noted = new Map<string, NotedRecord>();

  constructor(databases: Databases, families: readonly LogFamily[], draft: DraftPlace) {
    this.#databases = databases;
    this.#draft = draft;
    const reads = createDraftReads(databases, families, draft, this.#hidden);
    const of = withReads(reads, storedTables, {
      // A draft has no index that is being built.
      indexBuild: () => undefined,
      // Its own decisions have found keys free. One that a live row has taken since is refused when
      // the draft is published.
      rowIdByKey: () => undefined,
    });
    this.#reads = { ...reads, of };
  }

  /** Notes a change of the draft; puts it into the history of its record. */
  add(change: Change & { readonly family: DraftedFamily }): void {
    const { family, id, seq } = change;
    this.#put('history', { key: historyKeyOf(id, seq), value: '1', isPut: true });
    const name = `${family} ${id}`;
    const added = this.#noted.get(name)?.added ?? (this.#noted.has(name) ? undefined : []);
    this.#noted.set(name, { family, id, added: added && [...added, change] });
  }

  /** Notes a record that has to be derived from all of its rows. */
  note({ family, id }: DraftedRecordName): void {
    this.#noted.set(`${family} ${id}`, { family, id, added: undefined });
  }

  /** Notes the rows of a table, whose indexes may be others. */
  rows(tableId: string): void {
    const { draftrecord, table } = this.#databases;
    const { insertedSeq } = this.#draft;
    const name =
      this.#reads.of(storedTables).tableById(tableId)?.table.name ??
      tableName(table.get(keyOf(tableId)) ?? undefined);
    const start = draftRecordKey(insertedSeq, 'record', '\u0001');
    const end = draftRecordKey(insertedSeq, 'webhook', '\u0001');
    for (const { value } of draftrecord.getRange({ start, end })) {
      const { family, id, table: own } = storedJson(value) as StoredDraftRecord;
      if (own === name) this.note({ family, id });
    }
  }

  /** Derives all noted records again. */
  refresh(): void {
    const noted = [...this.#noted.values()];
    for (const { family, id } of noted) if (family === 'table') this.rows(id);
    // The entries of rows depend on their table.
    const ordered = [...this.#noted.values()].sort(
      (one, other) => Number(other.family === 'table') - Number(one.family === 'table'),
    );
    const failed = ordered.filter((record) => this.#replace(record).problem !== undefined);
    // A table can go once its rows are gone.
    for (const record of failed) this.#replace(record);
  }

  /** What the draft changes of a record: derived from the log, and as it is stored. */
  #derive(record: NotedRecord): {
    readonly derived: DerivedRecord;
    readonly before: StoredDraftRecord | undefined;
  } {
    const before = this.#stored(record);
    this.#hidden.clear();
    const edited = this.#editedFrom(record, before);
    for (const entry of before?.entries ?? []) {
      const { whole, isPut } = this.#wholeKey(entry);
      if (this.#isOwn(record, whole, isPut)) this.#hidden.add(whole.toString('hex'));
    }
    try {
      const folded = edited ?? this.#allRows(record);
      return { derived: this.#derived(record, folded), before };
    } finally {
      this.#hidden.clear();
    }
  }

  #stored({ family, id }: DraftedRecordName): StoredDraftRecord | undefined {
    const key = draftRecordKey(this.#draft.insertedSeq, family, id);
    const text = this.#databases.draftrecord.get(key);
    return text === undefined ? undefined : (storedJson(text) as StoredDraftRecord);
  }

  #replace(record: NotedRecord): StoredDraftRecord {
    const { draftentry, draftrecord, drafttouch } = this.#databases;
    const { insertedSeq } = this.#draft;
    const { derived, before } = this.#derive(record);
    for (const entry of before?.entries ?? []) {
      const { whole, isPut } = this.#wholeKey(entry);
      if (!derived.entries.has(whole.toString('hex')) && this.#isOwn(record, whole, isPut)) {
        draftentry.removeSync(whole);
      }
    }
    for (const [hex, value] of derived.entries) {
      const whole = Buffer.from(hex, 'hex');
      // A key that another row of the draft has taken stays with it.
      if (value === '-' && draftentry.get(whole)?.startsWith('+') === true) {
        if (!this.#isOwn(record, whole, true)) continue;
      }
      draftentry.putSync(whole, value);
    }
    const { stored } = derived;
    const { table, counts: more = noCounts } = stored;
    if (table !== undefined) {
      const { counts: former = noCounts } = before ?? {};
      const rows = more.rows - former.rows;
      addDraftCounts(this.#databases, insertedSeq, {
        table,
        rows,
        words: more.words - former.words,
      });
    }
    const key = draftRecordKey(insertedSeq, record.family, record.id);
    draftrecord.putSync(key, JSON.stringify(stored));
    drafttouch.putSync(historyKeyOf(record.id, insertedSeq), '');
    return stored;
  }

  #wholeKey(entry: string): { readonly whole: Buffer; readonly isPut: boolean } {
    const rest = Buffer.from(entry.slice(1), 'base64url');
    const whole = Buffer.concat([draftPrefix(this.#draft.insertedSeq), rest]);
    return { whole, isPut: entry.startsWith('+') };
  }

  /** Whether an entry is the record's: the key of a row, or the name of a table, may move. */
  #isOwn({ id }: DraftedRecordName, whole: Buffer, isPut: boolean): boolean {
    const text = this.#databases.draftentry.get(whole);
    if (text === undefined || text.startsWith('+') !== isPut) return false;
    const code = whole[draftPrefix(0).length];
    const isShared = isPut && sharedCodes.has(code ?? 0);
    return !isShared || text.slice(1).split(' ')[0] === id;
  }

  /** The record after all of its rows, the live ones and those of the draft. */
  #allRows({ family, id }: DraftedRecordName): FoldedRecord {
    const rows = this.#reads.rows(family, id);
    const { after, marks } = foldDrafted(this.#reads, rows, family);
    const newest = rows.toSorted((one, other) => one.seq - other.seq).at(-1);
    if (newest === undefined) throw new Error(`the draft has no change of ${id}`);
    const first = rows.find(({ draft }) => draft !== undefined)?.seq ?? 0;
    const table = rows[0]?.data.table;
    const ofTable = family === 'record' && typeof table === 'string' ? { table } : {};
    const changed = rows.flatMap(({ seq }): (readonly [string, string])[] => {
      const [live, own] = [this.#databases.mark.get(seq), marks.get(seq)];
      if (own === live) return [];
      const entry = { key: markKey(seq), value: own ?? '', isPut: own !== undefined };
      return [this.#encoded('mark', entry)];
    });
    return { name: { family, id, first, ...ofTable }, after, newest, marks: changed };
  }

  /**
   * The record after edits that the draft has added to it: they follow from its state before them,
   * so that a draft with many edits of one record does not read all of them for each. Undefined if
   * only all of its rows can tell.
   */
  #editedFrom(
    { family, id, added }: NotedRecord,
    before: StoredDraftRecord | undefined,
  ): FoldedRecord | undefined {
    const newest = added?.at(-1);
    if (added === undefined || newest === undefined || !isRevertible(family)) return undefined;
    const isFirst = before === undefined || before.problem !== undefined;
    if (isFirst || added.some(({ action }) => action === 'invalidate')) return undefined;
    const projection = projectionOf(this.#reads, family);
    const { id: draft } = this.#draft;
    let state = projection.stored(this.#reads, id);
    if (state === undefined) return undefined;
    for (const row of added) state = applyDrafted(projection, state, { ...row, draft });
    const { entries, counts: _counts, problem: _problem, ...name } = before;
    const code = layerPrefix(0, 'mark').at(-1);
    const marks = entries.flatMap((entry): (readonly [string, string])[] => {
      const { whole } = this.#wholeKey(entry);
      const text =
        whole[draftPrefix(0).length] === code ? this.#databases.draftentry.get(whole) : undefined;
      return text === undefined ? [] : [[whole.toString('hex'), text]];
    });
    return { name, after: state, newest, marks };
  }

  #derived(
    { family, id }: DraftedRecordName,
    { name, after, newest, marks }: FoldedRecord,
  ): DerivedRecord {
    const projection = projectionOf(this.#reads, family);
    const before = projection.stored(this.#reads, id);
    try {
      const planned = this.#planned(projection, newest, { before, after });
      const entries = new Map([
        ...planned.entries.map((entry) => this.#encoded(...entry)),
        ...marks,
      ]);
      const { counts } = planned;
      const listed = [...entries].map(([hex, value]) => listedKey(hex, value));
      const stored = { ...name, entries: listed, ...(counts !== undefined && { counts }) };
      return { stored, entries };
    } catch (error) {
      // The live record has changed so that the change of the draft is no longer possible.
      if (!(error instanceof Failure)) throw error;
      return { stored: { ...name, entries: [], problem: error.message }, entries: new Map() };
    }
  }

  #planned(
    projection: FamilyProjection<object>,
    change: Change,
    transition: { readonly before: object | undefined; readonly after: object | undefined },
  ): {
    readonly entries: (readonly [LayeredName, DraftEntry])[];
    readonly counts: TableCounts | undefined;
  } {
    const reads = this.#reads;
    // A record that was there already keeps its place.
    const planning = new OpenPlanning(reads, { isCopy: true });
    projection.plan(planning, change, transition);
    planning.finish();
    const entries: (readonly [LayeredName, DraftEntry])[] = [];
    let counts: TableCounts | undefined;
    planning.entries.forEach((name, entry) => {
      if (!isLayered(name)) return;
      if (name === 'tablecount') counts = countsDifference(reads, entry);
      else entries.push([name, draftEntryOf(entry)]);
    });
    return { entries, counts };
  }

  #encoded(name: LayeredName, entry: DraftEntry): readonly [string, string] {
    const key = draftEntryKey(this.#draft.insertedSeq, name, entry);
    return [key.toString('hex'), draftEntryValue(name, entry)];
  }

  #put(name: LayeredName, entry: DraftEntry): void {
    const key = draftEntryKey(this.#draft.insertedSeq, name, entry);
    this.#databases.draftentry.putSync(key, draftEntryValue(name, entry));
  }
}

function tableName(text: string | undefined): string | undefined {
  return text === undefined ? undefined : (storedJson(text) as StoredTable).table.name;
}

/** A key as DraftedRecord lists it. */
function listedKey(hex: string, value: string): string {
  const rest = Buffer.from(hex, 'hex').subarray(draftPrefix(0).length);
  return value.slice(0, 1) + rest.toString('base64url');
}

/** The databases in which the key of one record can become that of another. */
const sharedCodes: ReadonlySet<number> = new Set(
  (['rowkey', 'tablename'] as const).map((name) => {
    return draftEntryKey(0, name, { key: Buffer.alloc(0), value: '' }).at(-1) ?? 0;
  }),
);

function projectionOf(reads: Reads, family: DraftedFamily): FamilyProjection<object> {
  const projection = reads.projectionOf(family);
  if (projection === undefined) throw new Error(`the family ${family} has no projection`);
  return projection;
}

/**
 * The record after its live rows and those of a draft behind them, and the rows that do not count:
 * seq → seq of the invalidate.
 */
export function foldDrafted(
  reads: Reads,
  rows: readonly Change[],
  family: DraftedFamily,
): { readonly after: object | undefined; readonly marks: ReadonlyMap<number, string> } {
  const projection = projectionOf(reads, family);
  const apply = (before: object | undefined, row: Change): object | undefined =>
    applyDrafted(projection, before, row);
  if (!isRevertible(family)) {
    let state: object | undefined;
    for (const row of rows) state = apply(state, row);
    return { after: state, marks: new Map() };
  }
  const { stored, invalidated } = foldRows(rows, apply as never);
  const seq = rows.reduce((most, row) => Math.max(most, row.seq), 0);
  const marks = new Map([...invalidated].map(([row, by]) => [row, String(by.seq)] as const));
  return { after: stored && { ...(stored as object), seq }, marks };
}

/** A record after one more row. */
function applyDrafted(
  projection: FamilyProjection<object>,
  before: object | undefined,
  row: Change,
): object | undefined {
  // The same record was inserted live since: from then on, the draft changes that.
  const isRepeated = row.action === 'insert' && row.draft !== undefined && before !== undefined;
  return projection.fold(before, isRepeated ? { ...row, action: 'edit' } : row);
}

const noCounts: TableCounts = { rows: 0, words: 0 };

function draftEntryOf({ key, value, removed }: PlannedEntry): DraftEntry {
  if (value === undefined) return { key: Buffer.from(key), value: removed ?? '', isPut: false };
  const text = typeof value === 'string' ? value : value();
  return { key: Buffer.from(key), value: text, isPut: true };
}

function countsDifference(reads: Reads, { key, value }: PlannedEntry): TableCounts | undefined {
  if (value === undefined) return undefined;
  const table = Buffer.from(key).toString();
  const text = typeof value === 'string' ? value : value();
  const [before, after] = [
    reads.of(storedTables).tableCounts(table),
    JSON.parse(text) as TableCounts,
  ];
  return { rows: after.rows - before.rows, words: after.words - before.words };
}
