/** Characters of the time of a schedule, and of its time zone. */
export const momentCharactersMax = 64;

/** Rows of a page of draft.list and of draft.changes. */
export const draftRowsMax = 1_000;
/** Changes, and conflicts, that the report of a publication lists; it counts the others. */
export const publishListedMax = 100;
/** Records that a draft publishes in the thread that serves pages. */
export const publishInlineRecordsMax = 500;

/** Days whose most visited pages it compares by default. */
export const comparedDaysDefault = 30;
