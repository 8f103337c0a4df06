import type { AccessGuard } from '../access/access-guard.ts';
import type { SiteAccess } from '../api/site-access.ts';
import { explainKey } from '../breadcrumbs/explain.ts';
import { breadcrumbReply, cachingFields, resolutionData } from '../breadcrumbs/reply.ts';
import { resolveKey, type ResolvedBreadcrumb } from '../breadcrumbs/resolve.ts';
import type { CountVisit } from '../breadcrumbs/visit-counter.ts';
import type { RedirectConfig } from '../config/config.ts';
import type { Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import { proxyName, type Rule } from '../model/rule.ts';
import type { GenericPages } from '../pages/generic-pages.ts';
import type { StoredPages } from '../pages/stored-pages.ts';
import type { Fetcher, OpenedWebsocket } from '../proxy/fetcher.ts';
import type { RenderedPages, RowReader } from '../rendering/rendered-pages.ts';
import { withConfiguredRules } from '../rules/configured-rules.ts';
import { findRule } from '../rules/find.ts';
import type { RuleReader } from '../rules/rule-cache.ts';
import {
  type ReplyOrPromise,
  notFoundReply,
  type ContentSource,
  type PageRequest,
} from '../rules/source.ts';
import { diskSource, fallbackSource } from '../static/disk-sources.ts';
import type { Disk, FailedRequest } from '../static/disk.ts';
import { redirectSource } from './configured-redirects.ts';
import { explainFrom } from './explain.ts';
import { guardedReply, requireAccess, requireHops, withAccess, withPrivacy } from './guarded.ts';
import { failureOf, fetchedSource, storedSource } from './rule-sources.ts';
import { withSlashRedirect } from './single-slashes.ts';

/** The parts of a site. */
export interface SiteParts {
  readonly rules: RuleReader;
  /** The rules of the proxies of the ini file. */
  readonly proxies: readonly Rule[];
  readonly disk: Disk;
  /** Those of the ini file, in its order. */
  readonly redirects: readonly RedirectConfig[];
  /** Decides who may have an answer; undefined without access rules. */
  readonly access: AccessGuard | undefined;
  readonly stored: StoredPages;
  readonly generic: GenericPages;
  readonly rendered: RenderedPages;
  readonly pageRows: RowReader;
  readonly fetch: Fetcher;
  /** Counts the visits of breadcrumbs; undefined for requests of operations. */
  readonly countVisit?: CountVisit | undefined;
}

/**
 * The site under one configuration. Visitors, the get operations, explain and tests all use it, so
 * that there is only one precedence.
 */
export interface Site extends SiteAccess {
  /**
   * Opens a websocket by the content.fetch rule that matches the path. Other sources are skipped:
   * they cannot open websockets. Rejects as Fetcher.openWebsocket, and with `not_found` if no such
   * rule matches.
   */
  openWebsocket(request: ContentRequest): Promise<OpenedWebsocket | Reply>;
  /** The site's own error page for a failure, with its status; undefined if it has none. */
  errorPage(status: number, failed: FailedRequest): Promise<Reply | undefined>;
}

/** Creates a site. */
export function createSite(parts: SiteParts): Site {
  const { rules, disk, access } = parts;
  const files = diskSource(disk);
  const isExact = (request: PageRequest): boolean => isExactRule(rules, request);
  const stored = storedSource(parts, {
    respond: (request, depth) => respondAt(request, depth),
    explain: (request, depth) => explainFrom(sources, request, depth),
  });
  const fetchedRules = withConfiguredRules(rules, parts.proxies);
  // The precedence (docs/design/requests.md#precedence): the first source that has a page replies,
  // whatever the method is.
  // A file, and a page rule without a wildcard, are also found by their path with more slashes; a
  // wildcard matches them as they are.
  const sources: readonly ContentSource[] = [
    ...(parts.redirects.length === 0 ? [] : [redirectSource(parts.redirects)]),
    withSlashRedirect(files, (single) => files.explain(single, 0).reply !== undefined),
    withSlashRedirect(stored, (single, request) => isExact(single) && !isExact(request)),
    withSlashRedirect(fetchedSource({ ...parts, rules: fetchedRules }), () => false),
    fallbackSource(disk),
  ];
  const respondAt = (request: ContentRequest, depth: number): ReplyOrPromise =>
    guardedReply(access, { request, depth }, (admitted) => respondFrom(sources, admitted, depth));
  return {
    respond: withPrivacy(access, (request) => {
      const answer = respondAt(request, 0);
      if (!(answer instanceof Promise)) return answer ?? notFoundReply(request.method);
      return answer.then((reply) => reply ?? notFoundReply(request.method));
    }),
    openWebsocket: async (request) =>
      guardedReply(access, { request, depth: 0 }, (admitted) =>
        openWebsocket({ fetch: parts.fetch, rules: fetchedRules }, admitted),
      ),
    errorPage: (status, failed) => disk.errorPage(status, failed),
    findRule(request) {
      const found =
        findRule('stored', rules, request) ?? findRule('content.fetch', fetchedRules, request);
      // A proxy is no page rule, and hides those with a shorter path.
      const isProxy = found !== undefined && proxyName(found.stored.rule.id) !== undefined;
      return isProxy ? undefined : found;
    },
    requireAccess: (place, client) => requireAccess(access, place, client),
    resolve: (visit) => resolveGuarded(parts, visit),
    breadcrumb: breadcrumbReply,
    breadcrumbData: (resolved) => ({
      data: resolutionData(resolved),
      caching: cachingFields(resolved),
    }),
    explain: (request) => withAccess(access, request, explainFrom(sources, request, 0)),
    explainKey: (visit) => {
      const { key, origin, visitor } = visit;
      return withAccess(access, { origin, path: key, visitor }, explainKey(rules, visit));
    },
    namesBelow: (place, caller) => disk.namesBelow(place, caller),
    mountOrigins: [...new Set(disk.mounts.map(({ origin }) => origin))],
    withRows: (pageRows) => createSite({ ...parts, countVisit: undefined, pageRows }),
    at: (past, pageRows) =>
      createSite({
        ...parts,
        countVisit: undefined,
        fetch: { ...parts.fetch, respond: refuseFetch },
        pageRows,
        rules: {
          exactRules: (origin, path) => past.exactRules(origin, path),
          wildcardRules: (origin, path) => past.wildcardRules(origin, path),
          ruleOf: ({ id }) => past.rule(id),
        },
      }),
  };
}

/** Opens a websocket at the source of the matching rule; rejects as Site.openWebsocket. */
async function openWebsocket(
  { fetch, rules }: Pick<SiteParts, 'fetch' | 'rules'>,
  request: ContentRequest,
): Promise<OpenedWebsocket | Reply> {
  const rule = findRule('content.fetch', rules, request)?.stored.rule;
  if (rule === undefined) throw new Failure('not_found', 'There is no websocket here.');
  try {
    return await fetch.openWebsocket(rule, request);
  } catch (thrown) {
    throw failureOf(rule, thrown);
  }
}

/** Resolves a key whose client may see it, and all keys that it leads over. */
function resolveGuarded(
  { access, rules }: Pick<SiteParts, 'access' | 'rules'>,
  visit: Parameters<SiteAccess['resolve']>[0],
): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb> {
  if (access === undefined) return resolveKey(rules, visit);
  const { key, origin, client } = visit;
  const after = async (): Promise<ResolvedBreadcrumb> => {
    await requireAccess(access, { origin, path: key }, client);
    const resolved = await resolveKey(rules, visit);
    return requireHops(access, { resolved, origin }, client);
  };
  return after();
}

/** Whether a page rule without a wildcard answers a request. */
function isExactRule(rules: RuleReader, request: PageRequest): boolean {
  const found = findRule('stored', rules, request);
  return found !== undefined && found.capture === undefined;
}

/**
 * Tries the sources in order, and waits only for those that return promises. `depth` counts the
 * generic pages that the request has passed through.
 */
function respondFrom(
  sources: readonly ContentSource[],
  request: ContentRequest,
  depth: number,
  first = 0,
): ReplyOrPromise {
  for (let at = first; at < sources.length; at += 1) {
    const answer = sources[at]?.respond(request, depth);
    if (answer instanceof Promise) {
      return answer.then((reply) => reply ?? respondFrom(sources, request, depth, at + 1));
    }
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** The past answers of other servers are not stored, and their present ones would mislead. */
const refuseFetch: Fetcher['respond'] = () =>
  Promise.reject(
    new Failure(
      'unprocessable',
      'This page comes from another server, whose past answers are not stored.',
    ),
  );
