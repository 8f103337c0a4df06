import { previewCookie, withoutPreview } from '../../modules/drafts/draft.ts';
import { mayHaveLogin, withoutLogin } from '../../modules/login/login-cookies.ts';
import type { Fields } from './request.ts';

/** The fields of a request without the cookies of previews and sessions: no source sees them. */
export function withoutOwnCookies(fields: Fields): Fields {
  const { cookie } = fields;
  if (cookie === undefined) return fields;
  if (!cookie.includes(previewCookie) && !mayHaveLogin(cookie)) return fields;
  const kept = withoutLogin(withoutPreview(cookie));
  const { cookie: _cookie, ...others } = fields;
  const all = kept === '' ? others : { ...others, cookie: kept };
  return Object.assign(Object.create(null) as Record<string, string>, all);
}

/** A browser sends a cookie without a name as its value alone: `=name=value` sets `name`, too. */
const setsOwn = /^[\s=]*(?:__Host-)?waymark_(?:(?:login|login_count|draft)\s*|signin_[^=;]*)=/;

/**
 * Whether a Set-Cookie is of a cookie that no source sees. No source sets one either: it could sign
 * a visitor in as someone else, out, or into the preview of a draft.
 */
export function setsOwnCookie(setCookie: string): boolean {
  return setsOwn.test(setCookie);
}
