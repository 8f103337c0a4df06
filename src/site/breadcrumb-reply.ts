import { escapeHtml, plainPage } from '../http/html.ts';
import { preferredType } from '../http/negotiation.ts';
import { noBody, type FieldList, type Reply, isEmptyStatus } from '../http/reply.ts';
import type { Fields } from '../http/request.ts';
import type { ConditionName } from '../model/condition.ts';
import type { Resolution } from '../model/found.ts';
import { hintFields } from '../visitor/hints.ts';
import { knownLot, lotCookie } from '../visitor/lot.ts';
import type { Resolved, Visit } from './resolve.ts';

/**
 * The HTTP answer to a visitor of a breadcrumb (contract §6): its redirect or page, or, for who
 * would rather have JSON, the answer of get_resolve. Never cached, for the next visitor may be sent
 * elsewhere.
 */
export function breadcrumbReply(resolved: Resolved, visit: Visit): Reply {
  const shown = prefersJson(visit.fields) ? asJson(resolved) : asPage(resolved);
  return {
    ...shown,
    fields: [
      ...shown.fields,
      ...cachingFields(resolved),
      ...visitorFields(resolved, visit),
      'Referrer-Policy',
      'strict-origin-when-cross-origin',
      'X-Content-Type-Options',
      'nosniff',
    ],
    source: `rule:${resolved.id}`,
  };
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

/** What caches are told of a breadcrumb's answer: to leave it alone, and why. */
export function cachingFields({ asks }: Pick<Resolved, 'asks'>): FieldList {
  let vary = 'Accept';
  for (const [field, names] of choosers) {
    if (names.some((name) => asks.has(name))) vary += `, ${field}`;
  }
  return ['Cache-Control', 'private, no-store', 'Vary', vary];
}

/** The fields of a request that conditions look at. */
const choosers: readonly (readonly [field: string, names: readonly ConditionName[]])[] = [
  ['Accept-Language', ['lang']],
  ['Authorization', ['user', 'role']],
  ['Cookie', ['user', 'role', 'percent']],
  ['User-Agent', ['device', 'percent']],
  ['Sec-CH-UA-Mobile', ['device']],
  ['Sec-CH-UA-Platform', ['device']],
  ['Sec-CH-UA-Form-Factors', ['device']],
];

/** What is asked of the visitor's browser for the next time. */
function visitorFields({ asks }: Resolved, { fields, visitor, origin }: Visit): FieldList {
  const hints = asks.has('device') ? hintFields(fields) : [];
  if (!asks.has('percent') || knownLot(fields) !== undefined) return hints;
  const secure = origin.startsWith('https:');
  return [...hints, 'Set-Cookie', lotCookie(visitor.lot(), { secure })];
}

/** Whether a caller would rather have JSON than a page; who takes anything alike would not. */
function prefersJson({ accept }: Fields): boolean {
  // What names neither JSON nor all of application cannot prefer it.
  if (accept === undefined || !/json|application\/\*/i.test(accept)) return false;
  return preferredType(accept, ['text/html', 'application/json']) === 'application/json';
}

type Shown = Pick<Reply, 'status' | 'fields' | 'body'>;

function asJson(resolved: Resolved): Shown {
  const answer = { r: 'svc1.userinterface.get_resolve', data: resolutionData(resolved) };
  const bytes = Buffer.from(JSON.stringify(answer));
  return {
    status: 200,
    fields: ['Content-Type', 'application/json', 'Content-Length', String(bytes.length)],
    body: { kind: 'bytes', bytes },
  };
}

function asPage({ status, target, content, contenttype }: Resolution): Shown {
  const html =
    content ??
    (target === undefined
      ? plainPage('Nothing more to see', 'This link has no page of its own.')
      : plainPage(
          'Moved',
          `The page is at <a href="${escapeHtml(target)}">${escapeHtml(target)}</a>.`,
        ));
  const bytes = Buffer.from(isEmptyStatus(status) ? '' : html);
  const type = (content === undefined ? undefined : contenttype) ?? 'text/html; charset=utf-8';
  return {
    status,
    fields: [
      ...(target === undefined ? [] : ['Location', target]),
      ...(isEmptyStatus(status) ? [] : ['Content-Type', type]),
      ...(status === 204 || status === 304 ? [] : ['Content-Length', String(bytes.length)]),
    ],
    body: bytes.length === 0 ? noBody : { kind: 'bytes', bytes },
  };
}
