const KIB = 1024;
const MIB = 1024 * KIB;

/** The longest secondary cache key that is stored as text; of longer ones, a hash is stored. */
export const selectingCharactersMax = 512;
/** The most members of a list that is normalized; longer lists stay unchanged. */
export const canonicalMembersMax = 32;
/** A difference of two clock readings up to this is jitter, not a change of the clock. */
export const clockJitterMs = 1_000;
/** The longest time a response waits for other workers to see its change of the cache. */
export const sharedAnswerMs = 100;
/** The longest lifetime of a response without an explicit one (RFC 9111 §4.2.2). */
export const heuristicLifetimeMsMax = 86_400_000;
/** How long a stale response is used while its source cannot be reached. */
export const staleUnreachableMsMax = 3_600_000;
/** URLs that are remembered for responses that cannot be shared, and for how long. */
export const unsharedUrlsMax = 10_000;
export const unsharedMs = 120_000;
/**
 * How long a request waits for the response to another one of the same content, before it is sent
 * itself: that of `proxy_cache_lock_timeout` of nginx.
 */
export const coalescedWaitMsMax = 5_000;
/** Responses that are stored for one URL, with different values of the fields in Vary. */
export const answersPerUrlMax = 32;
/** Memory for the content of one response that has not been written to its file. */
export const arrivingHeldBytesMax = MIB;
/** The same for all responses together; above it, each response has only the next limit. */
export const arrivingBytesMax = 64 * MIB;
export const arrivingScarceBytesMax = 64 * KIB;
/** Disk space for incoming content, as a multiple of the longest content that may be stored. */
export const arrivingFilesMax = 2;
/** How far apart two readers of content that is not stored may be when memory is scarce. */
export const arrivingLagBytesMax = 4 * MIB;
/** Shorter chunks of incoming content are joined. */
export const arrivingPieceBytes = 16 * KIB;
/** Bytes that a reader takes at a time from a file that is still being written. */
export const arrivingReadBytes = 128 * KIB;
/** Stored content up to this size is sent from memory, larger content from its file. */
export const cacheHeldFileBytesMax = MIB;
/** Stored responses in the memory of a process. */
export const cacheHeldBytesMax = 32 * MIB;
/** The shortest time between two log lines that say that the cache cannot be written. */
export const cacheReportMs = 60_000;
/** How exactly the time of the last use of a stored response is recorded. */
export const cacheTouchedSeconds = 60;
/** Values of the fields in Vary for which a source has confirmed the same response. */
export const selectingsPerAnswerMax = 16;
/** Parsed Cache-Control fields in memory, and the longest field that is remembered. */
export const directivesKnownMax = 256;
export const directivesKnownCharactersMax = 256;
