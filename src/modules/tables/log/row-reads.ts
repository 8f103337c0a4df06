import { sameScalar, scalarOf, type StoredRow, foldRow } from '../row.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import { foldRows } from '../../../core/log/write/fold.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { RowReads, RowStep, TableReads } from './reads.ts';
import { keyPrefix, prefixEnd, rowInTable, rowKey } from './index-key.ts';
import { countByIndex, placesInIndex, rowsByIndex } from './row-scan.ts';
import { searchRows } from './row-search.ts';

/** The reads that those of rows are made of. */
interface RowParts extends Pick<Reads, 'rows'>, Pick<TableReads, 'table' | 'tableNamedAt'> {
  /** The bytes of all rows of the log of a record. */
  readonly historyBytes: (id: string) => number;
}

/** Reads the projections of the rows of tables, and their past states from the log. */
export function createRowReads(databases: Databases, parts: RowParts): RowReads {
  const { rows, table, tableNamedAt, historyBytes } = parts;
  const { rowkey, everrowkey, tablerow, evertablerow } = databases;
  const rowStep: TableReads['rowStep'] = (id) => {
    const text = databases.row.get(keyOf(id));
    const stored = text === undefined ? undefined : (storedJson(text) as StoredRow);
    return { id, stored, size: text?.length ?? 0 };
  };
  const row: TableReads['row'] = (id) => rowStep(id).stored;
  const rowAt: TableReads['rowAt'] = (id, seq) => {
    const current = row(id);
    if (current !== undefined && current.seq <= seq) return current;
    return foldRows(rows('record', id, seq), foldRow).stored;
  };
  const rowIdByKey: TableReads['rowIdByKey'] = (name, value) =>
    value === null ? undefined : rowkey.get(rowKey(name, value, ''));

  return {
    row,
    rowStep,
    rowAt,
    rowIdByKey,
    rowByKey(name, value) {
      const id = rowIdByKey(name, value);
      return id === undefined ? undefined : row(id);
    },
    rowByKeyAt(name, value, seq) {
      const field = tableNamedAt(name, seq)?.table.key;
      if (field === undefined || value === null) return undefined;
      const key = rowKey(name, value, '');
      const ids = [rowkey.get(key) ?? [], ...everrowkey.getValues(key)].flat();
      return ids
        .map((id) => rowAt(id, seq))
        .find((stored) => stored !== undefined && sameScalar(scalarOf(stored.row[field]), value));
    },
    *rowsAfter(name, after): Iterable<RowStep> {
      for (const id of idsAfter(tablerow, name, after)) {
        const step = rowStep(id);
        if (step.stored !== undefined) yield step;
      }
    },
    *rowsAt(name, after, seq): Iterable<RowStep> {
      const [now, former] = [tablerow, evertablerow].map((ids) => idsAfter(ids, name, after));
      for (const id of mergeSorted(now ?? [], former ?? [])) {
        yield { id, stored: rowAt(id, seq), size: historyBytes(id) };
      }
    },
    rowsByIndex: (name, range) => rowsByIndex(databases, table(name), range),
    placesInIndex: (name, range, found) => placesInIndex(databases, table(name), range, found),
    countByIndex: (name, range, limit) => countByIndex(databases, table(name), range, limit),
    searchRows: (name, text, options) => searchRows(databases, table(name), text, options),
  };
}

/** The texts of two sorted sequences in their order, each once. */
function* mergeSorted(one: Iterable<string>, other: Iterable<string>): Iterable<string> {
  const others = other[Symbol.iterator]();
  let next = others.next();
  for (const text of one) {
    for (; next.done !== true && next.value < text; next = others.next()) yield next.value;
    if (next.done !== true && next.value === text) next = others.next();
    yield text;
  }
  for (; next.done !== true; next = others.next()) yield next.value;
}

/** The ids of the rows of a table after an id. */
function* idsAfter(
  database: Databases['tablerow'],
  table: string,
  after: string,
): Iterable<string> {
  const prefix = keyPrefix(table);
  const last = rowInTable(table, after);
  const start = after === '' ? last : Buffer.concat([last, Buffer.from([0])]);
  for (const key of database.getKeys({ start, end: prefixEnd(prefix) })) {
    yield Buffer.from(key.subarray(prefix.length)).toString('latin1');
  }
}
