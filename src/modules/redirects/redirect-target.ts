import { coversOrigin } from '../../core/values/network/origin-pattern.ts';
import { asQueryValue, encodePath, sentAfter, sentUrlOf } from '../../core/values/path.ts';
import { authorityOf } from '../../core/http/field-template.ts';
import type { RequestTarget } from '../../core/http/request.ts';
import { fillTarget, withQuery } from '../../core/http/target-template.ts';

/** A redirect of the ini file. */
interface RedirectRule {
  /** `*` for every origin. */
  readonly origin: string;
  /** A canonical path, or a prefix of paths that ends with `*`. */
  readonly path: string;
  /** In place of `path`: a regular expression for the canonical path. */
  readonly pattern?: Pick<RegExp, 'exec'> | undefined;
  /** The target, with `{splat}`, `{path}`, `{query}`, `{query.NAME}`, `{host}` and `$1`. */
  readonly to: string;
  /** Whether the query of the request is added. */
  readonly query: 'keep' | 'drop';
}

/** What a redirect takes of a request's path. */
interface RedirectValues {
  /** What the `*` of `path` stands for, as the client has sent it. */
  readonly splat: string;
  /** The groups of `pattern`. */
  readonly groups: readonly (string | undefined)[];
}

/** The values of a request; undefined if the redirect does not apply. */
function matchRedirect(
  { origin, path, pattern }: Pick<RedirectRule, 'origin' | 'path' | 'pattern'>,
  target: RequestTarget,
): RedirectValues | undefined {
  if (!coversOrigin(origin, target.origin)) return undefined;
  if (pattern !== undefined) {
    const groups = pattern.exec(target.path);
    return groups === null ? undefined : { splat: '', groups };
  }
  if (!path.endsWith('*')) return path === target.path ? { splat: '', groups: [] } : undefined;
  const prefix = path.slice(0, -1);
  const splat = target.path.startsWith(prefix) ? sentAfter(target, prefix.length) : undefined;
  return splat === undefined ? undefined : { splat, groups: [] };
}

/**
 * The Location of a redirect for a request; undefined if the redirect does not apply, also because
 * it would lead to the URL of the request itself: `to = https://example.com/{splat}` leaves the
 * requests for that origin alone.
 */
export function locationFor(rule: RedirectRule, target: RequestTarget): string | undefined {
  const matched = matchRedirect(rule, target);
  if (matched === undefined) return undefined;
  const location = redirectLocation(rule, matched, target);
  const isSame = URL.parse(location, target.origin)?.href === URL.parse(sentUrlOf(target))?.href;
  return isSame ? undefined : location;
}

/**
 * The Location of a redirect for a request to which it applies. No value of the request changes the
 * origin of the target: a path never begins with two slashes (RFC 3986 §4.2).
 */
function redirectLocation(
  rule: RedirectRule,
  { splat, groups }: RedirectValues,
  target: RequestTarget,
): string {
  const { origin, query, sentPath: path } = target;
  const [beforeQuery = ''] = rule.to.split(/[?#]/, 1);
  const grouped = rule.to.replace(/\$(\d{1,2})/g, (whole, digits: string, at: number) => {
    if (rule.pattern === undefined) return whole;
    const encoded = encodePath(groups[Number(digits)] ?? '');
    // A brace would begin a variable.
    return (at < beforeQuery.length ? encoded : asQueryValue(encoded)).replace(
      /[{}]/g,
      encodeURIComponent,
    );
  });
  const filled = fillTarget(grouped, { splat, path, query, host: authorityOf(origin) });
  const location = filled.startsWith('/') ? filled.replace(/^\/[/\\]+/, '/') : filled;
  const isAdded = rule.query === 'keep' && !rule.to.includes('{query}');
  return isAdded ? withQuery(location, query) : location;
}
