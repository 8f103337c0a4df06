/** The longest secondary cache key that is stored as text; of longer ones, a hash is stored. */
export const selectingCharactersMax = 512;
/** The most members of a list that is normalized; longer lists stay unchanged. */
export const canonicalMembersMax = 32;
/** A difference of two clock readings up to this is jitter, not a change of the clock. */
export const clockJitterMs = 1_000;
/** The longest time a response waits for other workers to see its change of the cache. */
export const sharedAnswerMs = 100;
