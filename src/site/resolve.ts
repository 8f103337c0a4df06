import { encodePath } from '../http/target.ts';
import { escapeHtml, plainPage } from '../http/html.ts';
import type { Reply } from '../http/reply.ts';
import { Failure } from '../model/failure.ts';
import type { Resolution } from '../model/found.ts';
import { breadcrumbHopsMax } from '../model/limits.ts';
import type { StoredRule } from '../model/rule.ts';
import { inOrder } from './matcher.ts';
import type { SiteRules } from './rules.ts';

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Follows a breadcrumb's key to what it stands for (contract §6), `key:` targets included. Throws
 * `not_found` for a key without a rule or a rule without a target, `unprocessable` for keys that
 * lead in a circle or too far.
 */
export function resolveKey(
  reads: SiteRules,
  { key, origin, query }: { readonly key: string; readonly origin: string; readonly query: string },
): Resolution {
  const seen = new Set<string>();
  for (let next = key; ;) {
    if (seen.has(next) || seen.size >= breadcrumbHopsMax) {
      throw new Failure(
        'unprocessable',
        `The breadcrumb leads in a circle or over more than ${breadcrumbHopsMax} keys.`,
      );
    }
    seen.add(next);
    const rule = breadcrumbRule(reads, next, origin);
    if (rule === undefined) throw new Failure('not_found', 'No breadcrumb has this key.');
    const target = targetOf(rule);
    if (target?.startsWith('key:') !== true) return resolveRule(rule, query);
    next = target.slice('key:'.length);
  }
}

/** What a resolve rule found by a visit to its own path comes to; throws as resolveKey does. */
export function resolveVisit(
  reads: SiteRules,
  rule: StoredRule,
  asked: { readonly origin: string; readonly query: string },
): Resolution {
  const target = targetOf(rule);
  if (target?.startsWith('key:') !== true) return resolveRule(rule, asked.query);
  return resolveKey(reads, { key: target.slice('key:'.length), ...asked });
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
  const bytes = Buffer.from(html);
  return {
    status,
    fields: [
      ...(target === undefined ? [] : ['Location', target]),
      'Content-Type',
      content === undefined
        ? 'text/html; charset=utf-8'
        : (contenttype ?? 'text/html; charset=utf-8'),
      'Content-Length',
      String(bytes.length),
      'Cache-Control',
      'private, no-store',
      'Vary',
      'Accept, Accept-Language, Cookie, User-Agent',
      'Referrer-Policy',
      'strict-origin-when-cross-origin',
      'X-Content-Type-Options',
      'nosniff',
    ],
    body: { kind: 'bytes', bytes },
    source: `rule:${id}`,
  };
}

function breadcrumbRule(reads: SiteRules, key: string, origin: string): StoredRule | undefined {
  const candidates = [...reads.exactRules(origin, key), ...reads.exactRules('*', key)];
  const [winner] = inOrder(
    candidates.filter(({ kind }) => kind === 'resolve'),
    {},
  );
  return winner === undefined ? undefined : reads.ruleOf(winner);
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
