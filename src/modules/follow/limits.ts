/** Limits of `waymark follow`. */

/** Bytes of a name in PostgreSQL. */
export const columnNameBytesMax = 63;
/** Columns of a table, of PostgreSQL's 1,600. */
export const columnsMax = 1_500;
/** How often the schema of a table is read again: it may change without a change of a row. */
export const schemaMs = 5_000;
/** How long to wait before the next attempt to connect, at first and at most. */
export const followRetryMs = 500;
export const followRetryMsMax = 30_000;
/** How long connecting to PostgreSQL may take. */
export const postgresConnectMs = 10_000;
