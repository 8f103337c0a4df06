import type { Row, Scalar, StoredRow } from '../row.ts';
import type { StoredTable } from '../table.ts';

/** A step of an iteration over the rows of a table. */
export interface RowStep {
  readonly id: string;
  /** Undefined for a row that did not exist at that time; such steps let the caller pause. */
  readonly stored: StoredRow | undefined;
  /** The amount of stored data that the step read, in characters or bytes. */
  readonly size: number;
}

/** One end of a range of an index. */
interface RangeEnd {
  readonly value: Scalar;
  readonly inclusive: boolean;
}

/**
 * A part of an index of a table. A range with one end has the values of the type of that end: what
 * is below 5 are numbers. A row without a value, or with one that is no scalar, has null.
 */
export interface IndexRange {
  /** The table's key, or a field of its `index`. */
  readonly field: string;
  readonly from?: RangeEnd | undefined;
  readonly to?: RangeEnd | undefined;
  /** The beginning of the value, if it is a string. */
  readonly prefix?: string | undefined;
  readonly descending?: boolean | undefined;
  /** The cursor of the last row that was read: the range continues after it. */
  readonly after?: string | undefined;
}

/** A row in an index. */
export interface IndexStep {
  readonly id: string;
  /** Its place in the index, as IndexRange.after takes it. */
  readonly cursor: string;
}

/** How a search ranks rows, and where it begins. */
export interface SearchOptions {
  /** The cursor of the last row that was read. */
  readonly after?: string | undefined;
  /** Whether the relevance of a row depends on no other row: its reader may not read them all. */
  readonly isByRowAlone?: boolean;
}

/** A row that a search has found, or a step without row that lets the caller pause. */
export type SearchStep =
  | { readonly id: string; readonly cursor: string }
  | { readonly id: undefined; readonly cursor: undefined };

/** The size of a table: its rows, and the words of the fields that its search reads. */
export interface TableCounts {
  readonly rows: number;
  readonly words: number;
}

/**
 * An index that is being built, and cannot be read yet. It is emptied first, and then filled with
 * one row after the other; a write maintains the entries of the rows that it already has.
 */
export interface IndexBuild {
  readonly table: string;
  /** The field; an empty text for the words of the table's search. */
  readonly index: string;
  readonly phase: 'empty' | 'fill';
  /** The id of the last row in it. */
  readonly after: string;
  /** Rows that were examined, and the number of rows when the build began. */
  readonly done: number;
  readonly of: number;
}

/** Reads of tables and their rows. */
export interface TableReads {
  /** The table that has a name; undefined when there is none. */
  table(name: string): StoredTable | undefined;
  tableById(id: string): StoredTable | undefined;
  /** A table as it was right after the change `seq` of the log. */
  tableAt(id: string, seq: number): StoredTable | undefined;
  /** The table that had a name right after the change `seq` of the log. */
  tableNamedAt(name: string, seq: number): StoredTable | undefined;
  /** The current tables in the order of their ids, after `after`. */
  tablesAfter(after: string): Iterable<StoredTable>;
  /** The tables after `after` as they were right after the change `seq` of the log, by id. */
  tablesAt(after: string, seq: number): Iterable<StoredTable>;
  /** The size of a table; zeros if no table has this name. */
  tableCounts(name: string): TableCounts;
  /** An index of a table that is not complete; undefined for one that is. */
  indexBuild(table: string, index: string): IndexBuild | undefined;
  /** The indexes that are not complete, of one table or of all. */
  indexBuilds(table?: string): readonly IndexBuild[];
  /** The current state of a row; undefined when there is none. */
  row(id: string): StoredRow | undefined;
  /** As row, with the size of the row. */
  rowStep(id: string): RowStep;
  /** A row as it was right after the change `seq` of the log. */
  rowAt(id: string, seq: number): StoredRow | undefined;
  /** The row of a table with this key. */
  rowByKey(table: string, value: Scalar): StoredRow | undefined;
  rowIdByKey(table: string, value: Scalar): string | undefined;
  /** The row that had this key right after the change `seq` of the log. */
  rowByKeyAt(table: string, value: Scalar, seq: number): StoredRow | undefined;
  /** The current rows of a table in the order of their ids, after `after`. */
  rowsAfter(table: string, after: string): Iterable<RowStep>;
  /** All rows that the table ever had, as they were right after the change `seq`. */
  rowsAt(table: string, after: string, seq: number): Iterable<RowStep>;
  /**
   * The rows in a range of an index, in its order: of equal values, in the order of their ids;
   * none for a field without index. Throws `invalid` for an unusable cursor.
   */
  rowsByIndex(table: string, range: IndexRange): Iterable<IndexStep>;
  /**
   * Those of some current rows of a table that are in a range of an index, with their places, as
   * rowsByIndex returns them; no other row is read.
   */
  placesInIndex(table: string, range: IndexRange, rows: readonly Row[]): readonly IndexStep[];
  /** The number of rows in a range, counted up to a limit: `after` does not matter. */
  countByIndex(table: string, range: IndexRange, limit: number): number;
  /**
   * The rows whose `search` fields have all words of a text, the last of which may be incomplete;
   * the most relevant first. Throws `invalid` for an unusable cursor.
   */
  searchRows(table: string, text: string, options?: SearchOptions): Iterable<SearchStep>;
}

/** The reads of rows. */
export type RowReads = Pick<
  TableReads,
  | 'row'
  | 'rowStep'
  | 'rowAt'
  | 'rowIdByKey'
  | 'rowByKey'
  | 'rowByKeyAt'
  | 'rowsAfter'
  | 'rowsAt'
  | 'rowsByIndex'
  | 'placesInIndex'
  | 'countByIndex'
  | 'searchRows'
>;
