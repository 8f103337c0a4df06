/** How long a node waits before it connects to its centre again, at first and at most. */
export const centralRetry = { minMs: 100, maxMs: 2_000 };
/** How often a node reports to its centre. */
export const reportMs = 10_000;
/** How long a node waits for an answer of its centre. */
export const centralTimeoutMs = 30_000;
