const KIB = 1024;
const MIB = 1024 * KIB;

export const contentBytesMax = 16 * MIB;
export const enginedataBytesMax = MIB;
/** All fields of a rule except its content, including `_unknowns_` and `enginecomments`. */
export const ruleBytesMax = 4 * MIB;
export const unknownsMax = 256;
/** A wildcard path is a key of LMDB, whose keys end at 1,978 bytes. */
export const wildcardPathBytesMax = KIB;
/** Sources of one page rule. */
export const fetchSourcesMax = 16;
export const historyRowsDefault = 100;
export const historyRowsMax = 1_000;
/** Characters of one page of a history; a page ends early instead of holding more rows. */
export const historyCharactersMax = 8 * MIB;
/** Rules that are examined for one page of a list. */
export const listExaminedMax = 200_000;
/** Rules that a list examines in one turn of the event loop. */
export const listSliceRules = 1_000;
/** Records that the report of an invalidate lists; it counts the others. */
export const invalidateListedMax = 1_000;
/** Characters of a value that such a report shows. */
export const invalidateShownCharactersMax = 200;
/** Rows of the log that an invalidate examines in the thread that serves pages. */
export const invalidateInlineRowsMax = 1_000;
