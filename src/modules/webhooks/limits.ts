import { KIB, MIB } from '../../core/values/units.ts';

/** Bytes of a long body that are signed or written in one turn of the event loop. */
export const bodySliceBytes = MIB;

/** The most bytes of events in one batch. */
export const hookBatchBytesMax = 16 * MIB;
/** The data of one event, as JSON. */
export const eventDataBytesMax = 256 * KIB;

/** The longest Retry-After that delays one message: a day. */
export const retryAfterMsMax = 86_400_000;
