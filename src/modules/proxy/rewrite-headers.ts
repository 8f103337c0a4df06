import { authorityOf } from '../../core/http/field-template.ts';
import { setsOwnCookie } from '../../core/http/own-cookies.ts';
import { ipv4Number } from '../../core/values/network/cidr.ts';
import { encodePath } from '../../core/values/path.ts';
import type { FetchPlan, FetchSource } from './fetch-plan.ts';

/** The visible URL of a response, and the source URL that it was fetched from. */
export interface FetchedUrl {
  readonly plan: FetchPlan;
  /** The visible origin and canonical path. */
  readonly origin: string;
  readonly path: string;
  /** The source, and the path and query of the request to it. */
  readonly source: FetchSource;
  readonly target: string;
}

/**
 * Rewrites a URL reference of the source (Location, Content-Location: RFC 9110 §10.2.2, §8.7) to
 * the visible URL. Under a source's prefix, an absolute URL that names a source, or the host that
 * it got, stays absolute and any other becomes a path. A URL elsewhere stays unchanged, and so does
 * a path that is visible already.
 */
export function rewriteUrl(reference: string, fetched: FetchedUrl): string {
  const url = URL.parse(escaped(reference), fetched.source.origin + fetched.target);
  if (url === null) return reference;
  if (!isOfSource(url, fetched) && namesGivenHost(url, fetched)) {
    return visibleOfHost(url, fetched) ?? reference;
  }
  const [source, path] = sourceOf(url, fetched) ?? [];
  if (source === undefined || path === undefined) return reference;
  const visible = path + withoutOwnQuery(url.search, source.query) + url.hash;
  // A path that starts with two slashes would be read as a host (RFC 3986 §4.2).
  const absolute = isAbsolute.test(reference) || path.startsWith('//');
  if (!absolute && reference.startsWith('/') && isVisible(url.pathname, fetched)) {
    return url.pathname + withoutOwnQuery(url.search, source.query) + url.hash;
  }
  return absolute ? fetched.origin + visible : visible;
}

/** Whether a URL has the origin of a source. */
function isOfSource({ origin }: URL, { plan, source }: FetchedUrl): boolean {
  return source.origin === origin || plan.sources.some((one) => one.origin === origin);
}

/**
 * Whether a URL names the host that the source got in Host, of which applications make URLs with a
 * scheme that they get or guess. Without a port, the other scheme of a source's own host is another
 * server, to which a source of the Internet may send all visitors; not so for an application of the
 * ini file that answers in the visitor's scheme.
 */
function namesGivenHost(
  { protocol, host, port }: URL,
  { plan, source, origin }: FetchedUrl,
): boolean {
  if (protocol !== 'http:' && protocol !== 'https:') return false;
  if (plan.host !== 'source') {
    return host === (plan.host === 'client' ? authorityOf(origin) : plan.host);
  }
  const isOfVisitor = plan.ini !== undefined && origin.startsWith(`${protocol}//`);
  return host === authorityOf(source.origin) && (port !== '' || isOfVisitor);
}

/**
 * The visible URL of one with the host that the source got. The application knows that it is behind
 * another path, or writes its own. A redirect to https stays one.
 */
function visibleOfHost(url: URL, fetched: FetchedUrl): string | undefined {
  const { source, plan, origin, path } = fetched;
  const visible = isVisible(url.pathname, fetched)
    ? url.pathname
    : visiblePath(url.pathname, source, plan, path);
  if (visible === undefined) return undefined;
  const isUpgrade = url.protocol === 'https:' && origin.startsWith('http:') && url.port === '';
  const to = isUpgrade ? `https://${new URL(origin).hostname}` : origin;
  return to + visible + withoutOwnQuery(url.search, source.query) + url.hash;
}

/**
 * Rewrites the absolute URLs of a Link (RFC 8288 §3) that name a source. All others stay as they
 * are in the content, which is not rewritten either.
 */
export function rewriteLinks(value: string, fetched: FetchedUrl): string {
  return value.replace(quotedOrReference, (text, reference: string | undefined) =>
    reference !== undefined && isAbsolute.test(reference) && namesSource(reference, fetched)
      ? `<${rewriteUrl(reference, fetched)}>`
      : text,
  );
}

