import type { Change } from '../../../core/log/change.ts';
import { keyOf } from '../../../core/log/encoding.ts';
import type { Planning } from '../../../core/log/store.ts';
import type { IndexBuild, TableCounts, TableReads } from './reads.ts';
import type {
  DataTexts,
  PlannedEntries,
  PlannedEntry,
  Transition,
} from '../../../core/log/write/planned-entries.ts';
import { Failure } from '../../../core/values/failure.ts';
import { canonicalNumber, isExactNumber } from '../../../core/values/json/exact-number.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { counted } from '../../../core/values/units.ts';
import { type Row, type Scalar, type StoredRow, comparedValue, scalarOf } from '../row.ts';
import {
  eventsShowValues,
  raisesEvent,
  tableEventData,
  tableEvents,
  type TableEvent,
} from '../table-events.ts';
import {
  type StoredTable,
  type TableDefinition,
  type TableIndexes,
  tableIndexes,
} from '../table.ts';
import {
  buildKey,
  indexKey,
  isMaintained,
  packWord,
  rowInTable,
  rowKey,
  rowWords,
  searchIndex,
  startedBuild,
  wordKey,
} from './index-key.ts';

/** A table in the middle of a decision. */
interface PlannedTable {
  stored: StoredTable | undefined;
  indexes: TableIndexes;
  rows: number;
  words: number;
  /** The builds of indexes that are not complete, by name: each is read when it is needed. */
  readonly builds: Map<string, IndexBuild | undefined>;
  hasNewCounts: boolean;
}

/** A row that did not exist before, and the indexes that its entries go into. */
interface InsertedRow {
  /** The data of its insert; undefined for a row that exists again. */
  readonly data: JsonObject | undefined;
  readonly after: StoredRow;
  readonly key: string | undefined;
  readonly fields: readonly string[];
  readonly instants: TableIndexes['instants'];
}

/** Tables as a decision leaves them, for the next one of the same transaction. */
export type CarriedTables = Map<string, PlannedTable>;

const noIndexes: TableIndexes = { key: undefined, fields: [], search: [], instants: new Set() };

/** Plans the entries of tables and rows, which depend on each other within one decision. */
export class PlannedRows {
  readonly #planning: Planning;
  readonly #reads: TableReads;
  readonly #entries: PlannedEntries;
  readonly #texts: DataTexts;
  readonly #tables: CarriedTables;
  #hasChangedTables = false;
  /** Keys that the decision gives to rows, or takes: the id of the row, if any. */
  readonly #keys = new Map<string, string | undefined>();
  /** Rows that were inserted one after the other, with no other change between them. */
  #run: InsertedRow[] | undefined;
  readonly #declared = new Map<string, DeclaredEvents>();

  constructor(
    planning: Planning,
    reads: TableReads,
    carried: CarriedTables = new Map<string, PlannedTable>(),
  ) {
    this.#planning = planning;
    this.#reads = reads;
    this.#entries = planning.entries;
    this.#texts = planning.texts;
    this.#tables = carried;
  }

  /**
   * Plans the entries of a table. Throws `conflict` if another table has its name, if rows would be
   * without their table, or if their key would be another one.
   */
  changeTable(change: Change, { before, after }: Transition<StoredTable>): void {
    const name = after?.table.name ?? before?.table.name;
    if (name === undefined) return;
    if (before !== undefined && after !== undefined && before.table.name !== name) {
      throw new Error(`the table ${before.table.name} cannot be renamed`);
    }
    this.#run = undefined;
    this.#hasChangedTables = true;
    const planned = this.#table(name);
    const holder = planned.stored?.table.id;
    if (before === undefined && holder !== undefined && holder !== change.id) {
      throw tableExists(name, holder);
    }
    const indexes = after === undefined ? noIndexes : tableIndexes(after.table);
    if (planned.rows > 0 && after === undefined) throw tableHasRows(name, planned.rows);
    if (planned.rows > 0 && before !== undefined && indexes.key !== planned.indexes.key) {
      throw keyIsFixed(name, planned);
    }
    this.#startBuilds(name, planned, indexes);
    planned.stored = after;
    planned.indexes = indexes;
    const entries = this.#entries;
    entries.state('table', keyOf(change.id), after);
    if (after === undefined) entries.remove('tablename', keyOf(name));
    else entries.put('tablename', keyOf(name), `${change.id} ${change.seq} ${change.txn}`);
    if (before === undefined) entries.put('evertablename', keyOf(name), change.id);
    planned.hasNewCounts ||= after === undefined || before === undefined;
    if (after !== undefined) this.#declared.set(name, declaredEvents(after.table));
  }

