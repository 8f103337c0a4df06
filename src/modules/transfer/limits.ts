/** Rows that an import writes in one transaction. */
export const importRowsMax = 100_000;

/** Refused lines, and lines with other problems, that the report of an import lists. */
export const refusalsKeptMax = 1_000;
/** Imported page rules that an import over HTTP checks for what hides them. */
export const shadowsCheckedMax = 1_000;
