import { withoutPreview } from '../../modules/drafts/draft.ts';
import { previewCookie } from './preview-cookie.ts';
import { mayHaveLogin, withoutLogin } from '../../modules/login/login-cookies.ts';
import type { Fields } from './request.ts';

/**
 * The fields of a request without the cookies of previews and sessions, those of the console, too:
 * no source sees them, and no page rule.
 */
export function withoutOwnCookies(fields: Fields): Fields {
  const { cookie } = fields;
  if (cookie === undefined) return fields;
  const hasSession = cookie.includes(sessionCookie);
  if (!hasSession && !cookie.includes(previewCookie) && !mayHaveLogin(cookie)) return fields;
  const left = withoutLogin(withoutPreview(cookie));
  const kept = hasSession ? left.replaceAll(session, '').replace(/^;\s*/, '').trim() : left;
  const { cookie: _cookie, ...others } = fields;
  const all = kept === '' ? others : { ...others, cookie: kept };
  return Object.assign(Object.create(null) as Record<string, string>, all);
}

/** The beginning of the names of the cookies of the console's sessions. */
const sessionCookie = 'waymark_session_';
const session = /(?:^|;)\s*waymark_session_[^=;]*=[^;]*/g;

/** A browser sends a cookie without a name as its value alone: `=name=value` sets `name`, too. */
const setsOwn =
  /^[\s=]*(?:__Host-)?waymark_(?:(?:login|login_count|draft)\s*|(?:signin|session)_[^=;]*)=/;

/**
 * Whether a Set-Cookie is of a cookie that no source sees. No source sets one either: it could sign
 * a visitor in as someone else, out, or into the preview of a draft.
 */
export function setsOwnCookie(setCookie: string): boolean {
  return setsOwn.test(setCookie);
}
