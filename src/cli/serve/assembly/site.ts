import type { ErrorPages } from '../../../core/pipeline/source.ts';
import { type Pipeline, type Step, createPipeline } from '../../../core/pipeline/pipeline.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { AccessGuard } from '../../../modules/access/access-guard.ts';
import { createPlaceAccess } from '../../../modules/access/place-access.ts';
import { accessStep } from '../../../modules/access/step.ts';
import type { AssetPages } from '../../../modules/assets/asset-pages.ts';
import { type AssetReader, createAssetReader } from '../../../modules/assets/asset.ts';
import { assetKind } from '../../../modules/assets/page-kind.ts';
import { explainRender } from '../../../modules/breadcrumbs/explain.ts';
import { breadcrumbKind } from '../../../modules/breadcrumbs/page-kind.ts';
import { createBreadcrumbVisits } from '../../../modules/breadcrumbs/key-visits.ts';
import type { CountVisit } from '../../../modules/breadcrumbs/visit-counter.ts';
import type { Disk } from '../../../modules/files/disk.ts';
import { diskStep, fallbackStep, hasFile } from '../../../modules/files/steps.ts';
import { fetchStep } from '../../../modules/proxy/fetch-step.ts';
import type { Fetcher } from '../../../modules/proxy/fetcher.ts';
import type { MountRedirects, RedirectsOfSite } from '../../../modules/redirects/redirect-lists.ts';
import { redirectSteps } from '../../../modules/redirects/redirect-step.ts';
import { type Rewriter, rewriteStep } from '../../../modules/redirects/rewrite-step.ts';
import { type RenderedPages, mayRender } from '../../../modules/rendering/rendered-pages.ts';
import { withConfiguredRules } from '../../../modules/rules/configured-rules.ts';
import { findRule } from '../../../modules/rules/find.ts';
import { freshnessStep } from '../../../modules/rules/pages/freshness-step.ts';
import type { GenericPages } from '../../../modules/rules/pages/generic-pages.ts';
import { contentKind, genericKind } from '../../../modules/rules/pages/page-kind.ts';
import { storedStep } from '../../../modules/rules/pages/stored-step.ts';
import type { StoredPages } from '../../../modules/rules/pages/stored-pages.ts';
import { type Rule, proxyName } from '../../../modules/rules/rule.ts';
import type { RowReader, SiteAccess } from '../../../modules/rules/site-access.ts';
import { type RuleReader, rulesAtTime } from '../../../modules/rules/valid-rules.ts';

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
  /** Decides who may have an answer; undefined without access rules. */
  readonly access: AccessGuard | undefined;
  /** The steps that do not depend on the page rules of a moment. */
  readonly steps: readonly Step[];
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
 * that there is only one order of steps.
 */
export interface Site extends Pipeline, SiteAccess, ErrorPages {}

/** Creates a site. */
export function createSite(parts: SiteParts): Site {
  const { rules, disk } = parts;
  const access = createPlaceAccess(parts.access);
  const fetchedRules = withConfiguredRules(rules, parts.proxies);
  const pipeline = createPipeline((inside) => [
    accessStep(parts.access),
    ...parts.steps,
    ...redirectSteps({ ...parts, inside }),
    ...(parts.rewriter.isEmpty ? [] : [rewriteStep(parts.rewriter, inside)]),
    diskStep(disk),
    storedStep({
      ...{ rules, access, explainBranches: explainRender },
      kinds: [
        breadcrumbKind({ ...parts, access }),
        assetKind(parts.assets, parts.assetPages),
        contentKind(parts.stored),
        genericKind(parts.generic, inside, {
          mayRender,
          render: (found, request, open) =>
            parts.rendered.respond(found, request, { open, rows: parts.pageRows }),
        }),
      ],
    }),
    fetchStep({ ...parts, rules: fetchedRules, access }),
    fallbackStep(disk),
    freshnessStep(rules),
  ]);
  return {
    ...pipeline,
    ...createBreadcrumbVisits(rules, access),
    access,
    errorPage: (status, failed) => disk.errorPage(status, failed),
    findRule(request) {
      const found =
        findRule('stored', rules, request) ?? findRule('content.fetch', fetchedRules, request);
      // A proxy is no page rule, and hides those with a shorter path.
      const isProxy = found !== undefined && proxyName(found.stored.rule.id) !== undefined;
      return isProxy ? undefined : found;
    },
    hasFile: (request) => hasFile(disk, request),
    namesBelow: (place, caller) => disk.namesBelow(place, caller),
    mountOrigins: [...new Set(disk.mounts.map(({ origin }) => origin))],
    withRows: (pageRows, timeMs) =>
      createSite({
        ...parts,
        countVisit: undefined,
        pageRows,
        rules: timeMs === undefined ? rules : rulesAtTime(rules, timeMs),
      }),
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

/** The past answers of other servers are not stored, and their present ones would mislead. */
const refuseFetch: Fetcher['respond'] = () =>
  Promise.reject(
    new Failure(
      'unprocessable',
      'This page comes from another server, whose past answers are not stored.',
    ),
  );
