/** Limits of tables whose rows another server has. */

const MIB = 1024 * 1024;

/** How often the server requests the schema of a table from its data host. */
export const hostSchemaMs = 1_000;
/** How long to wait before the next attempt to connect to a data host, at first and at most. */
export const hostRetryMs = 500;
export const hostRetryMsMax = 60_000;
/** Bytes of an answer of a data host. */
export const hostAnswerBytesMax = 64 * MIB;
