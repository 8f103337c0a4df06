/** The cookie of a preview: with it, the site shows a draft (docs/design/drafts.md#preview). */
export const previewCookie = 'waymark_draft';

const pair = /(?:^|;)\s*waymark_draft=([\w.-]{1,200})(?=;|$)/;
const anyPair = /(?:^|;)\s*waymark_draft=[^;]*/g;

/** The token in the Cookie of a request; undefined without one. */
export function previewToken(cookie: string | undefined): string | undefined {
  return cookie?.includes(previewCookie) === true ? pair.exec(cookie)?.[1] : undefined;
}

/** A Cookie without the token, which no source may see. */
export function withoutPreview(cookie: string): string {
  return cookie.replaceAll(anyPair, '').replace(/^;\s*/, '').trim();
}
