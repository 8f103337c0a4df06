import type { AccessGuard } from '../../modules/access/access-guard.ts';
import type { Rates } from '../../modules/rates/rates.ts';
import type { SiteAccess } from './site-access.ts';
import { branchOutcomes } from '../../modules/breadcrumbs/branches.ts';
import { explainKey } from '../../modules/breadcrumbs/explain.ts';
import { cachingFields, keyData, keyReply } from '../../modules/breadcrumbs/reply.ts';
import {
  breadcrumbStart,
  resolveKey,
  type BreadcrumbHop,
  type BreadcrumbStart,
  type BreadcrumbVisit,
  type ResolvedBreadcrumb,
} from '../../modules/breadcrumbs/resolve.ts';
import type { CountVisit } from '../../modules/breadcrumbs/visit-counter.ts';
import { limitFreshness } from '../http/representation/limited-freshness.ts';
import type { Reply } from '../http/reply.ts';
import type { ContentRequest, RequestTarget } from '../http/request.ts';
import { headerRulesFor, type HeaderRule } from '../../modules/headers/response-headers.ts';
import { winnerName, type Explanation } from './explanation.ts';
import { Failure } from '../values/failure.ts';
import { accessOf, proxyName, type Rule } from '../../modules/rules/rule.ts';
import type { GenericPages } from '../../modules/rules/pages/generic-pages.ts';
import type { StoredPages } from '../../modules/rules/pages/stored-pages.ts';
import { passesUpgrade, type Fetcher, type SwitchedProtocol } from '../../modules/proxy/fetcher.ts';
import type { RenderedPages, RowReader } from '../../modules/rendering/rendered-pages.ts';
import { withConfiguredRules } from '../../modules/rules/configured-rules.ts';
import { findRule } from '../../modules/rules/find.ts';
import { createAssetReader, type AssetReader } from '../../modules/assets/asset.ts';
import type { AssetPages } from '../../modules/assets/asset-pages.ts';
import { rulesAtTime, type RuleReader } from '../../modules/rules/valid-rules.ts';
import { candidatesFor } from '../../modules/rules/matcher.ts';
import { notFoundReply, type ContentSource, type PageRequest } from './source.ts';
import { diskSource, fallbackSource, hasFile } from '../../modules/files/disk-sources.ts';
import type { Disk } from '../../modules/files/disk.ts';
import {
  explainRuleAccess,
  guardedPrecedence,
  guardedReply,
  guardedRule,
  requireAccess,
  requireHops,
  requireRuleSection,
  withAccess,
  withPrivacy,
} from '../../modules/access/guarded.ts';
import { precedenceOf, type Precedence } from './precedence.ts';
import type { MountRedirects, RedirectsOfSite } from '../../modules/redirects/redirect-lists.ts';
import { answersOther, redirectSource } from '../../modules/redirects/redirect-source.ts';
import { rewriteSource, type Rewriter } from '../../modules/redirects/rewrite-source.ts';
import { failureOf, fetchedSource, storedSource } from '../../modules/rules/pages/rule-sources.ts';
import { withSlashRedirect } from './single-slashes.ts';

/** The parts of a site. */
export interface SiteParts {
  readonly rules: RuleReader;
  /** The rules of the proxies of the ini file. */
  readonly proxies: readonly Rule[];
  readonly disk: Disk;
  /** Those of the ini file, in its order. */
  readonly redirects: readonly RedirectsOfSite[];
  /** Those beside the files of mounts. */
  readonly mountRedirects: readonly MountRedirects[];
  readonly rewriter: Rewriter;
  /** The changes of the fields of answers, for explain. */
  readonly headerRules: readonly HeaderRule[];
  /** Decides who may have an answer; undefined without access rules. */
  readonly access: AccessGuard | undefined;
  /** The rates of paths, for explanations; the server counts requests. */
  readonly rates: Pick<Rates, 'explain'> | undefined;
  readonly stored: StoredPages;
  readonly assets: AssetReader;
  readonly assetPages: Pick<AssetPages, 'respondFor'>;
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
   * Asks for another protocol by the content.fetch rule that matches the path. Files and pages are
   * skipped: they have no other protocol. What would lead or refuse any other request does so here:
   * a redirect, a breadcrumb, a page rule with the status of an error. Rejects as Fetcher.upgrade,
   * and with `not_found` if no such rule matches.
   */
  upgrade(request: ContentRequest): SwitchedProtocol | Reply | Promise<SwitchedProtocol | Reply>;
  /** Whether a rule forwards a request for another protocol to its source. */
  forwardsUpgrade(
    request: Pick<ContentRequest, keyof RequestTarget | 'method' | 'fields'>,
  ): boolean;
}

