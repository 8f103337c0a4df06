/** Rows of the log, and about how many characters of them, in one packet to a node … */
export const feedRowsAtOnce = { rows: 500, characters: 2 ** 20 };
/** … and in one piece of a copy. */
export const copyRowsAtOnce = { rows: 2_000, characters: 2 ** 20 };
/** Entries of an outbox in one request. */
export const takenEntriesMax = 1_000;
/** Refused entries that one call changes. */
export const outboxChangedAtOnce = 1_000;
