import { sentAfter, sentUrlOf } from '../model/path.ts';
import { asPathValue, queryPairs } from './query.ts';
import type { RequestTarget } from './request.ts';

/** A redirect of the ini file. */
interface RedirectRule {
  /** `*` for every origin. */
  readonly origin: string;
  /** A canonical path, or a prefix of paths that ends with `*`. */
  readonly path: string;
  /** The target, with `{splat}`, `{path}`, `{query}`, `{query.NAME}` and `{host}`. */
  readonly to: string;
  /** Whether the query of the request is added. */
  readonly query: 'keep' | 'drop';
}

/**
 * The part of a request's path that the `*` of a redirect stands for, as the client has sent it;
 * undefined if the redirect does not apply.
 */
function matchRedirect(
  { origin, path }: Pick<RedirectRule, 'origin' | 'path'>,
  target: RequestTarget,
): string | undefined {
  if (origin !== '*' && origin !== target.origin) return undefined;
  if (!path.endsWith('*')) return path === target.path ? '' : undefined;
  const prefix = path.slice(0, -1);
  return target.path.startsWith(prefix) ? sentAfter(target, prefix.length) : undefined;
}

/**
 * The Location of a redirect for a request; undefined if the redirect does not apply, also because
 * it would lead to the URL of the request itself: `to = https://example.com/{splat}` leaves the
 * requests for that origin alone.
 */
export function locationFor(rule: RedirectRule, target: RequestTarget): string | undefined {
  if (matchRedirect(rule, target) === undefined) return undefined;
  const location = redirectLocation(rule, target);
  const isSame = URL.parse(location, target.origin)?.href === URL.parse(sentUrlOf(target))?.href;
  return isSame ? undefined : location;
}

/**
 * The Location of a redirect for a request to which it applies. No value of the request changes the
 * origin of the target: a path never begins with two slashes (RFC 3986 §4.2).
 */
function redirectLocation(rule: RedirectRule, target: RequestTarget): string {
  const { origin, query } = target;
  const values: Readonly<Record<string, string>> = {
    splat: matchRedirect(rule, target) ?? '',
    path: sentUrlOf({ ...target, origin: '', query: '' }),
    query,
    host: origin.slice(origin.indexOf('://') + '://'.length),
  };
  const filled = rule.to.replace(/\{([^{}]*)\}/g, (whole, name: string) => {
    if (!name.startsWith('query.')) return values[name] ?? whole;
    const found = queryPairs(query).find((pair) => pair.name === name.slice('query.'.length));
    return asPathValue(found?.value ?? '');
  });
  const location = filled.startsWith('/') ? filled.replace(/^\/[/\\]+/, '/') : filled;
  if (rule.query === 'drop' || query === '' || rule.to.includes('{query}')) return location;
  const [withoutFragment = '', ...fragment] = location.split('#');
  const joined = `${withoutFragment}${withoutFragment.includes('?') ? '&' : '?'}${query}`;
  return [joined, ...fragment].join('#');
}
