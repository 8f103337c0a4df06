/** Limits of the operations on webhooks and events. */

/** Times of the day at which a hook's batches are sent. */
export const hookBatchTimesMax = 48;
/** Hooks that one answer to an event says not to get it, since no node executes them. */
export const placeProblemsMax = 10;
