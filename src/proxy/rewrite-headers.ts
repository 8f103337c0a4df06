import { encodePath } from '../model/path.ts';
import type { FetchPlan, FetchSource } from './fetch-plan.ts';

/** One fetch: what was asked for, and what was asked of the source for it. */
export interface FetchedUrl {
  readonly plan: FetchPlan;
  /** The visible origin and canonical path. */
  readonly origin: string;
  readonly path: string;
  /** The source that was asked, and the path and query that it was asked for. */
  readonly source: FetchSource;
  readonly target: string;
}

/**
 * A URL reference of the source (Location, Content-Location: RFC 9110 §10.2.2, §8.7) as the client
 * has to see it. What lies under a source's prefix becomes visible: an absolute URL stays
 * absolute, any other becomes a path. What lies elsewhere is left as it is.
 */
export function rewriteUrl(reference: string, fetched: FetchedUrl): string {
  const url = URL.parse(escaped(reference), fetched.source.origin + fetched.target);
  if (url === null) return reference;
  const [source, path] = sourceOf(url, fetched) ?? [];
  if (source === undefined || path === undefined) return reference;
  const visible = path + withoutOwnQuery(url.search, source.query) + url.hash;
  // A path that starts with two slashes would be read as a host (RFC 3986 §4.2).
  const absolute = isAbsolute.test(reference) || path.startsWith('//');
  return absolute ? fetched.origin + visible : visible;
}

/**
 * A Link of the source (RFC 8288 §3) with its absolute URLs as the client has to see them. Paths
 * stay: they are those that the content names, which is passed on as it is.
 */
export function rewriteLinks(value: string, fetched: FetchedUrl): string {
  return value.replace(quotedOrReference, (text, reference: string | undefined) =>
    reference !== undefined && isAbsolute.test(reference)
      ? `<${rewriteUrl(reference, fetched)}>`
      : text,
  );
}

const isAbsolute = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;
/**
 * A quoted text that nothing ends goes to the end of the value: behind each quote, one would be
 * looked for anew, in a time that grows with the square of the length.
 */
