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
/** Rows of the log that are read to find whether a draft has changed; of more, drafts are read. */
export const scheduleRowsMax = 1_000;
/** Rows of a page of draft.list and of draft.changes. */
export const draftRowsMax = 1_000;
/** Changes, and conflicts, that the report of a publication lists; it counts the others. */
export const publishListedMax = 100;
/** Records that a draft publishes in the thread that serves pages. */
export const publishInlineRecordsMax = 500;
/**
 * Bytes of an answer that draft.compare shows the differences of; of a longer one, it compares a
 * digest …
 */
export const comparedBytesMax = 4 * 2 ** 20;
/** … and how long it waits for an answer. */
export const comparedAnswerMs = 30_000;
/** Live requests and requests of the draft that it waits for at the same time. */
export const comparedAtOnce = 8;
/** Branches of a breadcrumb that it lists; it counts the others. */
export const comparedBranchesMax = 50;
/** URLs of the sitemaps of a site … */
export const sitemapUrlsMax = 50_000;
/** … bytes of one of them, and how many an index may name. */
export const sitemapBytesMax = 16 * 2 ** 20;
export const sitemapsMax = 50;
/** Days whose most visited pages it compares by default. */
export const comparedDaysDefault = 30;
/** Characters of two texts, changed lines that it looks for in them, and for how long. */
export const diffTextCharactersMax = 512 * 1_024;
export const diffEditsMax = 1_000;
export const diffStepsMax = 5_000_000;
/** Characters of a difference, and of each of its lines. */
export const diffCharactersMax = 4_000;
export const diffLineCharactersMax = 200;
