const MIB = 1024 * 1024;

/** JSON bytes of a row. */
export const rowBytesMax = 4 * MIB;
/** Writes without a key or user that one address may send in a minute. */
export const anonymousWritesPerMinuteMax = 30;
/** Values of one `in`. */
export const inValuesMax = 100;
/** Fields of one `where`. */
export const whereFieldsMax = 16;
/** Rows of each condition that are counted to find the one with the fewest. */
export const comparedRowsMax = 2_000;
/** Rows that a list reads and sorts at once, where a condition has no more in the whole table. */
export const sortedRowsMax = 1_000;
/** Rows of the past that a list with an order sorts at once, and reads for that. */
export const sortedRowsThenMax = 10_000;
export const examinedRowsThenMax = 100_000;
/** Rows that `count` counts one by one; a larger number is reported as a minimum. */
export const countedRowsMax = 100_000;
/** Rows that a reference lists as choices for a form. */
export const referenceChoicesMax = 200;
/** Characters of a value that a failure repeats. */
export const shownValueCharactersMax = 80;