  /**
   * Plans the entries of a row. Throws `conflict` if its table does not exist, or if another row
   * has its key.
   */
  changeRow(change: Change, { before, after }: Transition<StoredRow>): void {
    const row = after?.row ?? before?.row;
    if (row === undefined) return;
    if (before !== undefined && after !== undefined && before.row.table !== row.table) {
      throw new Error(`${row.id} cannot move to the table ${row.table}`);
    }
    const planned = this.#table(row.table);
    if (planned.stored === undefined) throw noTable(row.table);
    const rows = { before: before?.row, after: after?.row };
    if (before === undefined && after !== undefined) this.#insert(planned, change, after);
    else this.#move(planned, row, { before, after });
    this.#moveWords(planned, row, rows);
    planned.rows += (after === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
    planned.hasNewCounts ||= (before === undefined) !== (after === undefined);
    if (after !== undefined) this.#raise(change, before, after);
  }

  /**
   * Plans the entries that all changes have together. Returns the tables for the next decision;
   * undefined after a change of a table, which that one reads again.
   */
  finish(): CarriedTables | undefined {
    for (const [name, planned] of this.#tables) {
      if (!planned.hasNewCounts) continue;
      const { stored, rows, words } = planned;
      const counts: TableCounts = { rows, words };
      this.#entries.state('tablecount', keyOf(name), stored && counts);
      planned.hasNewCounts = false;
    }
    return this.#hasChangedTables ? undefined : this.#tables;
  }

  /** Adds the events that a change of a row raises (docs/design/webhooks.md#events-of-tables). */
  #raise({ dtu_txn }: Change, before: StoredRow | undefined, after: StoredRow): void {
    const { table } = after.row;
    const { events, ...shown } = this.#eventsOf(table);
    for (const event of events) {
      if (!raisesEvent(event, before?.row, after.row)) continue;
      const data = tableEventData(event, { before: before?.row, after: after.row, ...shown });
      this.#planning.raise({ type: event.type, occurred_at: dtu_txn, data, table });
    }
  }

  #eventsOf(name: string): DeclaredEvents {
    const known = this.#declared.get(name);
    if (known !== undefined) return known;
    const declared = declaredEvents(this.#reads.table(name)?.table ?? {});
    this.#declared.set(name, declared);
    return declared;
  }