function namesSource(reference: string, fetched: FetchedUrl): boolean {
  const url = URL.parse(escaped(reference), fetched.source.origin);
  return url !== null && isOfSource(url, fetched);
}

const isAbsolute = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;
/**
 * An unterminated quoted string extends to the end of the value. Otherwise the search would start
 * again after each quote, in a time that grows with the square of the length.
 */
const quotedOrReference = /"(?:[^"\\]|\\.)*\\?(?:"|$)|<([^<>]*)>/g;

/** Rewrites the URL of a Refresh (HTML, "The Refresh header"). */
export function rewriteRefresh(value: string, fetched: FetchedUrl): string {
  const [, before, quote = '', reference, after] = refresh.exec(value) ?? [];
  if (before === undefined || reference === undefined) return value;
  return before + quote + rewriteUrl(reference, fetched) + (after ?? '');
}

const refresh =
  /^([ \t]*[\d.]+[ \t]*[;,][ \t]*(?:url[ \t]*=[ \t]*)?)(["']?)((?!url=)[^\s"']+)(["']?[ \t]*)$/i;

/** A reference with its non-ASCII bytes percent-encoded one by one: clients read them as UTF-8. */
function escaped(reference: string): string {
  return reference.replace(/[\x80-\xff]/g, (byte) =>
    `%${byte.charCodeAt(0).toString(16)}`.toUpperCase(),
  );
}

/**
 * Rewrites a Set-Cookie of the source (RFC 6265 §4.1): without Domain, so that the cookie belongs
 * to the visible host, and with a Path within the rule's path. Drops (undefined) a cookie that only
 * this server sets, and a `__Host-` cookie, whose Path must be `/`. If the rule covers the whole
 * origin, or its `pass` names Set-Cookie, a `__Host-` cookie stays, and so does a Domain that
 * covers the visible host, and a Path that is the same on both sides: the source may be behind
 * other rules and hosts of the site as well.
 */
export function rewriteCookie(value: string, fetched: FetchedUrl): string | undefined {
  if (setsOwnCookie(value)) return undefined;
  const { plan } = fetched;
  const [pair = '', ...attributes] = value.split(';');
  const isConfined = !plan.isWholeOrigin && !plan.pass.has('set-cookie');
  const isOfHost = /^\s*__host-/i.test(pair);
  if (isConfined && isOfHost) return undefined;
  const keepsPath = !isConfined && (isOfHost || hasSamePaths(fetched));
  const keepsDomain = !isConfined && !isOfHost;
  const kept = attributes.flatMap((attribute) => {
    const name = attributeName(attribute);
    const value = attribute.slice(attribute.indexOf('=') + 1).trim();
    if (name === 'domain') return keepsDomain && coversHost(value, fetched) ? [attribute] : [];
    if (name !== 'path' || keepsPath) return [attribute];
    return [` Path=${cookiePath(value, fetched)}`];
  });
  const hasPath = kept.some((attribute) => attributeName(attribute) === 'path');
  // The default Path is the folder of the URL, which may lie above the rule's path, or belong to an
  // operation that shows the page.
  if (isConfined && !hasPath) kept.push(` Path=${folderPath(fetched)}`);
  return [pair, ...kept].join(';');
}

/**
 * Whether the Domain of a cookie is the visible host or a domain above it (RFC 6265 §5.1.3).
 * Browsers refuse the whole cookie for a Domain that it does not cover, and for a public suffix; a
 * single label is one.
 */
function coversHost(domain: string, { origin }: FetchedUrl): boolean {
  const { hostname } = new URL(origin);
  const name = domain.replace(/^\./, '').toLowerCase();
  if (name === hostname) return true;
  return name.includes('.') && hostname.endsWith(`.${name}`) && ipv4Number(hostname) === undefined;
}

/** The default Path of the visible URL (RFC 6265 §5.1.4), or the rule's path if that is longer. */
function folderPath({ plan, path }: FetchedUrl): string {
  const folder = path.slice(0, path.lastIndexOf('/'));
  const isBelow = isFolder(plan) || plan.visibleSuffix !== undefined;
  const isWithin = isBelow && folder.length > plan.visiblePrefix.length;
  return escapedPath(isWithin ? folder : plan.visiblePrefix);
}

/** A path that is safe in a cookie's attribute, which a semicolon would end. */
function escapedPath(path: string): string {
  return encodePath(path).replaceAll(';', '%3B');
}

function attributeName(attribute: string): string | undefined {
  return /^\s*([^=\s]*)/.exec(attribute)?.[1]?.toLowerCase();
}

/**
 * Rewrites Service-Worker-Allowed, the path below which a service worker may control pages (Service
 * Workers §Update). Drops (undefined) one outside the rule's path, unless the rule's `pass` names
 * the field.
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
 * The Service-Worker-Allowed to add to a script that has none: by default its service worker may
 * control its whole folder, which may contain pages outside the rule's path.
 */
export function defaultWorkerScope({ plan }: FetchedUrl): string | undefined {
  if (plan.isWholeOrigin || plan.pass.has('service-worker-allowed')) return undefined;
  return isFolder(plan) ? undefined : encodePath(plan.visiblePrefix);
}

/** Whether a rule covers exactly one folder, such as `/a/*`. */
function isFolder({ visiblePrefix, visibleWildcard }: FetchPlan): boolean {
  return visibleWildcard && visiblePrefix.endsWith('/');
}

/** The source that a URL belongs to, and its visible path; servers may name each other. */
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
  { visiblePrefix, visibleWildcard, visibleSuffix }: FetchPlan,
  asked: string,
): string | undefined {
  if (source.wildcard === 'path' && (visibleWildcard || visibleSuffix !== undefined)) {
    const capture = captureIn(path, source);
    if (capture === undefined) return undefined;
    if (visibleSuffix === undefined) return encodePath(visiblePrefix) + capture;
    const isSegment = capture !== '' && !capture.includes('/');
    return isSegment ? encodePath(visiblePrefix) + capture + encodePath(visibleSuffix) : undefined;
  }
  if (source.wildcard === 'query') return undefined;
  return path === source.path ? encodePath(asked) : undefined;
}

