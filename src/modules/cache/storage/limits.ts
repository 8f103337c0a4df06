const KIB = 1024;

/** A URL as a key of LMDB, whose keys end at 1,978 bytes. */
export const cacheUrlKeyCharactersMax = 1_800;
/** Purges that are remembered for responses that were requested before them and arrive after. */
export const cacheJournalMax = 4_096;
/** Content up to this size is stored in the database, larger content in a file of its own. */
export const cacheInlineBytesMax = 32 * KIB;
/** How often the uses of stored responses are recorded. */
export const cacheTouchMs = 5_000;
/** Stored responses that are evicted in one turn of the event loop. */
export const evictedAtOnceMax = 500;
/** URLs that a purge examines in one turn of the event loop. */
export const purgeSliceUrls = 500;
