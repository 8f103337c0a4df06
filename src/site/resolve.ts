import { encodePath } from '../model/path.ts';
import { escapeHtml, plainPage } from '../http/html.ts';
import { noBody, type FieldList, type Reply, isEmptyStatus } from '../http/reply.ts';
import { Failure } from '../model/failure.ts';
import type { Resolution } from '../model/found.ts';
import { breadcrumbHopsMax } from '../model/limits.ts';
import type { Candidate, StoredRule } from '../model/rule.ts';
import { inOrder, type CandidateReads } from './matcher.ts';
import type { SiteRules } from './rules.ts';

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Where a breadcrumb is looked up, and the query that it may forward. */
export interface Visit {
  readonly origin: string;
  readonly query: string;
}

/**
 * Follows a breadcrumb's key to what it stands for (contract §6), `key:` targets included. Throws
 * `not_found` for a key without a rule or a rule without a target, `unprocessable` for keys that
 * lead in a circle or too far.
 */
export function resolveKey(
  reads: SiteRules,
  { key, ...visit }: Visit & { readonly key: string },
): Resolution {
  return resolveVisit(reads, breadcrumbRule(reads, key, visit.origin), visit);
}

/**
 * What a resolve rule found by a visit to its own path comes to; throws as resolveKey does. The
 * keys that it leads over are added to `seen`, whether it comes to anything or not.
 */
export function resolveVisit(
  reads: SiteRules,
  rule: StoredRule,
  { origin, query }: Visit,
  seen = new Set<string>(),
): Resolution {
  let last = rule;
  for (let key = keyOf(last); key !== undefined; key = keyOf(last)) {
    if (seen.has(key) || seen.size === breadcrumbHopsMax) {
      throw new Failure(
        'unprocessable',
        `The breadcrumb leads in a circle or over more than ${breadcrumbHopsMax} keys.`,
      );
    }
    seen.add(key);
    last = breadcrumbRule(reads, key, origin);
  }
  return resolveRule(last, query);
}

/** The resolve rules of a key in the order in which they win: the first one is the breadcrumb. */
export function breadcrumbCandidates(
  reads: CandidateReads,
  key: string,
  origin: string,
): readonly Candidate[] {
  const candidates = [...reads.exactRules(origin, key), ...reads.exactRules('*', key)];
  return inOrder(
    candidates.filter(({ kind }) => kind === 'resolve'),
    {},
  );
}

/**
 * The HTTP answer to a visitor of a breadcrumb: never cached, for the next visitor may be sent
 * elsewhere.
 */
export function breadcrumbReply({ id, status, target, content, contenttype }: Resolution): Reply {
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
  const length: FieldList = ['Content-Length', String(bytes.length)];
  return {
    status,
    fields: [
      ...(target === undefined ? [] : ['Location', target]),
      ...(isEmptyStatus(status) ? [] : ['Content-Type', type]),
      ...(status === 204 || status === 304 ? [] : length),
      'Cache-Control',
      'private, no-store',
      'Vary',
      'Accept, Accept-Language, Cookie, User-Agent',
      'Referrer-Policy',
      'strict-origin-when-cross-origin',
      'X-Content-Type-Options',
      'nosniff',
    ],
    body: bytes.length === 0 ? noBody : { kind: 'bytes', bytes },
    source: `rule:${id}`,
  };
}

function breadcrumbRule(reads: SiteRules, key: string, origin: string): StoredRule {
  const [winner] = breadcrumbCandidates(reads, key, origin);
  const stored = winner && reads.ruleOf(winner);
  if (stored === undefined) throw new Failure('not_found', 'No breadcrumb has this key.');
  return stored;
}

/** The key that a rule leads on to. */
function keyOf(rule: StoredRule): string | undefined {
  const target = targetOf(rule);
  return target?.startsWith('key:') === true ? target.slice('key:'.length) : undefined;
}

function targetOf({ rule }: StoredRule): string | undefined {
  const target = rule.enginedata?.target;
  return typeof target === 'string' ? target : undefined;
}

function resolveRule(stored: StoredRule, query: string): Resolution {
  const { id, enginedata = {}, httpresponse, contenttype } = stored.rule;
  const { html, status: ownStatus, forward_query: forwardQuery } = enginedata;
  const status = typeof ownStatus === 'number' ? ownStatus : httpresponse;
  const target = targetOf(stored);
  const base = { id, contenttype, matched: 'default' } as const;
  if (target !== undefined) {
    return {
      ...base,
      status: status !== undefined && redirects.has(status) ? status : 302,
      target: locationOf(target, forwardQuery === true ? query : ''),
      content: undefined,
    };
  }
  if (typeof html === 'string') {
    return { ...base, status: status ?? 200, target: undefined, content: html };
  }
  if (status === undefined || redirects.has(status)) {
    throw new Failure('not_found', 'This breadcrumb has no target yet.');
  }
  return { ...base, status, target: undefined, content: undefined };
}

/** A Location field's value: ASCII only, the host as the rule says it, whatever the query holds. */
function locationOf(target: string, query: string): string {
  const [beforeFragment = '', ...fragment] = target.split('#');
  const joined = query === '' ? '' : `${beforeFragment.includes('?') ? '&' : '?'}${query}`;
  const whole = `${beforeFragment}${joined}${fragment.length > 0 ? `#${fragment.join('#')}` : ''}`;
  if (!whole.startsWith('/')) return new URL(whole).href;
  // The placeholder only serves the parser: what comes back is the part behind it.
  const { pathname, search, hash } = new URL(whole, 'http://placeholder.invalid');
  return `${pathname.startsWith('//') ? encodePath('/') : pathname}${search}${hash}`;
}
