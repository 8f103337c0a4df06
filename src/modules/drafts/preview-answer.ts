import { type ServicePath, methodReply } from '../../core/operations/http/service-path.ts';
import { readContent } from '../../core/http/content/content.ts';
import { escapeHtml, pageFields, plainPage } from '../../core/http/content/page.ts';
import { parametersOf } from '../../core/http/query.ts';
import {
  type Reply,
  noBody,
  replyField,
  withoutCaching,
  withoutFields,
} from '../../core/http/reply.ts';
import type { ContentRequest, Fields } from '../../core/http/request.ts';
import type { IncomingRequest } from '../../core/pipeline/incoming-request.ts';
import type { DraftSite, Serving } from '../../core/pipeline/serving.ts';
import { Failure } from '../../core/values/failure.ts';
import { MIB } from '../../core/values/units.ts';
import { isWideField } from '../rules/bounds/wide-settings.ts';
import { previewCookie } from '../../core/http/preview-cookie.ts';

/** Bytes of an HTML page that gets the bar of a preview. */
const previewBytesMax = 16 * MIB;

/** The links of previews, and the end of one; the page that asks first sends a form. */
export const previewPath: ServicePath = (serving, request) => {
  const { exchange } = request;
  const reply = previewLinkReply(serving, request.path, request);
  if (reply === undefined || exchange.head.method === 'POST') return reply;
  return methodReply(exchange) ?? reply;
};

/**
 * The answer to a link of a preview, or to the end of one: a cookie, and the way to the page of the
 * parameter `to`, else to the front page. A browser that another site has led here gets a page that
 * asks first.
 * Throws `forbidden` for a form of another site.
 */
function previewLinkReply(
  { previews, config }: Pick<Serving, 'previews' | 'config'>,
  path: string,
  {
    incoming: { target, fields: sent },
    exchange: { head },
    nowMs,
  }: {
    readonly incoming: IncomingRequest;
    readonly exchange: { readonly head: { readonly method: string } };
    readonly nowMs: number;
  },
): Reply | undefined {
  const token = /^\/preview\/([\w.-]{1,200})$/.exec(path)?.[1];
  if (token === undefined) return undefined;
  const found = previews.find(token, nowMs);
  if (found === undefined && token !== 'end') return undefined;
  const isForm = head.method === 'POST';
  const isOwn = isOwnRequest(sent, target.origin, isForm);
  if (isForm && !isOwn) {
    throw new Failure('forbidden', 'Only the page of this link itself opens the preview.');
  }
  // A picture in a page, or a look at the link, is nobody who opens it.
  const isOpened = isForm || (head.method !== 'HEAD' && isOpenedByPerson(sent));
  if (found !== undefined && !(isOwn && isOpened)) {
    return confirmationPage(found.draft.name, head.method);
  }
  const seconds = found === undefined ? 0 : Math.ceil((found.endMs - nowMs) / 1_000);
  const value = found === undefined ? '' : token;
  const secure = target.origin.startsWith('https:') ? '; Secure' : '';
  const cookie = `${previewCookie}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax`;
  const front = config.server.base === '' ? '/' : `${config.server.base}/`;
  const fields = ['Location', ownPath(target.query) ?? front];
  return {
    status: isForm ? 303 : 302,
    fields: [
      ...fields,
      ...['Set-Cookie', cookie + secure, 'Cache-Control', 'no-store', 'Content-Length', '0'],
      ...['Referrer-Policy', 'no-referrer'],
    ],
    body: noBody,
    source: 'svc1',
  };
}

/**
 * Whether a request comes from a page of this site, or from the person: a link that was typed or
 * opened by another program (Fetch Metadata). What is no browser, or an old one, sends no field;
 * its forms have an Origin.
 */
function isOwnRequest(fields: Fields, origin: string, isForm: boolean): boolean {
  const site = fields['sec-fetch-site'];
  if (isForm) return site === undefined ? fields.origin === origin : site === 'same-origin';
  return site === undefined || site === 'same-origin' || site === 'none';
}

/** Whether a browser opens a link in a tab of its own, or a program does. */
function isOpenedByPerson({ 'sec-fetch-dest': destination, accept = '' }: Fields): boolean {
  return destination === undefined ? !isPartOfPage.test(accept) : destination === 'document';
}

/** What a browser without Sec-Fetch-Dest accepts for a picture and a style sheet. */
const isPartOfPage = /^(?:image\/|text\/css)/;

