import { asQueryValue, encodePath, isWildcardPath } from '../../core/values/path.ts';
import type { Rule } from '../rules/rule.ts';

/** The target of a branch as it is written; undefined for missing members. */
export interface BranchTarget {
  readonly target: string | undefined;
  readonly html: string | undefined;
  readonly status: number | undefined;
}

/** Where a branch of a breadcrumb leads. */
export type Destination =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'redirect'; readonly status: number; readonly target: RedirectTarget }
  | { readonly kind: 'content'; readonly status: number; readonly html: string }
  | { readonly kind: 'bare'; readonly status: number }
  | { readonly kind: 'nothing' };

/** The target of a redirect. */
interface RedirectTarget {
  /** The target as it is written, without its `*` if that stands for the capture. */
  readonly text: string;
  /** Whether the capture of the rule's path is appended. */
  readonly takesCapture: boolean;
  /** The Location without a query; undefined if the capture is appended. */
  readonly location: string | undefined;
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** The destination of a branch; its own status overrides that of the rule. */
export function destinationOf(
  { target, html, status: own }: BranchTarget,
  { path, httpresponse }: Pick<Rule, 'path' | 'httpresponse'>,
): Destination {
  const status = own ?? httpresponse;
  if (target?.startsWith('key:') === true) {
    return { kind: 'key', key: target.slice('key:'.length) };
  }
  if (target !== undefined) {
    const isRedirect = status !== undefined && redirectStatuses.has(status);
    return {
      kind: 'redirect',
      status: isRedirect ? status : 302,
      target: parseTarget(target, isWildcardPath(path)),
    };
  }
  if (html !== undefined) return { kind: 'content', status: status ?? 200, html };
  if (status === undefined || redirectStatuses.has(status)) return { kind: 'nothing' };
  return { kind: 'bare', status };
}

/**
 * The value of Location: ASCII only. Neither query nor capture can change the rule's host.
 * Undefined if the capture would lead out of the target's path.
 */
export function locationOf(
  { text, takesCapture, location }: RedirectTarget,
  { query, capture = '' }: { readonly query: string; readonly capture: string | undefined },
): string | undefined {
  if (!takesCapture) {
    return query === '' && location !== undefined ? location : normalize(withQuery(text, query));
  }
  const inPath = !/[?#]/.test(text);
  const encoded = encodePath(capture);
  const whole = text + (inPath ? encoded : asQueryValue(encoded));
  if (inPath && !staysBelow(text, whole)) return undefined;
  return normalize(withQuery(whole, query));
}

function parseTarget(text: string, isWildcard: boolean): RedirectTarget {
  const takesCapture = isWildcard && text.endsWith('*');
  return {
    text: takesCapture ? text.slice(0, -1) : text,
    takesCapture,
    location: takesCapture ? undefined : normalize(text),
  };
}

/** A base for the URL parser, which is cut off again. */
const placeholder = 'http://placeholder.invalid';

/** Whether a path still begins the same after a browser has resolved its dot segments. */
function staysBelow(beginning: string, whole: string): boolean {
  // The `x` keeps a beginning that ends with a dot from being parsed as a dot segment.
  const { href } = new URL(`${beginning}x`, placeholder);
  return new URL(whole, placeholder).href.startsWith(href.slice(0, -1));
}

function withQuery(target: string, query: string): string {
  if (query === '') return target;
  const [before = '', ...fragment] = target.split('#');
  const joined = `${before}${before.includes('?') ? '&' : '?'}${query}`;
  return fragment.length > 0 ? `${joined}#${fragment.join('#')}` : joined;
}

function normalize(target: string): string {
  if (!target.startsWith('/')) return new URL(target).href;
  const { pathname, search, hash } = new URL(target, placeholder);
  return `${pathname.startsWith('//') ? '/' : pathname}${search}${hash}`;
}
