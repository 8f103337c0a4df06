/** Characters of the text that a replacement looks for … */
export const findCharactersMax = 1_000;
/** … and of what takes its place. */
export const withCharactersMax = 10_000;
/** Characters of a field that is searched; a longer one stays as it is. */
export const searchedCharactersMax = 2 ** 20;
/** How often a page may have the text. */
export const foundOnPageMax = 10_000;
/** How long the search of one page may take, in milliseconds … */
export const patternMs = 250;
/** … which is measured from so many comparisons of characters on, at worst, and for patterns. */
export const untimedStepsMax = 10_000_000;
/** Places of a page rule that a report shows … */
export const foundShownMax = 20;
/** … characters of what it found at one … */
export const snippetCharactersMax = 200;
/** … and on each side of it. */
export const snippetSideCharactersMax = 60;
/** Page rules that one replacement changes … */
export const replacedPagesMax = 1_000;
/** … and characters of their changed fields. */
export const replacedCharactersMax = 16 * 2 ** 20;
/** Page rules that a report examines for one answer; a long one counts as several. */
export const searchedRecordsMax = 4_096;