/** Creates a site. */
export function createSite(parts: SiteParts): Site {
  const { rules, disk, access } = parts;
  const unguarded = precedenceOf(() => sources);
  const all = guardedPrecedence(access, unguarded);
  const { sources, fetchedRules, notFound, stored, redirecting } = sourcesOf(parts, all);
  return {
    respond: withPrivacy(access, (request) => {
      const answer = all.respond(request, 0);
      if (!(answer instanceof Promise)) return answer ?? notFound(request);
      return answer.then((reply) => reply ?? notFound(request));
    }),
    upgrade: withPrivacy(access, async (request) =>
      guardedReply(access, { request, depth: 0 }, (admitted) =>
        upgradeRewritten({ ...parts, fetchedRules, stored, redirecting }, admitted),
      ),
    ),
    forwardsUpgrade: (request) => forwardsUpgrade(parts, fetchedRules, request),
    errorPage: (status, failed) => disk.errorPage(status, failed),
    findRule(request) {
      const found =
        findRule('stored', rules, request) ?? findRule('content.fetch', fetchedRules, request);
      // A proxy is no page rule, and hides those with a shorter path.
      const isProxy = found !== undefined && proxyName(found.stored.rule.id) !== undefined;
      return isProxy ? undefined : found;
    },
    requireAccess: (place, client) => requireAccess(access, place, client),
    requireRuleSection: (rule, place, client) => requireRuleSection(access, rule, place, client),
    resolve: (visit) => resolveGuarded(parts, visit),
    breadcrumb: keyReply,
    breadcrumbData: async (resolved, visit) => ({
      data: await keyData(resolved, visit),
      caching: cachingFields(resolved),
    }),
    explain(request) {
      const explained = withAccess(access, request, all.explain(request, 0));
      const { winner } = explained;
      const source = winner === null ? 'none' : winnerName(winner);
      const headers = headerRulesFor(parts.headerRules, source, request);
      const notes = [...(parts.rates?.explain(request) ?? []), ...explained.notes];
      return { ...explained, notes, ...(headers.length > 0 && { headers }) };
    },
    explainKey: (visit) => explainGuarded(parts, visit),
    hasFile: (request) => hasFile(disk, request),
    branches: (place, visit) => {
      const start = branchesStart(parts, place, visit);
      return start === undefined ? [] : branchOutcomes(rules, start, visit);
    },
    namesBelow: (place, caller) => disk.namesBelow(place, caller),
    mountOrigins: [...new Set(disk.mounts.map(({ origin }) => origin))],
    withRows: (pageRows, timeMs) =>
      createSite({
        ...parts,
        countVisit: undefined,
        pageRows,
        rules: timeMs === undefined ? rules : rulesAtTime(rules, timeMs),
      }),
    hasComingChanges: () => rules.hasComing(),
    nextChangeMs: (target, afterMs) => nextChangeMs(parts, target, afterMs),
    at: (past, pageRows, timeMs) =>
      createSite({
        ...parts,
        countVisit: undefined,
        fetch: { ...parts.fetch, respond: refuseFetch },
        pageRows,
        assets: createAssetReader(past),
        rules: rulesAtTime({ anyTime: past, ruleOf: ({ id }) => past.rule(id) }, timeMs),
      }),
  };
}

/** The resolve rule of a key, or the one that answers a path; undefined without one. */
function branchesStart(
  { rules }: SiteParts,
  place: Parameters<SiteAccess['branches']>[0],
  visit: BreadcrumbVisit,
): BreadcrumbStart | undefined {
  if ('key' in place) return breadcrumbStart(rules, place.key, visit);
  const found = findRule('stored', rules, { ...place, fields: visit.fields });
  return found?.stored.rule.kind === 'resolve' ? found : undefined;
}

/** The sources of content in their order (docs/design/requests.md#precedence). */
interface SiteSources {
  readonly sources: readonly ContentSource[];
  /** The page rules and proxies of content.fetch. */
  readonly fetchedRules: RuleReader;
  readonly stored: ContentSource;
  /** The redirects that come before all others; undefined without any. */
  readonly redirecting: ContentSource | undefined;
  /** The reply if no source has a page; throws as notFoundReply. */
  readonly notFound: (request: ContentRequest) => Reply;
}

