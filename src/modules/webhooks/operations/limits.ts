/** Limits of the operations on webhooks and events. */

/** Times of the day at which a hook's batches are sent. */
export const hookBatchTimesMax = 48;

export const hookNameCharactersMax = 128;
export const hookUrlCharactersMax = 4_096;
/** Event types that one hook may name. */
export const hookEventsMax = 64;
export const hookPlaceCharactersMax = 253;
/** Tables that one hook may name … */
export const hookTablesMax = 64;
/** … and the characters of such a name: applications may raise events about their own tables. */
export const hookTableCharactersMax = 128;

export const hookRetriesMax = 1_000;
/** Waits that the schedule of one hook may name, and the length of each. */
export const hookRetryWaitsMax = 100;

export const hookBatchEventsMax = 10_000;
