/** Sources that one request may be sent to, one after the other. */
export const sourceTriesMax = 3;
/** How long a source that has failed is set aside at first, and, doubled each time, at most. */
export const sourcePauseMs = 1_000;
export const sourcePauseMsMax = 60_000;
/** Sources whose health is remembered. */
export const sourcesKnownMax = 1_000;
/**
 * Requests of one address that sources are answering at the same time: a quarter of the connections
 * that there are to one source.
 */
export const fetchesPerAddressMax = 512;
