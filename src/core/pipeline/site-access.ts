import type { Reads } from '../log/store.ts';
import type { BranchOutcome } from '../../modules/breadcrumbs/branches.ts';
import type { BreadcrumbVisit, ResolvedBreadcrumb } from '../../modules/breadcrumbs/resolve.ts';
import type { FieldList, Reply } from '../http/reply.ts';
import type { AccessClient, ContentRequest, Fields, RequestTarget } from '../http/request.ts';
import type { Explanation } from './explanation.ts';
import type { CanonicalPath } from '../values/path.ts';
import type { FoundRule, Resolution } from '../../modules/rules/rule.ts';
import type { Rule, StoredRule } from '../../modules/rules/rule.ts';
import type { RowReader } from '../../modules/rendering/rendered-pages.ts';
import type { CandidateReads } from '../../modules/rules/matcher.ts';
import type { PageRequest } from './source.ts';
import type { Disk, FailedRequest } from '../../modules/files/disk.ts';

/** A breadcrumb's key, with its visit. */
export interface KeyVisit extends BreadcrumbVisit {
  readonly key: string;
  /** The method of the request; GET by default. */
  readonly method?: string;
}

/** The functions of the site that operations call: the same ones that answer visitors. */
export interface SiteAccess {
  /**
   * The reply to a request for content. Throws or rejects with `not_found` if no source has the
   * page, with `method_not_allowed` if the source does not allow the method, and with the source's
   * own failures.
   */
  respond(request: ContentRequest): Reply | Promise<Reply>;
  /** The site's own error page for a failure, with its status; undefined if it has none. */
  errorPage(status: number, failed: FailedRequest): Promise<Reply | undefined>;
  /** The rule that replies at an origin and path if no file does; undefined if there is none. */
  findRule(place: {
    readonly origin: string;
    readonly path: CanonicalPath;
    readonly fields: Fields;
  }): FoundRule | undefined;
  /**
   * Requires that the access rules of the ini file let a client see a place. Throws or rejects with
   * `unauthenticated`, `forbidden`, `rate_limited` or `unavailable`; undefined if nothing takes
   * time.
   */
  requireAccess(
    place: {
      readonly origin: string;
      readonly path: CanonicalPath;
      readonly query?: string;
    },
    client: AccessClient,
  ): Promise<void> | undefined;
  /** The same for the access section that the page rule names which answers at a place. */
  requireRuleSection(
    rule: Rule,
    ...asked: Parameters<SiteAccess['requireAccess']>
  ): Promise<void> | undefined;
  /**
   * Resolves a breadcrumb's key. Fails with `not_found` for an unknown key, with `unprocessable`
   * for keys that lead in a circle, and as requireAccess for the keys that it leads over.
   */
  resolve(
    visit: KeyVisit & { readonly client: AccessClient },
  ): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb>;
  /** The HTTP reply to a visitor of a breadcrumb, with the fields of its rule and branches. */
  breadcrumb(resolved: ResolvedBreadcrumb, visit: KeyVisit): Reply | Promise<Reply>;
  /** The data of get_resolve for a breadcrumb, and the fields for caches. */
  breadcrumbData(
    resolved: ResolvedBreadcrumb,
    visit: KeyVisit,
  ): Promise<{ readonly data: Resolution; readonly caching: FieldList }>;
  /**
   * What each branch answers of the breadcrumb with a key, or of the resolve rule that answers at
   * an origin and path if no file does; none without such a rule.
   */
  branches(
    place: { readonly key: string } | Pick<RequestTarget, 'origin' | 'path'>,
    visit: BreadcrumbVisit,
  ): readonly BranchOutcome[];
  /** Explains respond; reads only, and sends no request to another server. */
  explain(request: PageRequest): Explanation;
  /** Whether a mount has a file or a folder there. */
  hasFile(request: PageRequest): boolean;
  /** Explains resolve. */
  explainKey(visit: KeyVisit): Explanation;
  /** The files and folders of the mounts directly below a path. */
  readonly namesBelow: Disk['namesBelow'];
  /** The origins of the mounts, `*` among them. */
  readonly mountOrigins: readonly string[];
  /**
   * The same site with the page rules of another moment that answer at a time (milliseconds since
   * 1970), and the rows that its pages show then; files and sources are those of now.
   */
  at(
    rules: CandidateReads & Pick<Reads, 'rowByKey'> & { rule(id: string): StoredRule | undefined },
    rows: RowReader,
    timeMs: number,
  ): SiteAccess;
  /**
   * The same site whose pages show the rows of another reader; with the rules that answer at a time
   * in milliseconds since 1970, by default now.
   */
  withRows(rows: RowReader, timeMs?: number): SiteAccess;
  /** Whether a page rule begins or ceases to answer in the future. */
  hasComingChanges(): boolean;
  /**
   * The next time after another one at which another page rule may answer a target, also by its
   * rewritten path, in milliseconds since 1970; undefined for none.
   */
  nextChangeMs(target: RequestTarget, afterMs: number): number | undefined;
}
