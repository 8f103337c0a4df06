import { encodePath } from '../model/path.ts';
import type { Rule } from '../model/rule.ts';

/** What a branch of a breadcrumb says, as it is written; undefined for what it leaves out. */
export interface BranchTarget {
  readonly target: string | undefined;
  readonly html: string | undefined;
  readonly status: number | undefined;
}

/** What a branch of a breadcrumb comes to. */
export type Destination =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'redirect'; readonly status: number; readonly target: Target }
  | { readonly kind: 'content'; readonly status: number; readonly html: string }
  | { readonly kind: 'bare'; readonly status: number }
  | { readonly kind: 'nothing' };

/** Where a redirect leads. */
interface Target {
  /** As it is written; without its `*` where it has a place for a capture. */
  readonly text: string;
  /** Whether what the path's `*` stands for is put behind it. */
  readonly takesCapture: boolean;
  /** The Location to those who bring nothing along; undefined where it takes a capture. */
  readonly location: string | undefined;
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** What a branch comes to; its own status goes before that of the rule, if it makes sense there. */
export function destinationOf(
  { target, html, status: own }: BranchTarget,
  { path, httpresponse }: Pick<Rule, 'path' | 'httpresponse'>,
): Destination {
  const status = own ?? httpresponse;
  if (target?.startsWith('key:') === true) {
    return { kind: 'key', key: target.slice('key:'.length) };
  }
  if (target !== undefined) {
    const isRedirect = status !== undefined && redirects.has(status);
    return {
      kind: 'redirect',
      status: isRedirect ? status : 302,
      target: readTarget(target, path.startsWith('/') && path.endsWith('*')),
    };
  }
  if (html !== undefined) return { kind: 'content', status: status ?? 200, html };
  if (status === undefined || redirects.has(status)) return { kind: 'nothing' };
  return { kind: 'bare', status };
}

/**
 * A Location field's value: ASCII only, the host as the rule says it, whatever query and capture
 * hold. Undefined where the capture would lead out of the target's path.
 */
export function locationOf(
  { text, takesCapture, location }: Target,
  { query, capture = '' }: { readonly query: string; readonly capture: string | undefined },
): string | undefined {
  if (!takesCapture) {
    return query === '' && location !== undefined ? location : write(withQuery(text, query));
  }
  const inPath = !/[?#]/.test(text);
  const encoded = inPath ? encodePath(capture) : encodeURIComponent(capture.toWellFormed());
  const whole = text + encoded;
  if (inPath && !staysBelow(text, whole)) return undefined;
  return write(withQuery(whole, query));
}

function readTarget(text: string, isWildcard: boolean): Target {
  const takesCapture = isWildcard && text.endsWith('*');
  return {
    text: takesCapture ? text.slice(0, -1) : text,
    takesCapture,
    location: takesCapture ? undefined : write(text),
  };
}

/** Only serves the parser: what comes back is the part behind it. */
const placeholder = 'http://placeholder.invalid';

/** Whether a path keeps its beginning in the eyes of a browser, which resolves dot segments. */
function staysBelow(beginning: string, whole: string): boolean {
  // With a letter behind it, a beginning that ends in a dot is no dot segment yet.
  const { href } = new URL(`${beginning}x`, placeholder);
  return new URL(whole, placeholder).href.startsWith(href.slice(0, -1));
}

function withQuery(target: string, query: string): string {
  if (query === '') return target;
  const [before = '', ...fragment] = target.split('#');
  const joined = `${before}${before.includes('?') ? '&' : '?'}${query}`;
  return fragment.length > 0 ? `${joined}#${fragment.join('#')}` : joined;
}

function write(target: string): string {
  if (!target.startsWith('/')) return new URL(target).href;
  const { pathname, search, hash } = new URL(target, placeholder);
  return `${pathname.startsWith('//') ? '/' : pathname}${search}${hash}`;
}
