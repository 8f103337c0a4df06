/**
 * Pages of the data file that are checked before it is opened: all of a file up to 1 MiB; of a
 * larger file the upper levels of its trees.
 */
export const openCheckPagesMax = 256;
/** How often the check is repeated while another process writes. */
export const openCheckAttemptsMax = 5;
/** Entries that a purge copies in one transaction … */
export const copyBatchEntries = 20_000;
/** … and bytes of them. */
export const copyBatchBytes = 64 * 2 ** 20;
/** Page rules at one origin and path, or with one wildcard of an origin. */
export const rulesAtPlaceMax = 1_000;
/** Wildcards of an origin that cover one path; matching reads only the longest of them … */
export const wildcardsOverPathMax = 64;
/** … and stops once they have this many rules together. */
export const wildcardRulesOverPathMax = 1_000;
/** Characters of the hooks in the cache by event type … */
export const hooksRememberedCharactersMax = 32 * 2 ** 20;
/** … and the overhead of each entry, so that types without hooks are limited too. */
export const listedHooksCharacters = 256;
/** Comparisons of events with hooks in one transaction of a dispatch. */
export const dispatchComparedMax = 10_000;