  #table(name: string): PlannedTable {
    const known = this.#tables.get(name);
    if (known !== undefined) return known;
    const stored = this.#reads.table(name);
    const planned: PlannedTable = {
      stored,
      indexes: stored === undefined ? noIndexes : tableIndexes(stored.table),
      ...this.#reads.tableCounts(name),
      builds: new Map(),
      hasNewCounts: false,
    };
    this.#tables.set(name, planned);
    return planned;
  }

  /** Starts to build each index that the new definition has and the old one has not, or reverse. */
  #startBuilds(name: string, planned: PlannedTable, after: TableIndexes): void {
    const { indexes: before } = planned;
    const [fields, instants] = [new Set(before.fields), before.instants];
    const changed = fields
      .symmetricDifference(new Set(after.fields))
      .union(instants.symmetricDifference(after.instants));
    const isSameSearch = before.search.join('\0') === after.search.join('\0');
    for (const index of [...changed, ...(isSameSearch ? [] : [searchIndex])]) {
      // An index of no rows is complete.
      if (planned.rows === 0 && this.#build(name, planned, index) === undefined) continue;
      const build = startedBuild(name, index, planned.rows);
      planned.builds.set(index, build);
      this.#entries.put('indexbuild', buildKey(name, index), JSON.stringify(build));
    }
  }

  /** Plans the entries of a new row; for a run of rows, each entry is made just before its put. */
  #insert(planned: PlannedTable, { action, data: given }: Change, after: StoredRow): void {
    const { row } = after;
    const { key, fields: all, instants } = planned.indexes;
    if (key !== undefined) this.#takeKey(row, key);
    const isKept = (field: string): boolean => {
      return isMaintained(this.#build(row.table, planned, field), row.id);
    };
    const fields = all.every(isKept) ? all : all.filter(isKept);
    const data = action === 'insert' && given.id === undefined ? given : undefined;
    const inserted = { data, after, key, fields, instants };
    if (this.#run === undefined) this.#run = this.#startRun(inserted);
    else this.#run.push(inserted);
  }

  #startRun(first: InsertedRow): InsertedRow[] {
    const run = [first];
    for (const [database, entriesOf] of insertedEntries) {
      this.#entries.group(database, (put) => {
        for (const one of run) for (const entry of entriesOf(one, this.#texts)) put(entry);
      });
    }
    return run;
  }

  #move(planned: PlannedTable, row: Row, { before, after }: Transition<StoredRow>): void {
    this.#run = undefined;
    const entries = this.#entries;
    entries.state('row', keyOf(row.id), after);
    if (after === undefined) {
      const place = rowInTable(row.table, row.id);
      entries.remove('tablerow', place);
      entries.put('evertablerow', place, '');
    }
    const rows = { before: before?.row, after: after?.row };
    this.#moveKey(planned, row, rows);
    this.#moveFields(planned, row, rows);
  }

  /** Gives a key to a row. Throws `conflict` if another row has it. */
  #takeKey(row: Row, field: string): void {
    const { id, table } = row;
    const value = scalarOf(row[field]);
    if (value === null) return;
    const name = keyName(table, value);
    const holder = this.#keys.has(name)
      ? this.#keys.get(name)
      : this.#reads.rowIdByKey(table, value);
    if (holder !== undefined && holder !== id) throw keyIsTaken({ table, field, value, holder });
    this.#keys.set(name, id);
  }

  #moveKey({ indexes: { key: field } }: PlannedTable, { id, table }: Row, rows: Rows): void {
    if (field === undefined) return;
    const [before, after] = [rows.before, rows.after].map(
      (row) => row && rowKey(table, scalarOf(row[field]), id),
    );
    if (before !== undefined && after?.equals(before) === true) return;
    if (before !== undefined) {
      const former = scalarOf(rows.before?.[field]);
      if (former !== null) this.#keys.set(keyName(table, former), undefined);
      this.#entries.remove('rowkey', before);
      this.#entries.put('everrowkey', before, id);
    }
    if (after === undefined || rows.after === undefined) return;
    this.#takeKey(rows.after, field);
    this.#entries.put('rowkey', after, id);
  }

  /** The build of an index; undefined if it is complete. */
  #build(table: string, { builds }: PlannedTable, index: string): IndexBuild | undefined {
    if (!builds.has(index)) builds.set(index, this.#reads.indexBuild(table, index));
    return builds.get(index);
  }

  #moveFields(planned: PlannedTable, { id, table }: Row, rows: Rows): void {
    const { fields, instants } = planned.indexes;
    for (const field of fields) {
      if (!isMaintained(this.#build(table, planned, field), id)) continue;
      const [before, after] = [rows.before, rows.after].map((row) => {
        return row && indexKey(table, field, comparedValue(row[field], instants.has(field)), id);
      });
      if (before !== undefined && after?.equals(before) === true) continue;
      if (before !== undefined) this.#entries.remove('rowindex', before);
      if (after !== undefined) this.#entries.put('rowindex', after, '');
    }
  }

  #moveWords(planned: PlannedTable, { id, table }: Row, { before, after }: Rows): void {
    const { search } = planned.indexes;
    if (search.length === 0 || !isMaintained(this.#build(table, planned, searchIndex), id)) return;
    if (before !== undefined && after !== undefined) {
      if (search.every((field) => before[field] === after[field])) return;
    }
    const [former, words] = [before, after].map((row) => row && rowWords(row, search));
    for (const word of former?.counts.keys() ?? []) {
      if (words?.counts.has(word) !== true)
        this.#entries.remove('rowword', wordKey(table, word, id));
    }
    for (const [word, count] of words?.counts ?? []) {
      this.#entries.put('rowword', wordKey(table, word, id), packWord(count, words?.length ?? 0));
    }
    planned.words += (words?.length ?? 0) - (former?.length ?? 0);
    planned.hasNewCounts = true;
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

/** The entries of an inserted row, by database. */
const insertedEntries = [
  [
    'row',
    (row: InsertedRow, texts: DataTexts): readonly PlannedEntry[] => [
      { key: keyOf(row.after.row.id), value: storedText(row, texts) },
    ],
  ],
  [
    'tablerow',
    ({ after: { row } }: InsertedRow): readonly PlannedEntry[] => [
      { key: rowInTable(row.table, row.id), value: '' },
    ],
  ],
  [
    'rowkey',
    ({ after: { row }, key }: InsertedRow): readonly PlannedEntry[] => {
      if (key === undefined) return [];
      return [{ key: rowKey(row.table, scalarOf(row[key]), row.id), value: row.id }];
    },
  ],
  [
    'rowindex',
    ({ after: { row }, fields, instants }: InsertedRow): readonly PlannedEntry[] => {
      return fields.map((field) => {
        const value = comparedValue(row[field], instants.has(field));
        return { key: indexKey(row.table, field, value, row.id), value: '' };
      });
    },
  ],
] as const;

/** The StoredRow as JSON: its fields are the data of the insert. */
function storedText({ data, after }: InsertedRow, texts: DataTexts): string {
  if (data === undefined) return JSON.stringify(after);
  return texts.ofInserted('row', { id: after.row.id, data, state: after });
}

/** A name for a key of a table: different values have different names. */
function keyName(table: string, value: Exclude<Scalar, null>): string {
  if (isExactNumber(value)) return `${table} number ${canonicalNumber(value)}`;
  return `${table} ${typeof value} ${value}`;
}

interface Rows {
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

function tableExists(name: string, id: string): Failure {
  return new Failure('conflict', `The table ${name} exists already (${id}). Edit it instead.`, {
    field: 'name',
  });
}

function tableHasRows(name: string, rows: number): Failure {
  return new Failure(
    'conflict',
    `The table ${name} has ${counted(rows, 'row')}. Invalidate them first.`,
  );
}

function keyIsFixed(name: string, { indexes, rows }: PlannedTable): Failure {
  const key = indexes.key === undefined ? 'no key' : `the key ${indexes.key}`;
  const has = counted(rows, 'row');
  return new Failure(
    'conflict',
    `The table ${name} has ${has} and ${key}. The key can change only while it has none.`,
    { field: 'key' },
  );
}

function noTable(name: string): Failure {
  return new Failure('conflict', `The table ${name} does not exist any more.`, { field: 'table' });
}

function keyIsTaken({
  table,
  field,
  value,
  holder,
}: {
  readonly table: string;
  readonly field: string;
  readonly value: unknown;
  readonly holder: string;
}): Failure {
  const shown = JSON.stringify(value).slice(0, keyShownCharacters).toWellFormed();
  return new Failure(
    'conflict',
    `The table ${table} has a row with ${field} = ${shown} already (${holder}).`,
    { field },
  );
}

const keyShownCharacters = 200;