/**
 * Whether a path of the source is below the rule's folder: an application behind `/app/` that knows
 * where it is visible says `/app/done`, while it gets `/done`. One that gets such paths as well
 * means its own.
 */
function isVisible(path: string, { plan, target }: FetchedUrl): boolean {
  const folder = encodePath(plan.visiblePrefix);
  const isWithin = (one: string): boolean => `${one}/`.startsWith(folder);
  return isFolder(plan) && folder !== '/' && isWithin(path) && !isWithin(pathIn(target));
}

/** The path of a target with a query. */
function pathIn(target: string): string {
  return target.split('?', 1)[0] ?? '';
}

/** Removes the query of the rule's source: it may be secret, and the server adds it again. */
function withoutOwnQuery(search: string, own: string): string {
  if (own === '' || !search.startsWith(`?${own}`)) return search;
  const rest = search.slice(own.length + 1);
  if (rest === '') return '';
  return rest.startsWith('&') ? `?${rest.slice(1)}` : search;
}

/** Whether the paths of a source are the same as the visible ones. */
function hasSamePaths({ plan, source }: FetchedUrl): boolean {
  const { visiblePrefix, visibleWildcard, visibleSuffix } = plan;
  const isStar = visibleWildcard || visibleSuffix !== undefined;
  const isSamePrefix = source.path === encodePath(visiblePrefix);
  const isSameKind = isStar === (source.wildcard === 'path');
  return isSameKind && isSamePrefix && source.suffix === encodePath(visibleSuffix ?? '');
}

/**
 * A Path outside the source's prefix has no visible counterpart: the visible prefix replaces it.
 * One that is visible already stays.
 */
function cookiePath(path: string, fetched: FetchedUrl): string {
  const { plan, source } = fetched;
  const { visiblePrefix, visibleWildcard } = plan;
  const folder = encodePath(visiblePrefix);
  if (isVisible(path, fetched)) return path.startsWith(folder) ? path : escapedPath(visiblePrefix);
  const isMapped = visibleWildcard && source.wildcard === 'path';
  return escapedPath(visiblePrefix) + ((isMapped ? captureIn(path, source) : undefined) ?? '');
}

/** The part of a path that a source's `*` stands for; undefined for a path outside the source. */
function captureIn(path: string, { path: prefix, suffix }: FetchSource): string | undefined {
  const isUnder = path.startsWith(prefix) && path.endsWith(suffix);
  if (!isUnder || path.length < prefix.length + suffix.length) return undefined;
  return path.slice(prefix.length, path.length - suffix.length);
}
