import { eventDataBytesMax } from '../model/limits.ts';

/** Limits of deliveries in the background. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Bodies of all attempts that are under way. */
export const bodiesInFlightBytesMax = 64 * MIB;
/** Of them, the bodies that are longer than smallBodyBytesMax: the rest is kept for short ones. */
export const largeBodiesInFlightBytesMax = 48 * MIB;
/** Up to this size a body counts as short. */
export const smallBodyBytesMax = 64 * KIB;
/** What senders prepare in one turn of the event loop: bytes of events and bodies. */
export const preparedPerTurnBytesMax = MIB;
/** What an attempt costs besides its body, and an event besides its text, as if it were bytes. */
export const attemptCostBytes = 16 * KIB;
export const eventCostBytes = 512;
/** What waking a sender costs, as if it were bytes. */
export const wakeCostBytes = 8 * KIB;
/** How much of a long body is signed, or written, without a pause. */
export const bodySliceBytes = MIB;
/** Senders that are woken without a pause. */
export const wokenAtOnceMax = 64;
/** The text of an event in a body, but for data that escapes in JSON make longer. */
export const eventTextBytesMax = eventDataBytesMax + 4 * KIB;
/** How often the deliverer writes its clock down … */
export const clockNotedMs = 600_000;
/** … and how long it must have stood still for that time not to count as kept. */
export const outageMsMin = 3_600_000;
/** Outages that are remembered, the newest ones. */
export const outagesMax = 1_000;
/** Characters of the hooks that are kept at hand for their deliveries, and of what each adds. */
export const receiversCharactersMax = 32 * MIB;
export const foundReceiverCharacters = 512;
