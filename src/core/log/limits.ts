import { MIB } from '../values/units.ts';

/** Entries that a purge copies in one transaction … */
export const copyBatchEntries = 20_000;

/** How often tasks in the background do that; they share a timer. */
export const backgroundPollMs = 250;

/** Changes of one write transaction. */
export const commitBatchMax = 1_000;
/** About how many bytes one write transaction takes before further changes go into the next one. */
export const commitBatchBytesMax = 64 * MIB;

/** Entries of the data that are verified in one turn of the event loop … */
export const verifySliceEntries = 500;

/**
 * Rows of the log, their characters, and entries of the queues that one transaction moves from the
 * log to the queues of hooks.
 */
export const dispatchRowsMax = 1_000;

/** … and how many of them are read in one step. */
export const searchSliceRows = 1_000;

/** Branches, countries, devices and referring hosts of a breadcrumb and day, of each at most. */
export const visitNamesMax = 100;
