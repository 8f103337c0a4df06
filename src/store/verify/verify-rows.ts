import type { Change } from '../../model/change.ts';
import type { Json } from '../../model/json.ts';
import { scalarOf, type Row, type StoredRow } from '../../model/row.ts';
import { tableIndexes, type StoredTable } from '../../model/table.ts';
import { keyOf } from '../encoding.ts';
import { foldRow, foldRows, foldTable } from '../log/fold.ts';
import {
  indexKey,
  keyPrefix,
  orderedValueEnd,
  prefixEnd,
  rowInTable,
  rowKey,
  wordKey,
} from '../projections/index-key.ts';
import { buildKey, isMaintained, packWord, searchIndex } from '../projections/row-entries.ts';
import { rowWords } from '../projections/words.ts';
import type { Difference, IndexBuild, TableCounts } from '../store.ts';
import {
  cannotFold,
  isText,
  marksOf,
  recordRows,
  verifyMarks,
  type VerifiedDatabases,
} from './verify-records.ts';

/** Compares the projections of a table with the fold of its rows in the log. */
export function* verifyTable(
  { databases, holds }: VerifiedDatabases,
  id: string,
  rows: readonly Change[],
): Iterable<Difference> {
  const folded = orCannotFold(id, () => foldRows(rows, foldTable));
  if ('database' in folded) {
    yield folded;
    return;
  }
  const { stored } = folded;
  if (!isText(databases.table.get(keyOf(id)), stored)) {
    yield { database: 'table', what: `${id} differs from the fold of its rows` };
  }
  yield* verifyMarks(databases, rows, marksOf(folded));
  for (const { action, data } of rows) {
    if (action !== 'insert' || holds('evertablename', keyOf(textOf(data.name)), id)) continue;
    yield { database: 'evertablename', what: `${id} is missing under ${textOf(data.name)}` };
  }
  if (stored === undefined) return;
  const { name } = stored.table;
  const stamp = `${id} ${stored.seq} ${rows.at(-1)?.txn ?? ''}`;
  if (databases.tablename.get(keyOf(name)) !== stamp) {
    yield { database: 'tablename', what: `${name} is not the newest state of ${id}` };
  }
  if (databases.tablecount.get(keyOf(name)) === undefined) {
    yield { database: 'tablecount', what: `${name} is missing` };
  }
}

/** Compares the projections of a row of a table with the fold of its rows in the log. */
export function* verifyTableRow(
  verified: VerifiedDatabases,
  id: string,
  rows: readonly Change[],
): Iterable<Difference> {
  const { databases, holds } = verified;
  const folded = orCannotFold(id, () => foldRows(rows, foldRow));
  if ('database' in folded) {
    yield folded;
    return;
  }
  const { stored } = folded;
  if (!isText(databases.row.get(keyOf(id)), stored)) {
    yield { database: 'row', what: `${id} differs from the fold of its rows` };
  }
  yield* verifyMarks(databases, rows, marksOf(folded));
  const table = textOf(rows[0]?.data.table);
  const place = rowInTable(table, id);
  if (rows.length > 1 && wasInvalidated(rows) && !databases.evertablerow.doesExist(place)) {
    yield { database: 'evertablerow', what: `${id} is missing in ${table}` };
  }
  const current = stored && keyEntry(verified, stored);
  for (const key of rows.length === 1 ? [] : keysEver(verified, rows)) {
    if (current?.equals(key) === true || holds('everrowkey', key, id)) continue;
    yield { database: 'everrowkey', what: `${id} is missing under a former key` };
  }
  if (stored === undefined) return;
  if (!databases.tablerow.doesExist(place)) {
    yield { database: 'tablerow', what: `${id} is missing in ${table}` };
  }
  if (current !== undefined && databases.rowkey.get(current) !== id) {
    yield { database: 'rowkey', what: `${id} is missing under its key` };
  }
  yield* verifyIndexes(verified, stored.row);
}

