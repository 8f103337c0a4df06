/** Rows that one transaction of a copy applies, and about how many characters of them. */
export const appliedRowsMax = 5_000;
export const appliedCharactersMax = 4 * 2 ** 20;
/**
 * Rows that a follower may lack while it applies its feed, and about how many characters of one
 * transaction: it copies more in a thread of its own, because they would delay visitors.
 */
export const feedRowsMax = 1_000;
export const feedCharactersMax = 4 * 2 ** 20;
/** How long a node waits before it connects to its centre again, at first and at most. */
export const centralRetry = { minMs: 100, maxMs: 2_000 };
/** How often a node reports to its centre. */
export const reportMs = 10_000;
/** How long a node waits for an answer of its centre. */
export const centralTimeoutMs = 30_000;
/** How long a write that was passed on waits until this node has its change. */
export const appliedWaitMs = 5_000;
/**
 * Entries of the outbox in one request, and about how many characters of them: many proxies take
 * no request of more than 1 MiB.
 */
export const outboxSentAtOnce = 200;
export const outboxSentCharactersMax = 2 ** 18;
/** The slowest connection, in characters a millisecond, over which a large entry gets through. */
export const outboxCharactersPerMs = 4;
/** How often the node checks an empty outbox. */
export const outboxPollMs = 50;
/** How long a node may be silent before an event reports it, and how often the centre looks. */
export const nodeSilentMs = 60_000;
export const silenceLookMs = 10_000;
/** The most hooks with a queue in the report of a node. */
export const reportedQueuesMax = 200;
/** Bytes of the nodes in one message of a node of a cluster to the others. */
export const signBytesMax = 200_000;
/** Signs of another process of the same data folder after which two machines have a copy of it. */
export const twinSignsMin = 3;
/** After this time without a sign, a machine of a cluster is no longer listed. */
export const memberForgottenMs = 7 * 86_400_000;
