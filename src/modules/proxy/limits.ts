/** How many other sources get a request, by default, if one after the other fails. */
export const sourceRetries = 2;
/** How long a source that has failed is set aside at first, and, doubled each time, at most. */
export const sourcePauseMs = 1_000;
export const sourcePauseMsMax = 60_000;
/** The most sources with a known health. */
export const sourcesKnownMax = 1_000;
/**
 * Requests of one address that sources are answering at the same time: a quarter of the connections
 * that there are to one source.
 */
export const fetchesPerAddressMax = 512;
/** Upper bounds of the durations of answers of a source, in seconds. */
export const sourceBoundsSeconds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
/** The durations that source.list has are those of the last one to two periods. */
export const sourceRecentMs = 300_000;
/** The longest stored text of the last error of a source. */
export const sourceErrorCharactersMax = 300;
/** A health check without an answer fails after its interval, but not before or after these. */
export const checkTimeoutMsMin = 1_000;
export const checkTimeoutMsMax = 5_000;
/** Failed checks in a row after which other sources come first. */
export const checkFailuresMax = 2;
/** Content of checks and mirrors, which nobody wants, that is read to keep its connection. */
export const unwantedContentBytesMax = 64 * 1024;
/** Rules whose sources get checks, and for how long after the last request to a page rule. */
export const checkedPlansMax = 200;
export const checkIdleMs = 600_000;
/** The default interval of checks. */
export const checkIntervalMs = 10_000;
/** Servers of one name, each with an address of its own. */
export const serversOfNameMax = 64;
/** Requests that a mirror is answering at the same time, and the longest content of a copy. */
export const mirrorsOpenMax = 100;
export const mirrorContentBytesMax = 1024 * 1024;
