import { readContent } from '../../core/http/content/content.ts';
import {
  noBody,
  replyField,
  withoutCaching,
  withoutFields,
  type Reply,
} from '../../core/http/reply.ts';
import { parametersOf } from '../../core/http/query.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { previewCookie } from './preview-cookie.ts';
import type { IncomingRequest } from '../../core/pipeline/incoming-request.ts';
import { previewBytesMax } from '../../core/server/limits.ts';
import type { DraftSite, Serving } from '../../core/pipeline/serving.ts';

/**
 * The answer to a link of a preview, or to the end of one: a cookie, and the way to the page of the
 * parameter `to`, else to the front page.
 */
export function previewLinkReply(
  { previews, config }: Pick<Serving, 'previews' | 'config'>,
  path: string,
  { incoming: { target }, nowMs }: { readonly incoming: IncomingRequest; readonly nowMs: number },
): Reply | undefined {
  const token = /^\/preview\/([\w.-]{1,200})$/.exec(path)?.[1];
  if (token === undefined) return undefined;
  const found = previews.find(token, nowMs);
  if (found === undefined && token !== 'end') return undefined;
  const seconds = found === undefined ? 0 : Math.ceil((found.endMs - nowMs) / 1_000);
  const value = found === undefined ? '' : token;
  const secure = target.origin.startsWith('https:') ? '; Secure' : '';
  const cookie = `${previewCookie}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax`;
  const front = config.server.base === '' ? '/' : `${config.server.base}/`;
  const fields = ['Location', ownPath(target.query) ?? front];
  return {
    status: 302,
    fields: [
      ...fields,
      ...['Set-Cookie', cookie + secure, 'Cache-Control', 'no-store', 'Content-Length', '0'],
      ...['Referrer-Policy', 'no-referrer'],
    ],
    body: noBody,
    source: 'svc1',
  };
}

/** The path and query that `to` names; undefined for none, and for the address of another site. */
function ownPath(query: string): string | undefined {
  const { to } = parametersOf(query);
  const here = 'http://site.invalid';
  if (typeof to !== 'string' || !to.startsWith('/') || !URL.canParse(to, here)) return undefined;
  const { origin, pathname, search } = new URL(to, here);
  // A path that begins with two slashes is an address without a scheme.
  return origin === here && !pathname.startsWith('//') ? pathname + search : undefined;
}

/** Fields with which a client might get less than the whole page, or a coding of it. */
const partial = [
  ...['accept-encoding', 'range', 'if-range'],
  ...['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'],
];

/** The answer of the site as the draft has it, for no cache, and with a bar in HTML pages. */
export async function previewReply(
  { site, draft }: DraftSite,
  request: ContentRequest,
  leave: string,
): Promise<Reply> {
  const kept = Object.entries(request.fields).filter(([name]) => !partial.includes(name));
  const fields = Object.assign(Object.create(null) as Record<string, string>, {
    ...Object.fromEntries(kept),
  });
  const {
    isReusable: _isReusable,
    isCurrent: _isCurrent,
    ...reply
  } = await site.respond({
    ...request,
    fields,
  });
  const unshared = [
    ...withoutFields(withoutCaching(reply.fields), 'etag', 'last-modified'),
    ...['Cache-Control', 'no-store', 'X-Robots-Tag', 'noindex'],
  ];
  const isHtml = replyField(reply, 'content-type')?.startsWith('text/html') === true;
  const isWhole = replyField(reply, 'content-encoding') === undefined && reply.body.kind !== 'none';
  if (!isHtml || !isWhole) return { ...reply, fields: unshared };
  const content = await readContent(reply, previewBytesMax);
  const bytes = Buffer.concat([content, Buffer.from(barOf(draft.name, leave))]);
  return {
    ...reply,
    fields: [...withoutFields(unshared, 'content-length'), 'Content-Length', String(bytes.length)],
    body: { kind: 'bytes', bytes },
  };
}

/** A bar at the end of a page: it has no script, so a policy of the page cannot break it. */
function barOf(name: string, leave: string): string {
  const shown = name.replaceAll(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);
  const style =
    'position:fixed;inset:auto 0 0 0;z-index:2147483647;padding:8px 16px;margin:0;' +
    'background:#1f2328;color:#fff;font:14px/1.5 system-ui,sans-serif';
  return (
    `<aside role="status" style="${style}">Draft ${shown}: not live. ` +
    `<a href="${leave}" style="color:#fff">Leave the draft</a></aside>`
  );
}