/** The page that asks before a browser shows a draft in place of the site. */
function confirmationPage(draft: string, method: string): Reply {
  const form = '\n<form method="post"><p><button>Open the preview</button></form>';
  const sentence =
    `Another page has led here. Until you leave it again, this browser shows this site as the ` +
    `draft <b>${escapeHtml(draft)}</b> has it.`;
  const bytes = Buffer.from(plainPage('Open the preview of a draft?', sentence, form));
  return {
    status: 200,
    fields: [
      ...['Content-Type', 'text/html; charset=utf-8', 'Content-Length', String(bytes.length)],
      // Without a referrer, the form would have no origin.
      ...['Cache-Control', 'no-store', 'Referrer-Policy', 'same-origin', ...pageFields],
      // No other site shows it in a frame, to have it clicked unseen.
      'Content-Security-Policy',
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; " +
        "frame-ancestors 'none'; base-uri 'none'",
    ],
    body: method === 'HEAD' ? noBody : { kind: 'bytes', bytes },
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

/**
 * What a page shows without a script (Fetch, request destination). Anything else may be code, or
 * what a script fetches and puts into its page.
 */
const shown: ReadonlySet<string> = new Set([
  ...['document', 'iframe', 'frame', 'embed', 'object', 'image', 'audio', 'video'],
  ...['track', 'font', 'style'],
]);

/**
 * Whether a script may ask, while the preview has pages of others than designers. These run no
 * scripts: it is a page of the live site that asks, in another tab, or a worker of it, so it gets
 * what the live site has.
 */
export function isOfLivePage({ isTrusted }: Pick<DraftSite, 'isTrusted'>, fields: Fields): boolean {
  if (isTrusted) return false;
  const destination = fields['sec-fetch-dest'];
  return destination === undefined ? !isShownByAccept(fields) : !shown.has(destination);
}

/**
 * Whether a browser asks for a page, a picture or a style sheet, if it sends no Sec-Fetch-Dest: an
 * older one, or any for an http URL. Only when it opens a page, it sends Upgrade-Insecure-Requests;
 * scripts and what these fetch accept anything.
 */
function isShownByAccept({ accept = '', 'upgrade-insecure-requests': opens }: Fields): boolean {
  return opens === '1' ? accept.startsWith('text/html') : isPartOfPage.test(accept);
}

/** Fields with which a client might get less than the whole page, or a coding of it. */
const partial = [
  ...['accept-encoding', 'range', 'if-range'],
  ...['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'],
];

/** Fields with what a browser sends to the whole site. */
const credentials = ['authorization', 'cookie', 'proxy-authorization'];

/**
 * A reply whose page runs no script, sends no form and has no plugin (HTML standard, sandboxing).
 * Its origin stays: otherwise, the cookie of the preview would not come with its pictures.
 */
export function withoutScripts(reply: Reply): Reply {
  const own = 'sandbox allow-same-origin allow-popups allow-downloads';
  const policy = ['Content-Security-Policy', own];
  const guards = [...(reply.guards ?? []), ...policy];
  return { ...reply, fields: [...reply.fields, ...policy], guards };
}

/**
 * The answer of the site as the draft has it, for no cache, and with a bar in HTML pages. If others
 * than designers have written in the draft, no page of the site runs scripts, no source gets
 * credentials, and no answer changes more than its page.
 */
export async function previewReply(
  preview: DraftSite,
  request: ContentRequest,
  leave: string,
): Promise<Reply> {
  const { site, isTrusted } = preview;
  const removed = isTrusted ? partial : [...partial, ...credentials];
  const kept = Object.entries(request.fields).filter(([name]) => !removed.includes(name));
  const fields = Object.assign(Object.create(null) as Record<string, string>, {
    ...Object.fromEntries(kept),
  });
  const reply = await site.respond({ ...request, fields });
  const shown = async (one: Reply): Promise<Reply> => {
    const page = await draftReply(preview, one, leave);
    return isTrusted ? page : confined(page);
  };
  const { withNonce } = reply;
  const page = await shown(reply);
  if (withNonce === undefined) return page;
  return { ...page, withNonce: async (nonce) => shown(await withNonce(nonce)) };
}

/** A reply that does nothing to more than its page, and runs no script. */
export function confined(page: Reply): Reply {
  const reply = withoutScripts(page);
  const names = reply.fields.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
  const wide = names.filter((name) => isWideField(name));
  return { ...reply, fields: withoutFields(reply.fields, ...wide) };
}

async function draftReply(
  { draft, isTrusted }: DraftSite,
  { isReusable: _isReusable, isCurrent: _isCurrent, ...reply }: Reply,
  leave: string,
): Promise<Reply> {
  const unshared = [
    ...withoutFields(withoutCaching(reply.fields), 'etag', 'last-modified'),
    ...['Cache-Control', 'no-store', 'X-Robots-Tag', 'noindex'],
  ];
  const isHtml = replyField(reply, 'content-type')?.startsWith('text/html') === true;
  const isWhole = replyField(reply, 'content-encoding') === undefined && reply.body.kind !== 'none';
  if (!isHtml || !isWhole) return { ...reply, fields: unshared };
  const content = await readContent(reply, previewBytesMax);
  const bytes = Buffer.concat([content, Buffer.from(barOf(draft.name, { leave, isTrusted }))]);
  return {
    ...reply,
    fields: [...withoutFields(unshared, 'content-length'), 'Content-Length', String(bytes.length)],
    body: { kind: 'bytes', bytes },
  };
}

/** A bar at the end of a page: it has no script, so a policy of the page cannot break it. */
function barOf(
  name: string,
  { leave, isTrusted }: Pick<DraftSite, 'isTrusted'> & { readonly leave: string },
): string {
  const style =
    'position:fixed;inset:auto 0 0 0;z-index:2147483647;padding:8px 16px;margin:0;' +
    'background:#1f2328;color:#fff;font:14px/1.5 system-ui,sans-serif';
  const why = isTrusted ? '' : ' Scripts and forms are off: not all of its authors are designers.';
  return (
    `<aside role="status" style="${style}">Draft ${escapeHtml(name)}: not live.${why} ` +
    `<a href="${leave}" style="color:#fff">Leave the draft</a></aside>`
  );
}
