import { Failure } from '../model/failure.ts';
import type { Explanation } from '../model/explanation.ts';
import type { FoundRule, Resolution } from '../model/found.ts';
import type { StoredRule } from '../model/rule.ts';
import type { FieldList, Reply } from '../http/reply.ts';
import type { ContentRequest, Fields } from '../http/request.ts';
import { explainKey } from '../breadcrumbs/explain.ts';
import { breadcrumbReply, cachingFields, resolutionData } from '../breadcrumbs/reply.ts';
import { diskSource, fallbackSource } from '../static/disk-sources.ts';
import type { Disk, FailedRequest } from '../static/disk.ts';
import { explainFrom } from './explain.ts';
import type { Fetcher, OpenedWebsocket } from '../proxy/fetcher.ts';
import { findRule } from '../rules/find.ts';
import type { GenericPages } from '../pages/generic-pages.ts';
import type { CandidateReads } from '../rules/matcher.ts';
import { resolveKey, type Resolved, type Visit } from '../breadcrumbs/resolve.ts';
import { failureOf, fetchedSource, storedSource } from './rule-sources.ts';
import type { RuleReader } from '../rules/rule-cache.ts';
import {
  type ReplyOrPromise,
  notFoundReply,
  type PageRequest,
  type ContentSource,
} from '../rules/source.ts';
import type { StoredPages } from '../pages/stored-pages.ts';

/** What the site's sources are made of. */
interface SiteParts {
  readonly rules: RuleReader;
  readonly disk: Disk;
  readonly stored: StoredPages;
  readonly generic: GenericPages;
  readonly fetch: Fetcher;
}

/**
 * The site under one configuration: serving, the get operations, explain and tests all ask it, and
 * it has one precedence.
 */
export interface Site {
  /**
   * The answer to a request for content. Throws or rejects with `not_found` when no source has it,
   * `method_not_allowed` when the source that has it does not take the method, and with what the
   * source itself fails with.
   */
  respond(request: ContentRequest): Reply | Promise<Reply>;
  /**
   * Opens the websocket that a request asks for, by the content.fetch rule that covers its path,
   * whatever else is there: nothing else can. Resolves to what the source answers instead; rejects
   * as Fetch.open, and with `not_found` where there is no such rule.
   */
  openWebsocket(request: ContentRequest): Promise<OpenedWebsocket | Reply>;
  /** The site's own page for a failure, with its status; undefined where it has none. */
  errorPage(status: number, failed: FailedRequest): Promise<Reply | undefined>;
  /** The rule that answers an origin and path if no file does; undefined when there is none. */
  findRule(asked: {
    readonly origin: string;
    readonly path: string;
    readonly fields: Fields;
  }): FoundRule | undefined;
  /** What a breadcrumb's key comes to; fails as resolveKey does. */
  resolve(asked: Visit & { readonly key: string }): Resolved | Promise<Resolved>;
  /** The HTTP answer to a visitor of a breadcrumb. */
  breadcrumb(resolved: Resolved, visit: Visit): Reply;
  /** What get_resolve answers of a breadcrumb, and what it tells caches. */
  breadcrumbData(resolved: Resolved): { readonly data: Resolution; readonly caching: FieldList };
  /** How respond would answer, and why: reads only, and asks no other server. */
  explain(asked: PageRequest): Explanation;
  /** How a breadcrumb's key would be answered. */
  explainKey(asked: Visit & { readonly key: string }): Explanation;
  /** The same sources over page rules of another moment. */
  at(rules: CandidateReads & { rule(id: string): StoredRule | undefined }): Site;
}

/** Puts the sources of content together. */
export function createSite(parts: SiteParts): Site {
  const { rules, disk } = parts;
  // THE precedence (docs/design/requests.md#precedence): the first source that has a page answers,
  // whatever the method.
  const sources: readonly ContentSource[] = [
    diskSource(disk),
    storedSource(parts, {
      respond: (request, opened) => respondFrom(sources, request, opened),
      explain: (asked, opened) => explainFrom(sources, asked, opened),
    }),
    fetchedSource(parts),
    fallbackSource(disk),
  ];
  return {
    respond(request) {
      const answer = respondFrom(sources, request, 0);
      if (!(answer instanceof Promise)) return answer ?? notFoundReply(request.method);
      return answer.then((reply) => reply ?? notFoundReply(request.method));
    },
    async openWebsocket(request) {
      const rule = findRule('content.fetch', rules, request)?.stored.rule;
      if (rule === undefined) throw new Failure('not_found', 'There is no websocket here.');
      try {
        return await parts.fetch.openWebsocket(rule, request);
      } catch (thrown) {
        throw failureOf(rule, thrown);
      }
    },
    errorPage: (status, failed) => disk.errorPage(status, failed),
    findRule: (asked) =>
      findRule('stored', rules, asked) ?? findRule('content.fetch', rules, asked),
    resolve: (asked) => resolveKey(rules, asked),
    breadcrumb: breadcrumbReply,
    breadcrumbData: (resolved) => ({
      data: resolutionData(resolved),
      caching: cachingFields(resolved),
    }),
    explain: (asked) => explainFrom(sources, asked, 0),
    explainKey: (asked) => explainKey(rules, asked),
    at: (past) =>
      createSite({
        ...parts,
        fetch: { ...parts.fetch, respond: refuseFetch },
        rules: {
          exactRules: (origin, path) => past.exactRules(origin, path),
          wildcardRules: (origin, path) => past.wildcardRules(origin, path),
          ruleOf: ({ id }) => past.rule(id),
        },
      }),
  };
}

/**
 * Asks the sources in their order, and waits only for those that have to wait themselves. `opened`
 * counts the generic pages that the request has come through.
 */
function respondFrom(
  sources: readonly ContentSource[],
  request: ContentRequest,
  opened: number,
  first = 0,
): ReplyOrPromise {
  for (let at = first; at < sources.length; at += 1) {
    const answer = sources[at]?.respond(request, opened);
    if (answer instanceof Promise) {
      return answer.then((reply) => reply ?? respondFrom(sources, request, opened, at + 1));
    }
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** What another server answered then nobody knows; what it would answer now is not asked for. */
const refuseFetch: Fetcher['respond'] = () =>
  Promise.reject(
    new Failure('unprocessable', 'This page was fetched from another server, and not kept.'),
  );