function* verifyIndexes({ databases, reads }: VerifiedDatabases, row: Row): Iterable<Difference> {
  const { id, table } = row;
  const stored = reads.table(table);
  if (stored === undefined) {
    yield { database: 'row', what: `${id} is in the table ${table}, which does not exist` };
    return;
  }
  const { fields, search } = tableIndexes(stored.table);
  for (const field of fields) {
    if (!isMaintained(reads.indexBuild(table, field), id)) continue;
    if (!databases.rowindex.doesExist(indexKey(table, field, scalarOf(row[field]), id))) {
      yield { database: 'rowindex', what: `${id} is missing in the index ${field} of ${table}` };
    }
  }
  if (search.length === 0 || !isMaintained(reads.indexBuild(table, searchIndex), id)) return;
  const { counts, length } = rowWords(row, search);
  for (const [word, count] of counts) {
    if (databases.rowword.get(wordKey(table, word, id)) === packWord(count, length)) continue;
    yield { database: 'rowword', what: `${id} is missing under the word ${word} of ${table}` };
  }
}

/** Checks that an entry belongs in its projection; returns a description of the problem if not. */
type RowEntryCheck = (
  verified: VerifiedDatabases,
  key: Uint8Array,
  value: string,
) => string | undefined;

/** Checks of the entries of tables and rows: see entryChecks. */
export const rowEntryChecks = {
  table({ databases }, key, value) {
    const { table } = JSON.parse(value) as StoredTable;
    if (!keyOf(table.id).equals(key)) return `contains the table ${table.id}`;
    const isLogged = recordRows(databases, table.id, 'table').length > 0;
    return isLogged ? undefined : 'is not in the log';
  },
  tablename({ reads }, key, value) {
    const [id = ''] = value.split(' ');
    const name = reads.tableById(id)?.table.name;
    const isOwn = name !== undefined && keyOf(name).equals(key);
    return isOwn ? undefined : `refers to ${id}, which has another name`;
  },
  evertablename({ databases }, key, id) {
    const had = recordRows(databases, id, 'table').some(
      ({ action, data }) => action === 'insert' && keyOf(textOf(data.name)).equals(key),
    );
    return had ? undefined : `refers to ${id}, which never had this name`;
  },
  row({ databases }, key, value) {
    const { row } = JSON.parse(value) as StoredRow;
    if (!keyOf(row.id).equals(key)) return `contains the row ${row.id}`;
    const isLogged = recordRows(databases, row.id, 'record').length > 0;
    return isLogged ? undefined : 'is not in the log';
  },
  tablerow({ reads }, key) {
    const { table, rest: id } = parts(key);
    return reads.row(id)?.row.table === table ? undefined : 'is no row of this table';
  },
  evertablerow({ databases }, key) {
    const { table, rest: id } = parts(key);
    const rows = recordRows(databases, id, 'record');
    const isFormer = rows[0]?.data.table === table && wasInvalidated(rows);
    return isFormer ? undefined : 'never was an invalidated row of this table';
  },
  rowkey(verified, key, id) {
    const stored = verified.reads.row(id);
    const own = stored && keyEntry(verified, stored);
    return own?.equals(key) === true ? undefined : `refers to ${id}, which has another key`;
  },
  everrowkey(verified, key, id) {
    const rows = recordRows(verified.databases, id, 'record');
    const had = keysEver(verified, rows).some((one) => one.equals(key));
    return had ? undefined : `refers to ${id}, which never had this key`;
  },
  rowindex({ reads }, key) {
    const { table, id } = ofIndex(key);
    const row = reads.row(id)?.row;
    const definition = reads.table(table)?.table;
    const fields = definition === undefined ? [] : tableIndexes(definition).fields;
    const field = fields.find((name) => startsWith(key, keyPrefix(table, name)));
    const builds = buildsOf(reads.indexBuilds(table));
    if (field === undefined) {
      const isEmptied = [...builds.keys()].some((name) => startsWith(key, keyPrefix(table, name)));
      return isEmptied ? undefined : `belongs to no index of ${table}`;
    }
    if (builds.get(field)?.phase === 'empty') return undefined;
    const isOwn =
      row?.table === table &&
      isMaintained(builds.get(field), id) &&
      indexKey(table, field, scalarOf(row[field]), id).equals(key);
    return isOwn ? undefined : `refers to ${id}, which has another value`;
  },
  rowword({ reads }, key, value) {
    const { table, rest } = parts(key);
    const { table: word, rest: id } = parts(Buffer.from(rest, 'latin1'));
    const row = reads.row(id)?.row;
    const definition = reads.table(table)?.table;
    const build = reads.indexBuild(table, searchIndex);
    if (build?.phase === 'empty') return undefined;
    if (row?.table === table && definition !== undefined && isMaintained(build, id)) {
      const { counts, length } = rowWords(row, tableIndexes(definition).search);
      const own = [...counts].find(([one]) => wordKey(table, one, id).equals(key));
      if (own !== undefined && packWord(own[1], length) === value) return undefined;
    }
    return `refers to ${id}, which has the word ${word} another number of times`;
  },
  tablecount({ databases, reads }, key, value) {
    const table = Buffer.from(key).toString();
    const counts = JSON.parse(value) as TableCounts;
    const start = keyPrefix(table);
    const rows = databases.tablerow.getKeysCount({ start, end: prefixEnd(start) });
    if (counts.rows !== rows) return `counts ${counts.rows} rows, but there are ${rows}`;
    const definition = reads.table(table)?.table;
    if (definition === undefined) return 'counts the rows of a table that does not exist';
    const { search } = tableIndexes(definition);
    const build = reads.indexBuild(table, searchIndex);
    if (build?.phase === 'empty') return undefined;
    let words = 0;
    for (const { id, stored } of search.length === 0 ? [] : reads.rowsAfter(table, '')) {
      if (stored !== undefined && isMaintained(build, id))
        words += rowWords(stored.row, search).length;
    }
    return counts.words === words ? undefined : `counts ${counts.words} words, not ${words}`;
  },
  indexbuild(_verified, key, value) {
    const { table, index, phase, done } = JSON.parse(value) as IndexBuild;
    const isBuild = ['empty', 'fill'].includes(phase) && Number.isSafeInteger(done);
    const isOwn = isBuild && buildKey(table, index).equals(key);
    return isOwn ? undefined : 'is not the state of an index';
  },
} as const satisfies Readonly<Record<string, RowEntryCheck>>;

