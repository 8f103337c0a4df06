/** Rows that an import writes in one transaction. */
export const importRowsMax = 100_000;

/** Refused lines, and lines with other problems, that the report of an import lists. */
export const refusalsKeptMax = 1_000;
/** Imported page rules and hooks that an import checks once all are written, the first ones. */
export const writtenCheckedMax = 1_000;
