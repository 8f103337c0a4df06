import { LRUCache } from 'lru-cache';
import type { Databases } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { IndexBuild, TableCounts, TableReads, RowReads } from './reads.ts';
import { foldRows } from '../../../core/log/write/fold.ts';
import { type StoredTable, foldTable } from '../table.ts';
import { buildKey, keyPrefix, prefixEnd } from './index-key.ts';

/** Tables whose definitions are in the cache. */
const tablesRememberedMax = 1_000;

type DefinitionReads = Omit<TableReads, keyof RowReads>;

/** Reads the projections of tables, and their past states from the rows of the log. */
export function createTableReads(databases: Databases, rows: Reads['rows']): DefinitionReads {
  const { table, evertablename } = databases;
  const tableById: TableReads['tableById'] = (id) => {
    const text = table.get(keyOf(id));
    return text === undefined ? undefined : (storedJson(text) as StoredTable);
  };
  const named = createNamedTables(databases, tableById);
  const tableAt: TableReads['tableAt'] = (id, seq) => {
    const current = tableById(id);
    if (current !== undefined && current.seq <= seq) return current;
    return foldRows(rows('table', id, seq), foldTable).stored;
  };
  return {
    table: named,
    tableById,
    tableAt,
    tableNamedAt(name, seq) {
      const current = named(name);
      if (current !== undefined && current.seq <= seq) return current;
      const ids = [...evertablename.getValues(keyOf(name))];
      return ids.map((id) => tableAt(id, seq)).find((stored) => stored !== undefined);
    },
    *tablesAfter(after) {
      const start = after === '' ? undefined : Buffer.concat([keyOf(after), Buffer.from([0])]);
      for (const { value } of table.getRange(start === undefined ? {} : { start })) {
        yield storedJson(value) as StoredTable;
      }
    },
    *tablesAt(after, seq) {
      const ids = new Set([...evertablename.getRange()].map(({ value }) => value));
      for (const id of [...ids].filter((one) => one > after).toSorted()) {
        const stored = tableAt(id, seq);
        if (stored !== undefined) yield stored;
      }
    },
    tableCounts: (name) => tableCounts(databases, name),
    indexBuild(name, index) {
      const text = databases.indexbuild.get(buildKey(name, index));
      return text === undefined ? undefined : (storedJson(text) as IndexBuild);
    },
    indexBuilds: (name) => indexBuilds(databases, name),
  };
}

/**
 * The current table of a name. Every row that is written or listed needs it, so it is parsed once
 * for each version.
 */
function createNamedTables(
  { tablename }: Databases,
  tableById: TableReads['tableById'],
): TableReads['table'] {
  const known = new LRUCache<string, { readonly stamp: string; readonly stored: StoredTable }>({
    max: tablesRememberedMax,
  });
  return (name) => {
    const stamp = tablename.get(keyOf(name));
    if (stamp === undefined) return undefined;
    const former = known.get(name);
    if (former?.stamp === stamp) return former.stored;
    const stored = tableById(stamp.slice(0, stamp.indexOf(' ')));
    if (stored !== undefined) known.set(name, { stamp, stored });
    return stored;
  };
}

/** The size of a table; zeros if no table has this name. */
export function tableCounts(
  { tablecount }: Pick<Databases, 'tablecount'>,
  name: string,
): TableCounts {
  const text = tablecount.get(keyOf(name));
  return text === undefined ? { rows: 0, words: 0 } : (storedJson(text) as TableCounts);
}

function indexBuilds({ indexbuild }: Databases, name?: string): readonly IndexBuild[] {
  const prefix = name === undefined ? undefined : keyPrefix(name);
  const range = prefix === undefined ? {} : { start: prefix, end: prefixEnd(prefix) };
  const builds = indexbuild.getRange(range);
  return [...builds].map(({ value }) => storedJson(value) as IndexBuild);
}
