import { escapeHtml, pageFields } from '../../core/http/content/page.ts';
import { type FieldList, type Reply, isEmptyStatus, noBody } from '../../core/http/reply.ts';
import { utf8Type } from '../../core/http/representation/mediatype.ts';
import { preferredType } from '../../core/http/representation/negotiation.ts';
import type { Fields } from '../../core/http/request.ts';
import type { Dependencies } from '../../core/pipeline/conditions/when.ts';
import { pathOfText } from '../../core/values/path.ts';
import { withHeaders } from '../rules/pages/rule-headers.ts';
import type { Resolution } from '../rules/rule.ts';
import type { BreadcrumbVisit, ResolvedBreadcrumb } from './resolve.ts';

/**
 * The HTTP reply to a visitor of a breadcrumb (docs/design/rendering.md#breadcrumbs): its redirect
 * or page, or the answer of get_resolve if Accept prefers JSON. It must not be cached: the next
 * visitor may get another target.
 */
export function breadcrumbReply(resolved: ResolvedBreadcrumb, visit: BreadcrumbVisit): Reply {
  const reply = prefersJson(visit.fields) ? jsonReply(resolved) : pageReply(resolved);
  const further = visitorFields(resolved, visit);
  return further.length === 0 ? reply : { ...reply, fields: [...reply.fields, ...further] };
}

/** The same for a visit of link.htm, with the `headers` of the page rule that has the key. */
export function keyReply(
  resolved: ResolvedBreadcrumb,
  visit: BreadcrumbVisit & { readonly key: string; readonly method?: string },
): Reply | Promise<Reply> {
  const reply = breadcrumbReply(resolved, visit);
  const headers = resolved.hops[0]?.stored.rule.headers;
  if (headers === undefined) return reply;
  const { key, method = 'GET', visitor } = visit;
  const path = pathOfText(key);
  return withHeaders(headers, reply, { ...visit, path, method, address: visitor.address });
}

/** The data of get_resolve for a breadcrumb. */
export function resolutionData({
  status,
  target,
  content,
  contenttype,
  id,
  matched,
}: Resolution): Resolution {
  return { status, target, content, contenttype, id, matched };
}

/** The fields that keep caches from storing the reply of a breadcrumb, and its Vary. */
export function cachingFields({
  dependencies,
}: Pick<ResolvedBreadcrumb, 'dependencies'>): FieldList {
  let fields = caching.get(dependencies);
  if (fields === undefined) {
    const vary = [...new Set(['Accept', ...dependencies.vary])].sort().join(', ');
    fields = ['Cache-Control', 'private, no-store', 'Vary', vary];
    caching.set(dependencies, fields);
  }
  return fields;
}

const caching = new WeakMap<Dependencies, FieldList>();

/** The fields that help to recognise the visitor next time, such as Set-Cookie and Accept-CH. */
function visitorFields({ dependencies }: ResolvedBreadcrumb, visit: BreadcrumbVisit): FieldList {
  return dependencies.answerFields.flatMap((fieldsFor) => fieldsFor(visit));
}

/** Whether Accept prefers JSON to a page; `*` with one weight for both does not. */
function prefersJson({ accept }: Fields): boolean {
  // Saves the parser for an Accept that names neither JSON nor application/*.
  if (accept === undefined || !/json|application\/\*/i.test(accept)) return false;
  return preferredType(accept, ['text/html', 'application/json']) === 'application/json';
}

function jsonReply(resolved: ResolvedBreadcrumb): Reply {
  const answer = { r: 'svc1.userinterface.get_resolve', data: resolutionData(resolved) };
  return replyOf(resolved, {
    status: 200,
    fields: ['Content-Type', 'application/json'],
    bytes: Buffer.from(JSON.stringify(answer)),
  });
}

/** Replies that are the same for each visitor, by their cacheKey. */
const pages = new WeakMap<NonNullable<ResolvedBreadcrumb['cacheKey']>, Reply>();

function pageReply(resolved: ResolvedBreadcrumb): Reply {
  const { cacheKey } = resolved;
  if (cacheKey === undefined) return makePage(resolved);
  let reply = pages.get(cacheKey);
  if (reply === undefined) {
    reply = makePage(resolved);
    pages.set(cacheKey, reply);
  }
  return reply;
}

function makePage(resolved: ResolvedBreadcrumb): Reply {
  const { status, target, content, contenttype } = resolved;
  const html = content ?? (target === undefined ? nothingMore : moved(target));
  const own = (content === undefined ? undefined : contenttype) ?? 'text/html; charset=utf-8';
  const type = utf8Type(own, html);
  return replyOf(resolved, {
    status,
    fields: [
      ...(target === undefined ? [] : ['Location', target]),
      ...(isEmptyStatus(status) ? [] : ['Content-Type', type]),
    ],
    bytes: Buffer.from(isEmptyStatus(status) ? '' : html),
  });
}

function replyOf(
  resolved: ResolvedBreadcrumb,
  {
    status,
    fields,
    bytes,
  }: { readonly status: number; readonly fields: FieldList; readonly bytes: Buffer },
): Reply {
  return {
    status,
    fields: [
      ...fields,
      ...(status === 204 || status === 304 ? [] : ['Content-Length', String(bytes.length)]),
      ...cachingFields(resolved),
      'Referrer-Policy',
      'strict-origin-when-cross-origin',
      ...pageFields,
    ],
    body: bytes.length === 0 ? noBody : { kind: 'bytes', bytes },
    source: `rule:${resolved.id}`,
  };
}

/** A short page for clients that do not follow redirects (RFC 9110 §15.4). */
function moved(target: string): string {
  const link = escapeHtml(target);
  return smallPage('Moved', `The page is at <a href="${link}">${link}</a>.`);
}

function smallPage(title: string, sentence: string): string {
  return (
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>` +
    `<p>${sentence}</p></html>\n`
  );
}

const nothingMore = smallPage('No page', 'This link has no page.');
