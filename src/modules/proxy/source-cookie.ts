import type { ContentRequest, Fields } from '../../core/http/request.ts';
import { encodePath } from '../../core/values/path.ts';
import type { FetchPlan, SourceTarget } from './fetch-plan.ts';

/** The cookie that keeps a visitor at one source; its value is the mark of the source. */
const sourceCookie = 'waymark_source';

/** The values of the cookie; a browser sends one for each path that has set it. */
export function sentMarks({ cookie = '' }: Fields): ReadonlySet<string> {
  const values = cookie.split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.split('=', 2);
    return name.trim() === sourceCookie ? [value.trim()] : [];
  });
  return new Set(values);
}

/** The value of a Cookie field without the cookie; undefined if no other one is in it. */
export function withoutSourceCookie(cookie: string | undefined): string | undefined {
  if (cookie?.includes(sourceCookie) !== true) return cookie;
  const others = cookie.split(';').filter((pair) => pair.split('=', 1)[0]?.trim() !== sourceCookie);
  const left = others.join(';').trim();
  return left === '' ? undefined : left;
}

/**
 * The Set-Cookie that keeps a visitor at the source that has answered; undefined if the visitor has
 * it already.
 */
export function stickyCookie(
  plan: FetchPlan,
  { source }: SourceTarget,
  { fields, origin }: Pick<ContentRequest, 'fields' | 'origin'>,
): string | undefined {
  if (plan.balance !== 'cookie' || sentMarks(fields).has(source.mark)) return undefined;
  // A semicolon would end the attribute.
  const [prefix = '/'] = encodePath(plan.visiblePrefix).split(';', 1);
  const path = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  const secure = origin.startsWith('https:') ? '; Secure' : '';
  return `${sourceCookie}=${source.mark}; Path=${path}; HttpOnly; SameSite=Lax${secure}`;
}
