/** Open drafts at the same time. */
export const openDraftsMax = 1_000;
/** Characters of the name of a draft, and of its comment. */
export const draftNameCharactersMax = 128;
export const draftCommentCharactersMax = 10_000;
/** Comments on a draft, and characters of each. */
export const draftNotesMax = 200;
export const draftNoteCharactersMax = 4_000;
/** Previews of a draft at the same time, and how long each works. */
export const draftPreviewsMax = 100;
export const previewSecondsDefault = 7 * 86_400;
export const previewSecondsMax = 90 * 86_400;
/** Characters of the time of a schedule, and of its time zone. */
export const momentCharactersMax = 64;
/** How often the clock is looked at while a draft waits for its time: clocks can be moved. */
export const scheduleLookMs = 1_000;
/** How long a server waits after a failure to write what has become of a schedule. */
export const scheduleRetryMs = 5_000;
/** Rows of the log that are read to find whether a draft has changed; of more, drafts are read. */
export const scheduleRowsMax = 1_000;
/** Rows of a page of draft.list and of draft.changes. */
export const draftRowsMax = 1_000;
/** Changes, and conflicts, that the report of a publication lists; it counts the others. */
export const publishListedMax = 100;
/** Records that a draft publishes in the thread that serves pages. */
export const publishInlineRecordsMax = 500;
/** URLs that one draft.compare answers … */
export const comparedUrlsMax = 1_000;
/** … and bytes of an answer that it compares. */
export const comparedBytesMax = 4 * 2 ** 20;
/** Live requests and requests of the draft that it waits for at the same time. */
export const comparedAtOnce = 8;
