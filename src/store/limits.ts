/**
 * Pages of the data file that are looked at before it is opened: all of them up to 1 MiB, of a
 * longer file the ones that lead to the others.
 */
export const openCheckPagesMax = 256;
/** How often they are looked at again while another process writes. */
export const openCheckAttemptsMax = 5;
/** Entries that a purge copies in one transaction … */
export const copyBatchEntries = 20_000;
/** … and bytes of them. */
export const copyBatchBytes = 64 * 2 ** 20;
/** Page rules at one origin and path, or with one wildcard of an origin. */
export const rulesAtPlaceMax = 1_000;
/** Wildcards of an origin that cover one path: of more, only the longest are looked at … */
export const wildcardsOverPathMax = 64;
/** … and none behind those that have this many rules together. */
export const wildcardRulesOverPathMax = 1_000;
/** Characters of the hooks that are kept at hand, by the event types that they name … */
export const hooksRememberedCharactersMax = 32 * 2 ** 20;
/** … and what a list of them counts besides, so that types without hooks do not add up. */
export const listedHooksCharacters = 256;
/** Hooks that events are compared with in one transaction that puts them into the queues. */
export const dispatchComparedMax = 10_000;
