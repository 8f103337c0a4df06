import type { LogFamily, FamilyProjection } from '../../../core/log/store.ts';
import { type StoredRow, foldRow } from '../row.ts';
import { type StoredTable, foldTable } from '../table.ts';
import { refreshInstants, refreshWords } from './index-build.ts';
import { plannedRows } from './planned-rows.ts';

/** The first layout whose indexes of rows have date-times as instants. */
export const instantsVersion = 10;

const table: FamilyProjection<StoredTable> = {
  stored: (reads, id) => reads.tableById(id),
  at: (reads, id, seq) => reads.tableAt(id, seq),
  fold: foldTable,
  plan(planning, change, transition) {
    planning.shared(plannedRows).changeTable(change, transition);
  },
};

const record: FamilyProjection<StoredRow> = {
  stored: (reads, id) => reads.row(id),
  at: (reads, id, seq) => reads.rowAt(id, seq),
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
export const storedTables: LogFamily = {
  records: { table, record },
  upgrade(databases, former) {
    if (former < instantsVersion) refreshInstants(databases);
    refreshWords(databases);
  },
};
