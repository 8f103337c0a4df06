import { historyBytes } from '../../../core/log/reads.ts';
import type { FamilyProjection, ReadFamily, SharedPlan } from '../../../core/log/store.ts';
import { type StoredRow, foldRow } from '../row.ts';
import { type StoredTable, foldTable } from '../table.ts';
import { type CarriedTables, PlannedRows } from './planned-rows.ts';
import type { TableReads } from './reads.ts';
import { createRowReads } from './row-reads.ts';
import { createTableReads } from './table-reads.ts';
import { refreshInstants, refreshWords } from './upgrade.ts';

/** The first layout whose indexes of rows have date-times as instants. */
export const instantsVersion = 10;

/** The tables and rows of a decision. */
const plannedRows: SharedPlan<PlannedRows> = {
  begin: (planning, carried) =>
    new PlannedRows(planning, planning.reads.of(storedTables), carried as CarriedTables),
  finish: (rows) => rows.finish(),
};

const table: FamilyProjection<StoredTable> = {
  stored: (reads, id) => reads.of(storedTables).tableById(id),
  at: (reads, id, seq) => reads.of(storedTables).tableAt(id, seq),
  fold: foldTable,
  plan(planning, change, transition) {
    planning.shared(plannedRows).changeTable(change, transition);
  },
};

const record: FamilyProjection<StoredRow> = {
  stored: (reads, id) => reads.of(storedTables).row(id),
  at: (reads, id, seq) => reads.of(storedTables).rowAt(id, seq),
  fold: foldRow,
  // Each change of a row names the table, so that it says what changed.
  dataOf(reads, { id, data }, { stored, written }) {
    if (data.table !== undefined) return data;
    const name = stored?.row.table ?? (reads.rows('record', id)[0] ?? written[0])?.data.table;
    return name === undefined ? data : { table: name, ...data };
  },
  plan(planning, change, transition) {
    planning.shared(plannedRows).changeRow(change, transition);
  },
};

/** The tables and their rows. */
export const storedTables: ReadFamily<TableReads> = {
  records: { table, record },
  reads(databases, reads) {
    const { rows } = reads;
    const tables = createTableReads(databases, rows);
    const parts = { rows, ...tables, historyBytes: (id: string) => historyBytes(reads, id) };
    return { ...tables, ...createRowReads(databases, parts) };
  },
  upgrade(databases, former) {
    if (former < instantsVersion) refreshInstants(databases);
    refreshWords(databases);
  },
};
