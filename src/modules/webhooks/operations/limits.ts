/** Limits of the operations on webhooks and events. */

const KIB = 1024;

/** Times of the day at which a hook's batches are sent. */
export const hookBatchTimesMax = 48;
/** Hooks in the answer to an event that do not get it, because no node executes them. */
export const placeProblemsMax = 10;
export const hooksMax = 10_000;
export const hookNameCharactersMax = 128;
export const hookUrlCharactersMax = 4_096;
/** Event types that one hook may name. */
export const hookEventsMax = 64;
export const hookPlaceCharactersMax = 253;
/** Tables that one hook may name … */
export const hookTablesMax = 64;
/** … and the characters of such a name: applications may raise events about their own tables. */
export const hookTableCharactersMax = 128;
/** Characters of a header field that a hook adds. */
export const hookFieldCharactersMax = 4_096;
/** All fields of a hook, including `_unknowns_`. */
export const hookBytesMax = 64 * KIB;
export const hookRetriesMax = 1_000;
/** Waits that the schedule of one hook may name, and the length of each. */
export const hookRetryWaitsMax = 100;
export const hookRetryWaitMsMin = 1_000;
export const hookRetryWaitMsMax = 30 * 86_400_000;
export const hookBatchEventsMax = 10_000;
export const hookBatchEveryMsMin = 1_000;
export const hookBatchEveryMsMax = 86_400_000;
/** How long messages are also signed with a replaced secret. */
export const hookSecretOverlapMs = 86_400_000;
/** Attempts that are examined for one page of a list. */
export const deliveriesExaminedMax = 10_000;
/** Characters of an answer in the list of attempts; the answer for one message has all of it. */
export const listedAnswerCharactersMax = KIB;
/** Characters of a body in the answer for one message, and its attempts, the newest. */
export const shownBodyCharactersMax = 64 * KIB;
export const shownAttemptsMax = 100;
/** Newest attempts of a hook by which webhook.health judges it. */
export const healthAttemptsMax = 20;
/** Hooks in one answer of webhook.health. */
export const healthRowsMax = 200;
export const eventCounterCharactersMax = 253;
/** Changes that are examined for one page of a list of events. */
export const eventsExaminedMax = 20_000;
