const MIB = 1024 * 1024;

/** Rules in memory with their content. */
export const ruleCacheBytesMax = 128 * MIB;
/** Results of look-ups by origin and path in memory: once for exact paths, once for wildcards;
 * for a site with rules that begin or end, once more for each. */
export const ruleLookupsBytesMax = 8 * MIB;
/** Candidates of one source that explain names, including the one that answers. */
export const explainCandidatesMax = 100;