/** Whether a row has not existed after one of its changes. */
function wasInvalidated(rows: readonly Change[]): boolean {
  return rows.some(
    ({ action }, index) =>
      action === 'invalidate' &&
      foldRows(rows.slice(0, index), foldRow).stored !== undefined &&
      foldRows(rows.slice(0, index + 1), foldRow).stored === undefined,
  );
}

/** The key of a row in `rowkey`; undefined if its table has no key. */
function keyEntry({ reads }: VerifiedDatabases, { row }: StoredRow): Buffer | undefined {
  const field = reads.table(row.table)?.table.key;
  return field === undefined ? undefined : rowKey(row.table, scalarOf(row[field]), row.id);
}

/** All keys that a row ever had, by the key of its table at that time. */
function keysEver({ reads }: VerifiedDatabases, rows: readonly Change[]): readonly Buffer[] {
  return rows.flatMap(({ seq }, index) => {
    const { stored } = foldRows(rows.slice(0, index + 1), foldRow);
    if (stored === undefined) return [];
    const { row } = stored;
    const field = reads.tableNamedAt(row.table, seq)?.table.key;
    return field === undefined ? [] : rowKey(row.table, scalarOf(row[field]), row.id);
  });
}

function orCannotFold<T extends object>(id: string, fold: () => T): T | Difference {
  try {
    return fold();
  } catch (error) {
    return cannotFold(id, error);
  }
}

function buildsOf(builds: readonly IndexBuild[]): ReadonlyMap<string, IndexBuild> {
  return new Map(builds.map((build) => [build.index, build]));
}

/** The first part of a key, which is the name of a table, and what follows it. */
function parts(key: Uint8Array): { readonly table: string; readonly rest: string } {
  const bytes = Buffer.from(key);
  const nul = bytes.indexOf(0);
  return { table: bytes.toString('utf8', 0, nul), rest: bytes.toString('latin1', nul + 1) };
}

/** The table and the id of the row in a key of `rowindex`. */
function ofIndex(key: Uint8Array): { readonly table: string; readonly id: string } {
  const { table, rest } = parts(key);
  const value = Buffer.from(parts(Buffer.from(rest, 'latin1')).rest, 'latin1');
  return { table, id: value.toString('latin1', orderedValueEnd(value)) };
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function startsWith(key: Uint8Array, prefix: Buffer): boolean {
  return prefix.equals(key.subarray(0, prefix.length));
}
