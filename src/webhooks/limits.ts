import { eventDataBytesMax } from '../model/limits.ts';

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
/** The overhead of an attempt and of an event, in bytes of the limit above. */
export const attemptCostBytes = 16 * KIB;
export const eventCostBytes = 512;
/** The overhead of waking a sender, likewise. */
export const wakeCostBytes = 8 * KIB;
/** Bytes of a long body that are signed or written in one turn of the event loop. */
export const bodySliceBytes = MIB;
/** Senders that are woken in one turn of the event loop. */
export const wokenAtOnceMax = 64;
/** The text of an event in a body, if JSON escapes do not lengthen its data. */
export const eventTextBytesMax = eventDataBytesMax + 4 * KIB;
/** How often the deliverer stores its clock … */
export const clockNotedMs = 600_000;
/** … and the shortest gap in it that counts as an outage, which retention does not count. */
export const outageMsMin = 3_600_000;
/** The number of newest outages that are stored. */
export const outagesMax = 1_000;
/** Characters of the hooks in the cache of receivers, and the overhead of each entry. */
export const receiversCharactersMax = 32 * MIB;
export const foundReceiverCharacters = 512;
