import { backgroundPollMs } from '../../core/log/limits.ts';

/** Limits of deliveries in the background. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Bodies of all attempts in flight together. */
export const bodiesInFlightBytesMax = 64 * MIB;
/** Of them, the bodies that are longer than smallBodyBytesMax: the rest is kept for short ones. */
export const largeBodiesInFlightBytesMax = 48 * MIB;
/** Up to this size a body counts as short. */
export const smallBodyBytesMax = 64 * KIB;
/** Bytes of events and bodies that all senders prepare in one turn of the event loop. */
export const preparedPerTurnBytesMax = MIB;
/** The costs of an attempt and of an event, in bytes of `preparedPerTurnBytesMax`. */
export const attemptCostBytes = 16 * KIB;
export const eventCostBytes = 512;
/** The cost of waking a sender, in bytes of `preparedPerTurnBytesMax`. */
export const wakeCostBytes = 8 * KIB;
/** Bytes of a long body that are signed or written in one turn of the event loop. */
export const bodySliceBytes = MIB;
/** How often the deliverer stores its clock. */
export const clockNotedMs = 600_000;
/** The shortest gap in the stored clock that is an outage, in which retention does not count. */
export const outageMsMin = 3_600_000;
/** The number of newest outages that are stored. */
export const outagesMax = 1_000;
/** Characters of the hooks in the cache of receivers, and the overhead of each entry. */
export const receiversCharactersMax = 32 * MIB;
export const foundReceiverCharacters = 512;
/** The most bytes of events in one batch. */
export const hookBatchBytesMax = 16 * MIB;
/** The data of one event, as JSON. */
export const eventDataBytesMax = 256 * KIB;
/** The text of an event in a body, if JSON escapes do not lengthen its data. */
export const eventTextBytesMax = eventDataBytesMax + 4 * KIB;
/** Characters of the latest events that are cached for further hooks. */
export const eventTextsCharactersMax = 16 * MIB;
/** How often expired messages are searched. */
export const retentionCheckMs = 60_000;
/** Attempts in flight to all receivers together. */
export const deliveriesInFlightMax = 4_096;
/** Events of a hook that are read ahead. */
export const queuedReadMax = 64;
/** The longest timer; longer waits consist of several. */
export const wakeMsMax = 3_600_000;
/** How long after a failure to record an attempt the sender tries again. */
export const recordAgainMs = 1_000;
/** How often the log is checked for changes by other processes: with hooks, and without any. */
export const deliveryPollMs = 10;
export const deliveryIdlePollMs = backgroundPollMs;
/** How often a process that does not deliver checks whether another one still does. */
export const deliveryClaimMs = 1_000;
/** How often the deliverer drops its state of hooks that have nothing to send. */
export const deliveryTidyMs = 5_000;
/** How long attempts in flight may last after another process has replaced this one. */
export const deliveryHandOverMs = 10_000;
/** How long attempts in flight may last after their hook was changed or deleted. */
export const deliverySettleMs = 1_000;
/** The secret of a hook, as the server makes it. */
export const secretBytes = 32;
/** The sizes that Standard Webhooks allows for a secret. */
export const secretBytesMin = 24;
export const secretBytesMax = 64;
/** The longest Retry-After that delays one message: a day. */
export const retryAfterMsMax = 86_400_000;
/** The longest time that a Retry-After pauses a whole hook. */
export const hookRetryAfterMsMax = 3_600_000;
/** The size of the window of a hook without a history. */
export const windowSizeFirst = 4;
/** Refusals without a success between them after which a receiver counts as failing. */
export const refusalsInARow = 8;
/** The pause after the first failed probe. Each further failure doubles it, up to the maximum. */
export const probePauseMs = 1_000;
export const probePauseMsMax = 60_000;
/** The most hooks with their own label in the metrics of queues. */
export const hooksMeasuredMax = 200;
/** Bytes of an answer that the record of an attempt holds, as text … */
export const reportedAnswerBytesMax = 4 * KIB;
/** … and characters of the names and values of its header fields. */
export const reportedFieldCharactersMax = 2 * KIB;