const quotedOrReference = /"(?:[^"\\]|\\.)*\\?(?:"|$)|<([^<>]*)>/g;

/** A Refresh of the source (HTML §15.6.3) with the URL that it leads to as the client sees it. */
export function rewriteRefresh(value: string, fetched: FetchedUrl): string {
  const [, before, quote = '', reference, after] = refresh.exec(value) ?? [];
  if (before === undefined || reference === undefined) return value;
  return before + quote + rewriteUrl(reference, fetched) + (after ?? '');
}

const refresh =
  /^([ \t]*[\d.]+[ \t]*[;,][ \t]*(?:url[ \t]*=[ \t]*)?)(["']?)((?!url=)[^\s"']+)(["']?[ \t]*)$/i;

/** A reference of which each byte past ASCII, which clients read as UTF-8, is escaped as it is. */
function escaped(reference: string): string {
  return reference.replace(/[\x80-\xff]/g, (byte) =>
    `%${byte.charCodeAt(0).toString(16)}`.toUpperCase(),
  );
}

/**
 * A Set-Cookie value of the source (RFC 6265 §4.1) as the client has to see it: without Domain, so
 * that it is the visible host's, and with a Path within the rule's. Undefined for a `__Host-`
 * cookie, whose Path has to be `/`. Where the rule covers the whole origin, or its `pass` names
 * Set-Cookie, that cookie stays, and so does Path where the source's paths are the visible ones:
 * the source may be behind other rules as well.
 */
export function rewriteCookie(value: string, fetched: FetchedUrl): string | undefined {
  const { plan } = fetched;
  const [pair = '', ...attributes] = value.split(';');
  const isConfined = !plan.isWholeOrigin && !plan.pass.has('set-cookie');
  const isOfHost = /^\s*__host-/i.test(pair);
  if (isConfined && isOfHost) return undefined;
  const keepsPath = !isConfined && (isOfHost || hasSamePaths(fetched));
  const kept = attributes.flatMap((attribute) => {
    const name = attributeName(attribute);
    if (name === 'domain') return [];
    if (name !== 'path' || keepsPath) return [attribute];
    return [` Path=${cookiePath(attribute.slice(attribute.indexOf('=') + 1).trim(), fetched)}`];
  });
  const hasPath = kept.some((attribute) => attributeName(attribute) === 'path');
  // By itself it would be for the folder of the URL, which may be above what the rule covers, or
  // that of an operation which shows the page.
  if (isConfined && !hasPath) kept.push(` Path=${folderPath(fetched)}`);
  return [pair, ...kept].join(';');
}

/** The folder of the visible URL, without the slash at its end (RFC 6265 §5.1.4), or the rule's. */
function folderPath({ plan, path }: FetchedUrl): string {
  const folder = path.slice(0, path.lastIndexOf('/'));
  const isWithin = isFolder(plan) && folder.length > plan.visiblePrefix.length;
  return escapedPath(isWithin ? folder : plan.visiblePrefix);
}

/** A path as it stands in an attribute of a cookie. */
function escapedPath(path: string): string {
  return encodePath(path).replaceAll(';', '%3B');
}

function attributeName(attribute: string): string | undefined {
  return /^\s*([^=\s]*)/.exec(attribute)?.[1]?.toLowerCase();
}

/**
 * A Service-Worker-Allowed of the source as the client has to see it: the path below which a
 * service worker may control pages (Service Workers §Update). Undefined for one that is not within
 * the rule's path, unless the rule's `pass` names it.
 */
export function rewriteWorkerScope(value: string, fetched: FetchedUrl): string | undefined {
  const { plan, origin, path } = fetched;
  if (plan.isWholeOrigin || plan.pass.has('service-worker-allowed')) return value;
  const scope = URL.parse(rewriteUrl(value, fetched), origin + encodePath(path));
  const isWithin =
    scope?.origin === origin && scope.pathname.startsWith(encodePath(plan.visiblePrefix));
  return isWithin ? scope.pathname : undefined;
}

/**
 * The Service-Worker-Allowed of a script that does not say it, where the script could control pages
 * that the rule does not cover: by itself it may control its whole folder.
 */
export function defaultWorkerScope(
  contentType: string | undefined,
  { plan }: FetchedUrl,
): string | undefined {
  if (plan.isWholeOrigin || plan.pass.has('service-worker-allowed')) return undefined;
  const isScript = contentType?.toLowerCase().includes('script') === true;
  return isScript && !isFolder(plan) ? encodePath(plan.visiblePrefix) : undefined;
}

/** Whether a rule covers a folder and nothing beside it. */
function isFolder({ visiblePrefix, visibleWildcard }: FetchPlan): boolean {
  return visibleWildcard && visiblePrefix.endsWith('/');
}

/** The source of the rule that a URL lies under, and the visible path: servers name each other. */
function sourceOf(
  { origin, pathname }: URL,
  { plan, source: asked, path }: FetchedUrl,
): readonly [FetchSource, string] | undefined {
  for (const source of [asked, ...plan.sources]) {
    const visible = source.origin === origin && visiblePath(pathname, source, plan, path);
    if (typeof visible === 'string') return [source, visible];
  }
  return undefined;
}

function visiblePath(
  path: string,
  source: FetchSource,
  { visiblePrefix, visibleWildcard }: FetchPlan,
  asked: string,
): string | undefined {
  if (source.wildcard === 'path' && visibleWildcard) {
    const capture = captureIn(path, source);
    return capture === undefined ? undefined : encodePath(visiblePrefix) + capture;
  }
  if (source.wildcard === 'query') return undefined;
  return path === source.path ? encodePath(asked) : undefined;
}

/**
 * The query that the rule's source has of its own may be a secret, and the server adds it again.
 */
function withoutOwnQuery(search: string, own: string): string {
  if (own === '' || !search.startsWith(`?${own}`)) return search;
  const rest = search.slice(own.length + 1);
  if (rest === '') return '';
  return rest.startsWith('&') ? `?${rest.slice(1)}` : search;
}

/** Whether the paths under a source are those under the rule. */
function hasSamePaths({ plan: { visiblePrefix, visibleWildcard }, source }: FetchedUrl): boolean {
  const isSameKind = visibleWildcard === (source.wildcard === 'path');
  return isSameKind && source.path === encodePath(visiblePrefix) && source.suffix === '';
}

/**
 * A path above or beside the source's prefix is not visible: the visible prefix stands for all of
 * the source.
 */
function cookiePath(path: string, { plan, source }: FetchedUrl): string {
  const { visiblePrefix, visibleWildcard } = plan;
  const isMapped = visibleWildcard && source.wildcard === 'path';
  return escapedPath(visiblePrefix) + ((isMapped ? captureIn(path, source) : undefined) ?? '');
}

/** What the `*` of a source stands for in a path of its; undefined for a path beside it. */
function captureIn(path: string, { path: prefix, suffix }: FetchSource): string | undefined {
  const isUnder = path.startsWith(prefix) && path.endsWith(suffix);
  if (!isUnder || path.length < prefix.length + suffix.length) return undefined;
  return path.slice(prefix.length, path.length - suffix.length);
}
