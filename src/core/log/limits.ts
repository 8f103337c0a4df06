const MIB = 1024 * 1024;

/**
 * Pages of the data file that are checked before it is opened: all of a file up to 1 MiB; of a
 * larger file the upper levels of its trees.
 */
export const openCheckPagesMax = 256;
/** How often the check is repeated while another process writes. */
export const openCheckAttemptsMax = 5;
/** Entries that a purge copies in one transaction … */
export const copyBatchEntries = 20_000;
/** … and bytes of them. */
export const copyBatchBytes = 64 * 2 ** 20;
/** Page rules at one origin and path, or with one wildcard of an origin. */
export const rulesAtPlaceMax = 1_000;
/** Wildcards of an origin that cover one path; matching reads only the longest of them … */
export const wildcardsOverPathMax = 64;
/** … and stops once they have this many rules together. */
export const wildcardRulesOverPathMax = 1_000;
/** Characters of the hooks in the cache by event type … */
export const hooksRememberedCharactersMax = 32 * 2 ** 20;
/** … and the overhead of each entry, so that types without hooks are limited too. */
export const listedHooksCharacters = 256;
/** Comparisons of events with hooks in one transaction of a dispatch. */
export const dispatchComparedMax = 10_000;

/** How often the log is checked for changes by other processes while a reader waits for them. */
export const feedPollMs = 100;
/** How often tasks in the background do that; they share a timer. */
export const backgroundPollMs = 250;
/** Rows of the log, and about how many characters, that are read in one turn of the event loop. */
export const feedSliceRowsMax = 64;
export const feedSliceCharactersMax = MIB;
/** Characters of the latest changes and their records that are cached for further readers. */
export const feedRememberedCharactersMax = 64 * MIB;
/** Changes of one write transaction. */
export const commitBatchMax = 1_000;
/** About how many bytes one write transaction takes before further changes go into the next one. */
export const commitBatchBytesMax = 64 * MIB;
/** Characters of the rows of one decision whose texts are in memory until both copies are put. */
export const dataTextsCharactersMax = 16 * MIB;
/** Changes that wait for their commit; further ones are answered with `unavailable`. */
export const commitQueueMax = 20_000;
/** Entries of the data that are verified in one turn of the event loop … */
export const verifySliceEntries = 500;
/** … and changes, with their characters, that are folded in one transaction of a verification. */
export const verifyFoldRows = 2_000;
export const verifyFoldCharacters = 4 * MIB;
/** The highest number of attempts that is recorded for one message. */
export const attemptsMax = 65_535;
/**
 * Rows of the log, their characters, and entries of the queues that one transaction moves from the
 * log to the queues of hooks.
 */
export const dispatchRowsMax = 1_000;
export const dispatchCharactersMax = 4 * MIB;
export const dispatchEntriesMax = 4_000;
/** Messages that a replay makes due again in one transaction. */
export const replayMessagesMax = 500;
/** Expired messages that are deleted in one transaction. */
export const expiredAtOnceMax = 500;
/** Up to this number, the messages of a hook that wait for a retry are counted. */
export const waitingCountedMax = 1_000;
/** Messages at either end of a queue that are examined to find the oldest one. */
export const oldestExaminedMax = 16;
/** How long a change of a hook waits until the deliverer has applied it. */
export const appliedMsMax = 5_000;
/** How often that is checked. */
export const appliedPollMs = 5;
/** Values whose latest event is in the cache that limits how often `emit` raises events. */
export const emittedRememberedMax = 10_000;

/** Bytes of a string that decide its place in an index. */
export const indexedStringBytesMax = 400;
/** Tables whose definitions are in the cache. */
export const tablesRememberedMax = 1_000;
/** Characters of a field that text search reads … */
export const searchedCharactersMax = 100_000;
/** … words of them … */
export const wordsPerFieldMax = 10_000;
/** … and characters of each. */
export const wordCharactersMax = 64;
/** Rows that one transaction adds to an index that is being built: a request waits for it. */
export const indexBuildRowsMax = 2_000;
/** Words of a search. */
export const searchWordsMax = 16;
/** Words that begin with the last word of a search. */
export const searchPrefixWordsMax = 200;
/** Rows that a search ranks, the newest; older ones with the same words are not found … */
export const searchRankedRowsMax = 50_000;
/** … and how many of them are read in one step. */
export const searchSliceRows = 1_000;
/** The most that an outbox has, if the ini file sets nothing else. */
export const outboxMaxDefault = { entries: 1_000_000, bytes: 4 * 2 ** 30 };
/** Entries that the centre has stored and that are kept for the deliveries of hooks. */
export const outboxKeptMax = 1_000_000;
/** Entries that are shortened in one transaction. */
export const outboxTidiedMax = 1_000;

/** How long a process that opens the data waits until the others pause writing. */
export const openingWaitMs = 30_000;
/** How long a change waits for another process that opens the data, before it is refused. */
export const enterWaitMs = 10_000;
/** How long the write transactions of a process may overlap before it pauses for others to open. */
export const writingMsMax = 20;
/** How often a writer looks whether another process has opened the data, at least. */
export const enterRetryMsMax = 25;

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

/** Of the oldest sessions of `[login]`, those that a sign-in looks at to remove expired ones. */
export const expiredLoginsRemovedMax = 200;

/** Branches, countries, devices and referring hosts of a breadcrumb and day, of each at most. */
export const visitNamesMax = 100;
/** Breadcrumbs that have counts of their own on one day; visits of others are counted together. */
export const visitKeysPerDayMax = 10_000;
/** Names of each dimension (sources, countries, referring hosts …) of a page and day. */
export const pageNamesMax = 20;
/** Pages that have counts of their own on one day: the most visited ones. */
export const pagesPerDayMax = 1_000;
/** The longest time that counts of visits are only in memory. */
export const visitFlushMs = 5_000;
/** Breadcrumbs with counts in memory that are not written yet, and pages. */
export const visitKeysBufferedMax = 10_000;
export const pagesBufferedMax = 2_000;
/** The most breadcrumbs or pages with counts in one transaction. */
export const visitBatchKeysMax = 500;
/** Entries that one transaction deletes. */
export const visitDeletesMax = 5_000;
/** Entries that a listing of all breadcrumbs reads before it lets other work run. */
export const visitRowsReadMax = 1_000;
/** How often changes that belong together are made anew because another node has written. */
export const togetherAttemptsMax = 5;