/**
 * The first source that has a page replies, whatever the method is. A file, and a page rule without
 * a wildcard, are also found by their path with more slashes; a wildcard matches them as they are.
 */
function sourcesOf(parts: SiteParts, all: Precedence): SiteSources {
  const { rules, disk, redirects, mountRedirects, rewriter, access } = parts;
  const files = diskSource(disk);
  const isExact = (request: PageRequest): boolean => isExactRule(rules, request);
  const stored = storedSource(parts, untilChange(parts, all));
  const fetchedRules = withConfiguredRules(rules, parts.proxies);
  const before = [
    withSlashRedirect(files, (single) => files.explain(single, 0).reply !== undefined),
    withSlashRedirect(stored, (single, request) => isExact(single) && !isExact(request)),
    withSlashRedirect(fetchedSource({ ...parts, rules: fetchedRules }), () => false),
  ];
  const last = fallbackSource(disk);
  // A path inside is no longer redirected by the lines that led to it.
  const inside = guardedPrecedence(
    access,
    precedenceOf(() => [...before, last]),
  );
  const after = precedenceOf(() => [last]);
  const others = mountRedirects.flatMap(({ others: list }) => list ?? []);
  const withLines = redirectSource({
    ...{ name: 'fallback', lists: others, after },
    inside: untilChange(parts, inside),
  });
  const content = [...before, ...(others.length === 0 ? [] : [withLines]), last];
  const contentOrder = guardedPrecedence(
    access,
    precedenceOf(() => content),
  );
  const behind = rewriter.isEmpty ? content : [rewriteSource(rewriter, contentOrder), ...content];
  const forced = mountRedirects.flatMap(({ forced: list }) => list ?? []);
  const answering = {
    ...{ rules, content: inside, others },
    before: [...redirects.map((listFor) => listFor(() => false)), ...forced],
  };
  const hasPage = (other: PageRequest, request: PageRequest): boolean =>
    answersOther(answering, other, request);
  const lists = [...redirects.map((listFor) => listFor(hasPage)), ...forced];
  const redirecting = redirectSource({
    ...{ name: 'redirect', lists },
    after: precedenceOf(() => behind),
    inside: untilChange(parts, contentOrder),
  });
  return {
    sources: lists.length === 0 ? behind : [redirecting, ...behind],
    ...{ fetchedRules, stored, redirecting: lists.length === 0 ? undefined : redirecting },
    // A redirect may be for some visitors only. A rule replies or fails, so there is none here, and
    // files and rewrites depend on the URL alone.
    notFound: ({ method }) => notFoundReply(method, lists.length + others.length === 0),
  };
}

/** Site.forwardsUpgrade. */
function forwardsUpgrade(
  { rewriter }: Pick<SiteParts, 'rewriter'>,
  rules: RuleReader,
  request: Parameters<Site['forwardsUpgrade']>[0],
): boolean {
  const target = rewriter.find(request)?.target;
  const found = findRule('content.fetch', rules, { ...request, ...target });
  return found !== undefined && passesUpgrade(found.stored.rule, request);
}

/** What decides about a request for another protocol. */
type UpgradeParts = Pick<SiteParts, 'access' | 'fetch' | 'rewriter' | 'rules'> &
  Pick<SiteSources, 'fetchedRules' | 'stored' | 'redirecting'>;

/**
 * Asks the source of the matching rule for another protocol, by the rewritten path if there is one.
 * It rejects as Site.upgrade.
 */
async function upgradeRewritten(
  parts: UpgradeParts,
  request: ContentRequest,
): Promise<SwitchedProtocol | Reply> {
  const { access, rewriter, redirecting } = parts;
  const elsewhere = await redirecting?.respond(request, 0);
  if (elsewhere !== undefined) return elsewhere;
  const upgrade = (admitted: ContentRequest) => upgradeBy(parts, admitted);
  const target = rewriter.find(request)?.target;
  if (target === undefined) return upgrade(request);
  return guardedReply(access, { request: { ...request, ...target }, depth: 0 }, upgrade);
}

