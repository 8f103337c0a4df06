/** The cookie of a preview: with it, the site shows a draft (docs/design/drafts.md#preview). */
export const previewCookie = 'waymark_draft';
