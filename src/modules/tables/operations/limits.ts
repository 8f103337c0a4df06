/** Bytes of the JSON of a definition. */
export const tableBytesMax = 1_200_000;
/**
 * Rows that are checked in one turn of the event loop, and moved by at most one transaction; a long
 * row counts as several.
 */
export const rowsCheckedAtOnce = 100;
/** Rows that the report of a schema change lists; it counts the others. */
export const reportedRowsMax = 20;