/** Asks the source of the matching rule for another protocol; rejects as Site.upgrade. */
async function upgradeBy(
  { access, fetch, rules, fetchedRules, stored }: UpgradeParts,
  request: ContentRequest,
): Promise<SwitchedProtocol | Reply> {
  const page = findRule('stored', rules, request)?.stored.rule;
  const refusal = page && leadsOrRefuses(page) ? await stored.respond(request, 0) : undefined;
  if (refusal !== undefined) return refusal;
  const rule = findRule('content.fetch', fetchedRules, request)?.stored.rule;
  if (rule === undefined) throw new Failure('not_found', 'There is no websocket here.');
  return guardedRule(access, rule, { request, depth: 0 }, async (admitted) => {
    try {
      return await fetch.upgrade(rule, admitted);
    } catch (thrown) {
      throw failureOf(rule, thrown);
    }
  });
}

/** Whether a page rule is there to keep visitors from what lies behind it. */
function leadsOrRefuses({ kind, httpresponse = 200 }: Rule): boolean {
  return kind === 'resolve' || httpresponse >= 300;
}

/** Resolves a key whose client may see it, and all keys that it leads over. */
function resolveGuarded(
  { access, rules }: Pick<SiteParts, 'access' | 'rules'>,
  visit: Parameters<SiteAccess['resolve']>[0],
): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb> {
  const { key, origin, client } = visit;
  const over = (resolved: ResolvedBreadcrumb): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb> => {
    const isOpen = resolved.hops.every(({ stored }) => accessOf(stored.rule) === undefined);
    if (access === undefined && isOpen) return resolved;
    const hops = { resolved, origin, isFirstAdmitted: false };
    return requireHops(access, hops, client).then(() => resolved);
  };
  const resolve = (): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb> => {
    const resolved = resolveKey(rules, visit);
    return resolved instanceof Promise ? resolved.then(over) : over(resolved);
  };
  if (access === undefined) return resolve();
  const admit = async (): Promise<void> => {
    await requireAccess(access, { origin, path: key }, client);
  };
  return admit().then(resolve);
}

/** Explains resolveGuarded. */
function explainGuarded(
  { access, rules }: Pick<SiteParts, 'access' | 'rules'>,
  visit: Parameters<SiteAccess['explainKey']>[0],
): Explanation {
  const { key, origin, visitor } = visit;
  const steps: BreadcrumbHop[] = [];
  const explained = explainKey(rules, visit, steps);
  const over = steps.map(({ stored: { rule } }) => rule);
  const named = explainRuleAccess(access, over, visitor);
  const both = { ...explained, ...(named.length > 0 && { access: named }) };
  return withAccess(access, { origin, path: key, visitor }, both);
}

/**
 * Answers of another path than that of the request, which caches may use until another page rule
 * answers there: the request's own path does not show that.
 */
function untilChange(parts: SiteParts, order: Precedence): Precedence {
  const { rules } = parts;
  return {
    explain: (request, depth) => order.explain(request, depth),
    respond(request, depth) {
      // Asked first: a rule may cease to answer while its answer is made.
      if (!rules.hasComing()) return order.respond(request, depth);
      const nowMs = rules.nowMs();
      const limited = (reply: Reply | undefined): Reply | undefined => {
        const endMs = nextChangeMs(parts, request, nowMs);
        return reply === undefined || endMs === undefined
          ? reply
          : limitFreshness(reply, { endMs, nowMs });
      };
      const answer = order.respond(request, depth);
      return answer instanceof Promise ? answer.then(limited) : limited(answer);
    },
  };
}

/** SiteAccess.nextChangeMs. */
function nextChangeMs(
  { rules, rewriter }: Pick<SiteParts, 'rules' | 'rewriter'>,
  target: RequestTarget,
  afterMs: number,
): number | undefined {
  const rewritten = rewriter.find(target)?.target;
  const times = [target, ...(rewritten === undefined ? [] : [rewritten])]
    .flatMap((place) => candidatesFor(rules.anyTime, place))
    .flatMap(({ validity }) => {
      if (validity === undefined || validity === 'waits') return [];
      return [validity.fromMs, validity.untilMs].filter(
        (one) => one !== undefined && one > afterMs,
      );
    });
  return times.length === 0 ? undefined : Math.min(...(times as number[]));
}

/** Whether a page rule without a wildcard answers a request. */
function isExactRule(rules: RuleReader, request: PageRequest): boolean {
  const found = findRule('stored', rules, request);
  return found !== undefined && found.capture === undefined;
}

/** The past answers of other servers are not stored, and their present ones would mislead. */
const refuseFetch: Fetcher['respond'] = () =>
  Promise.reject(
    new Failure(
      'unprocessable',
      'This page comes from another server, whose past answers are not stored.',
    ),
  );
