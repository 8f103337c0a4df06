const MIB = 1024 * 1024;

/** Fields in the `_unknowns_` of one record. */
export const unknownsMax = 256;
export const historyRowsDefault = 100;
export const historyRowsMax = 1_000;
/** Characters of one page of a history; a page ends early instead of holding more rows. */
export const historyCharactersMax = 8 * MIB;
/** Records that are examined for one page of a list; a long record counts as several. */
export const listExaminedMax = 200_000;
/** Records that the report of an invalidate lists; it counts the others. */
export const invalidateListedMax = 1_000;
/** Later changes of a record that the report of an invalidate shows; it lists the seqs of all. */
export const conflictsShownMax = 5;
/** Records that an invalidate can leave out. */
export const invalidateExceptMax = 1_000;
/** Characters of a value that such a report shows. */
export const invalidateShownCharactersMax = 200;
/** Rows of the log that an invalidate examines in the thread that serves pages. */
export const invalidateInlineRowsMax = 1_000;
/** Characters of an unknown id that a failure repeats. */
export const shownIdCharactersMax = 80;
