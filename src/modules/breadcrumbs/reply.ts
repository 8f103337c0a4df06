import { whenReady } from '../../core/values/when-ready.ts';
import { escapeHtml, pageFields } from '../../core/http/content/page.ts';
import type { TemplateRequest } from '../../core/http/field-template.ts';
import {
  type FieldList,
  type Reply,
  isEmptyStatus,
  noBody,
  replyField,
  withoutCaching,
  withoutFields,
} from '../../core/http/reply.ts';
import { utf8Type } from '../../core/http/representation/mediatype.ts';
import { preferredType } from '../../core/http/representation/negotiation.ts';
import type { Fields } from '../../core/http/request.ts';
import type { Dependencies } from '../../core/pipeline/conditions/when.ts';
import { pathOfText } from '../../core/values/path.ts';
import { withHeaders } from '../rules/pages/rule-headers.ts';
import type { Resolution, RuleHeaders } from '../rules/rule.ts';
import { withBranchFields } from './branch-fields.ts';
import type { BreadcrumbVisit, ResolvedBreadcrumb } from './resolve.ts';

/**
 * The HTTP reply to a visitor of a breadcrumb (docs/design/rendering.md#breadcrumbs), with the
 * `headers` of the rule that is visited, and the fields of each branch on the way.
 */
export function visitReply(
  resolved: ResolvedBreadcrumb,
  visit: BreadcrumbVisit & TemplateRequest,
): Reply | Promise<Reply> {
  const shown = prefersJson(visit.fields) ? shownHeaders(resolved, visit) : undefined;
  const reply = (headers: RuleHeaders | undefined): Reply | Promise<Reply> =>
    withFields(resolved, breadcrumbReply({ ...resolved, headers }, visit), visit);
  const made = whenReady(shown, reply);
  // The next visitor may meet other conditions, whatever the ini file says of caches.
  if (!resolved.hops.some(({ breadcrumb }) => breadcrumb.when.length > 0)) return made;
  return whenReady(made, forOneVisitor);
}

/** Keeps the answer of one visitor out of caches, unless its rule says otherwise. */
function forOneVisitor(reply: Reply): Reply {
  return replyField(reply, 'cache-control') === notShared ? { ...reply, isPrivate: true } : reply;
}

const notShared = 'private, no-store';

/**
 * The reply without these fields: a redirect or page, or the answer of get_resolve if Accept
 * prefers JSON. It must not be cached: the next visitor may get another target.
 */
export function breadcrumbReply(resolved: ResolvedBreadcrumb, visit: BreadcrumbVisit): Reply {
  const reply = prefersJson(visit.fields) ? jsonReply(resolved) : pageReply(resolved);
  const further = visitorFields(resolved, visit);
  return further.length === 0 ? reply : { ...reply, fields: [...reply.fields, ...further] };
}

/** The reply to a visit of link.htm. */
export function keyReply(resolved: ResolvedBreadcrumb, visit: KeyVisit): Reply | Promise<Reply> {
  return visitReply(resolved, requestOfKey(visit));
}

/** The data of get_resolve for the visit of a key. */
export function keyData(
  resolved: ResolvedBreadcrumb,
  visit: KeyVisit,
): Resolution | Promise<Resolution> {
  const shown = shownHeaders(resolved, requestOfKey(visit));
  const data = (headers: RuleHeaders | undefined): Resolution =>
    resolutionData({ ...resolved, headers });
  return whenReady(shown, data);
}

/** A visit of link.htm, or of get_resolve. */
type KeyVisit = BreadcrumbVisit & { readonly key: string; readonly method?: string };

function requestOfKey(visit: KeyVisit): BreadcrumbVisit & TemplateRequest {
  const { key, method = 'GET', visitor } = visit;
  return { ...visit, path: pathOfText(key), method, address: visitor.address };
}

/** A browser that follows a link with a token tells nobody the link. */
export const unsentReferrer: FieldList = ['Referrer-Policy', 'no-referrer'];

/** The reply for the person of a token, whatever the rule says of caches and referrers. */
export function forOnePerson(reply: Reply): Reply {
  const fields = withoutCaching(withoutFields(reply.fields, 'referrer-policy'));
  return { ...reply, fields: [...fields, 'Cache-Control', 'private, no-store', ...unsentReferrer] };
}

function withFields(
  { hops }: Pick<ResolvedBreadcrumb, 'hops'>,
  reply: Reply,
  visit: TemplateRequest,
): Reply | Promise<Reply> {
  const headers = hops[0]?.stored.rule.headers;
  const changed = headers === undefined ? reply : withHeaders(headers, reply, visit);
  return withBranchFields(
    hops.flatMap(({ branch }) => branch.answer.fields ?? []),
    changed,
    visit,
  );
}

/** The fields of the rule and its branches, as a visit gets them; undefined for none. */
function shownHeaders(
  resolved: ResolvedBreadcrumb,
  visit: TemplateRequest,
): RuleHeaders | undefined | Promise<RuleHeaders | undefined> {
  const bare = { status: resolved.status, fields: [], body: noBody, source: '' };
  const made = withFields(resolved, bare, visit);
  return whenReady(made, headersOf);
}

function headersOf({ fields }: Pick<Reply, 'fields'>): RuleHeaders | undefined {
  const headers = new Map<string, readonly string[]>();
  for (let at = 0; at < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    headers.set(name, [...(headers.get(name) ?? []), value]);
  }
  if (headers.size === 0) return undefined;
  return Object.fromEntries(
    Array.from(headers, ([name, [first = '', ...more]]) => [
      name,
      more.length === 0 ? first : [first, ...more],
    ]),
  );
}

function resolutionData({
  status,
  target,
  content,
  contenttype,
  id,
  matched,
  headers,
}: Resolution): Resolution {
  return { status, target, content, contenttype, id, matched, headers };
}

/** The fields that keep caches from storing the reply of a breadcrumb, and its Vary. */
export function cachingFields({
  dependencies,
}: Pick<ResolvedBreadcrumb, 'dependencies'>): FieldList {
  let fields = caching.get(dependencies);
  if (fields === undefined) {
    const vary = [...new Set(['Accept', ...dependencies.vary])].sort().join(', ');
    fields = ['Cache-Control', notShared, 'Vary', vary];
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
