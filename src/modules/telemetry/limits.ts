/** Spans that wait for the collector; further ones are dropped. */
export const queuedSpansMax = 2_048;

/** How long an export may take with its repetitions, and the last ones when the server stops. */
export const exportMsMax = 5_000;
