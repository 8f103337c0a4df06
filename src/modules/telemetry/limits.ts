/** Spans that wait for the collector; further ones are dropped. */
export const queuedSpansMax = 2_048;
/** The most spans of one export. */
export const batchSpansMax = 512;
/** How long spans are collected before they are sent. */
export const batchDelayMs = 2_000;
/** How long an export may take with its repetitions, and the last ones when the server stops. */
export const exportMsMax = 5_000;
/** Characters of an attribute; the rest of a longer one is cut. */
export const attributeCharactersMax = 1_024;
/** Attributes of a span. */
export const attributesMax = 32;
/** Lines of the log about spans that were dropped: one in this time. */
export const droppedLogMs = 60_000;
/** Characters of a `tracestate` that is passed on (W3C Trace Context §3.3.1.5). */
export const traceStateCharactersMax = 512;
/** Its most list-members (W3C Trace Context §3.3.1.1). */
export const traceStateMembersMax = 32;
