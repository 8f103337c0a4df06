import { pageFields } from '../http/page-fields.ts';
import { escapeHtml } from '../http/html.ts';
import { utf8Type } from '../http/mediatype.ts';
import { preferredType } from '../http/negotiation.ts';
import { noBody, type FieldList, type Reply, isEmptyStatus } from '../http/reply.ts';
import type { Fields } from '../http/request.ts';
import type { Resolution } from '../model/found.ts';
import type { Resolved, Visit } from './resolve.ts';
import type { Dependencies } from './when.ts';

/**
 * The HTTP answer to a visitor of a breadcrumb (docs/design/rendering.md#breadcrumbs): its redirect
 * or page, or, for who would rather have JSON, the answer of get_resolve. Never cached, for the
 * next visitor may be sent elsewhere.
 */
export function breadcrumbReply(resolved: Resolved, visit: Visit): Reply {
  const reply = prefersJson(visit.fields) ? jsonReply(resolved) : pageReply(resolved);
  const further = visitorFields(resolved, visit);
  return further.length === 0 ? reply : { ...reply, fields: [...reply.fields, ...further] };
}

/** What get_resolve answers of a breadcrumb. */
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

/** What caches are told of a breadcrumb's answer: not to store it, and what it depends on. */
export function cachingFields({ dependencies }: Pick<Resolved, 'dependencies'>): FieldList {
  let fields = caching.get(dependencies);
  if (fields === undefined) {
    const vary = [...new Set(['Accept', ...dependencies.vary])].sort().join(', ');
    fields = ['Cache-Control', 'private, no-store', 'Vary', vary];
    caching.set(dependencies, fields);
  }
  return fields;
}

const caching = new WeakMap<Dependencies, FieldList>();

/** What the answer asks of the visitor's browser for the next time. */
function visitorFields({ dependencies }: Resolved, visit: Visit): FieldList {
  return dependencies.answerFields.flatMap((fieldsFor) => fieldsFor(visit));
}

/** Whether a caller would rather have JSON than a page; who takes anything alike would not. */
function prefersJson({ accept }: Fields): boolean {
  // What names neither JSON nor all of application cannot prefer it.
  if (accept === undefined || !/json|application\/\*/i.test(accept)) return false;
  return preferredType(accept, ['text/html', 'application/json']) === 'application/json';
}

function jsonReply(resolved: Resolved): Reply {
  const answer = { r: 'svc1.userinterface.get_resolve', data: resolutionData(resolved) };
  return replyOf(resolved, {
    status: 200,
    fields: ['Content-Type', 'application/json'],
    bytes: Buffer.from(JSON.stringify(answer)),
  });
}

/** Replies that are the same each time, by what makes them so. */
const pages = new WeakMap<NonNullable<Resolved['fixed']>, Reply>();

function pageReply(resolved: Resolved): Reply {
  const { fixed } = resolved;
  if (fixed === undefined) return makePage(resolved);
  let reply = pages.get(fixed);
  if (reply === undefined) {
    reply = makePage(resolved);
    pages.set(fixed, reply);
  }
  return reply;
}

function makePage(resolved: Resolved): Reply {
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
  resolved: Resolved,
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

/** For who does not follow redirects, as short as it can be (RFC 9110 §15.4). */
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

const nothingMore = smallPage('Nothing more to see', 'This link has no page of its own.');
