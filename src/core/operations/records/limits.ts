import { MIB } from '../../values/units.ts';

/** Characters of one page of a history; a page ends early instead of holding more rows. */
export const historyCharactersMax = 8 * MIB;

/** Records that the report of an invalidate lists; it counts the others. */
export const invalidateListedMax = 1_000;
/** Later changes of a record that the report of an invalidate shows; it lists the seqs of all. */
export const conflictsShownMax = 5;

/** Rows of the log that an invalidate examines in the thread that serves pages. */
export const invalidateInlineRowsMax = 1_000;
