import {
  fillTarget,
  targetVariables,
  withQuery,
  type TargetValues,
} from '../../core/http/target-template.ts';
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
  /** Whether it has variables, such as `{splat}`. */
  readonly hasVariables: boolean;
  /** The Location without a query; undefined if it depends on the visit. */
  readonly location: string | undefined;
}

/** The statuses of a redirect to a target (RFC 9110 §15.4). */
export const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

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

/** The parts of a visit that a target may take. */
export interface TargetVisit {
  /** The canonical path that is visited, or the key as a path. */
  readonly path: string;
  readonly query: string;
  /** The authority of the visited origin. */
  readonly host: string;
  /** The part of the path that the `*` of the rule's path stands for. */
  readonly capture: string | undefined;
}

/**
 * The value of Location: ASCII only. No value of the visit changes the target's host, except
 * `{host}`, which is the one that the visitor has asked. Undefined if a value would lead out of the
 * target's path.
 */
export function locationOf(
  { text, takesCapture, hasVariables, location }: RedirectTarget,
  { path, query, host, capture = '' }: TargetVisit,
  forwardsQuery: boolean,
): string | undefined {
  // A target that names the query has it already.
  const added = forwardsQuery && !text.includes('{query}') ? query : '';
  if (!takesCapture && !hasVariables) {
    return added === '' && location !== undefined ? location : normalize(withQuery(text, added));
  }
  const splat = encodePath(capture);
  const template = takesCapture ? `${text}{splat}` : text;
  const values: TargetValues = { splat, path: encodePath(path), query, host };
  const whole = fillTarget(template, values, asQueryValue);
  if (!URL.canParse(whole, placeholder)) return undefined;
  if (!staysBelow(beginningOf(template, host), whole)) return undefined;
  return normalize(withQuery(whole, added));
}

/** The part of a target before the first value, or before its query; at least up to its path. */
function beginningOf(template: string, host: string): string {
  const hosted = template.replace(
    /^(https?:\/\/[^/?#{}]*)\{host\}/i,
    (_, before) => `${before}${host}`,
  );
  const [path = ''] = hosted.split(/[?#]/, 1);
  const [beginning = ''] = path.split(/\{(?:splat|path|query|host|query\.[^{}]*)\}/, 1);
  return /^https?:\/\/[^/]*$/i.test(beginning) ? `${beginning}/` : beginning;
}

function parseTarget(text: string, isWildcard: boolean): RedirectTarget {
  const takesCapture = isWildcard && text.endsWith('*');
  const hasVariables = targetVariables(text).length > 0;
  return {
    text: takesCapture ? text.slice(0, -1) : text,
    takesCapture,
    hasVariables,
    location: takesCapture || hasVariables ? undefined : normalize(text),
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

function normalize(target: string): string {
  if (!target.startsWith('/')) return new URL(target).href;
  const { pathname, search, hash } = new URL(target, placeholder);
  return `${pathname.startsWith('//') ? '/' : pathname}${search}${hash}`;
}
