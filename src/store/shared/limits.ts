/** Entries of a shared log that are applied at once … */
export const appliedAtOnceMax = 256;
/** … and about how many bytes of them. */
export const appliedAtOnceBytesMax = 16 * 2 ** 20;
/** How long a write waits while no entry comes, although the shared log has more. */
export const sharedProgressMs = 10_000;
/** When a node tries to follow the shared log again after an error. */
export const sharedRetryMs = 1_000;
/** How often it tries an entry that it cannot apply: another server may have it undamaged. */
export const entryTriesMax = 3;
/** Characters of rows that one entry of an upload has, besides those of its last transaction … */
export const uploadedCharactersMax = 500_000;
/** … and idempotency keys. */
export const uploadedClaimsMax = 5_000;
/** After this many appends in a row for which other nodes were faster, a node claims a turn … */
export const lossesMax = 5;
/** … and the others wait for it at most this long. */
export const turnMs = 15_000;
/** How often a node that has a task of the cluster, such as deliveries, shows that it does it … */
export const taskSignMs = 5_000;
/** … and after how long without a sign another one takes over. */
export const taskTakeOverMs = 15_000;
/** How often a node tries to get the turn of a task. */
export const taskRetryMs = 2_000;
/** How long the log of the cluster waits for what a notice says, such as a purge of the cache. */
export const noticeMsMax = 5_000;
/** When it is tried again after an error; each further time, twice as long … */
export const noticeRetryMs = 1_000;
/** … and how often it is tried. */
export const noticeTriesMax = 6;
