import { type Reply, withVary } from '../../../core/http/reply.ts';
import { type ContentRequest, type Fields, isRead } from '../../../core/http/request.ts';
import type { Precedence } from '../../../core/pipeline/precedence.ts';
import {
  type ContentSource,
  type ExpectedReply,
  type ExplainedReply,
  type ReplyOrPromise,
  explainReadOnly,
  optionsReply,
  readOnlyReply,
  replyOrFailure,
} from '../../../core/pipeline/source.ts';
import { type Failure, failureFrom } from '../../../core/values/failure.ts';
import type { AccessGuard } from '../../access/access-guard.ts';
import { explainRuleAccess, guardedRule, requireHops } from '../../access/guarded.ts';
import type { AssetPages } from '../../assets/asset-pages.ts';
import type { Asset, AssetReader } from '../../assets/asset.ts';
import { renderWhenOf } from '../../breadcrumbs/branches.ts';
import { explainHops, explainRender, withBranches } from '../../breadcrumbs/explain.ts';
import { visitReply } from '../../breadcrumbs/reply.ts';
import {
  type BreadcrumbHop,
  type ResolvedBreadcrumb,
  resolveVisit,
} from '../../breadcrumbs/resolve.ts';
import type { CountVisit } from '../../breadcrumbs/visit-counter.ts';
import { allowedMethods, forwardsMethod } from '../../proxy/fetch-plan.ts';
import type { Fetcher } from '../../proxy/fetcher.ts';
import { type RenderedPages, type RowReader, mayRender } from '../../rendering/rendered-pages.ts';
import {
  candidatesOf,
  explainCandidates,
  explainSilent,
  findRule,
  silentCandidatesOf,
  winnerOf,
} from '../find.ts';
import {
  type FoundRule,
  type Rule,
  type StoredRule,
  accessOf,
  proxyName,
  ruleName,
} from '../rule.ts';
import type { RuleReader } from '../valid-rules.ts';
import type { GenericPages } from './generic-pages.ts';
import { withHeaderNote, withRuleHeaders } from './rule-headers.ts';
import { type StoredPages, pageStatus } from './stored-pages.ts';

/** The rule that replies, and how. */
interface FoundReply {
  readonly found: FoundRule;
  readonly kind: Exclude<ReturnType<typeof replyKindOf>, 'none'>;
}

interface StoredParts {
  readonly rules: RuleReader;
  readonly stored: StoredPages;
  readonly assets: AssetReader;
  readonly assetPages: Pick<AssetPages, 'respondFor'>;
  readonly generic: GenericPages;
  readonly rendered: RenderedPages;
  readonly pageRows: RowReader;
  readonly access: AccessGuard | undefined;
  /** Counts the visits of breadcrumbs; undefined for requests of operations. */
  readonly countVisit?: CountVisit | undefined;
}

/**
 * All page rules except content.fetch. They answer for every method, so that a POST cannot reach
 * another page than the GET of the same URL.
 */
export function storedSource(
  parts: StoredParts,
  /** The whole precedence, which a generic page uses to find its page. */
  precedence: Precedence,
): ContentSource {
  const { rules, generic, access } = parts;
  const replyOf = storedReplies(parts, precedence);
  return {
    name: 'stored',
    respond(request, depth) {
      const found = findRule('stored', rules, request);
      if (found === undefined) return undefined;
      const kind = replyKindOf(found.stored, depth);
      if (kind === 'none') return undefined;
      return guardedRule(access, found.stored.rule, { request, depth }, (admitted) =>
        replyOf({ found, kind }, admitted, depth),
      );
    },
    explain(request, depth) {
      const ordered = candidatesOf('stored', rules, request);
      const found = winnerOf(ordered, rules, request);
      const kind = found === undefined ? 'none' : replyKindOf(found.stored, depth);
      const silent = explainSilent(silentCandidatesOf('stored', rules, request), rules);
      if (found === undefined || kind === 'none') return { candidates: silent, reply: undefined };
      const steps: BreadcrumbHop[] = [];
      const decide = (): ExplainedReply => {
        if (!isRead(request.method)) return explainReadOnly(request.method);
        switch (kind) {
          case 'breadcrumb':
            return explainHops(rules, found, request, steps);
          case 'generic':
            return withRendering(
              found,
              generic.explain(found, request, (page) => precedence.explain(page, depth + 1)),
            );
          case 'page':
            return { status: pageStatus(found.stored.rule) };
          case 'asset':
            return explainAsset(found, assetOf(parts, found));
        }
      };
      const explained = explainedReply(found, replyOrFailure(decide), request);
      const over = [found.stored, ...steps.map((step) => step.stored)].map(({ rule }) => rule);
      const reply = { ...explained, ...accessNamed(access, over, request) };
      const { candidates, ...omitted } = explainCandidates(ordered, request.fields);
      const { branches } = reply;
      const named = branches === undefined ? candidates : withBranches(candidates, branches);
      return { candidates: [...named, ...silent], ...omitted, reply };
    },
  };
}

/** Creates the replies of found rules to requests that have access to them. */
function storedReplies(
  parts: StoredParts,
  precedence: Precedence,
): (reply: FoundReply, request: ContentRequest, depth: number) => ReplyOrPromise {
  const { rules, stored, generic, rendered, pageRows, access, countVisit } = parts;
  return ({ found, kind }, request, depth) => {
    const steps: BreadcrumbHop[] = [];
    const last = (): Rule => (steps.at(-1)?.stored ?? found.stored).rule;
    const answer = withRuleFailure(failWith(last), () => {
      if (!isRead(request.method)) return readOnlyReply(request.method);
      switch (kind) {
        case 'breadcrumb': {
          const resolved = withHops(access, resolveVisit(rules, found, request, steps), request);
          return withLanguageVary(found, replyTo(resolved, request, countVisit));
        }
        case 'generic': {
          const open = (page: ContentRequest) => precedence.respond(page, depth + 1);
          const page = (given: ContentRequest) => generic.respond(found, given, open);
          if (!mayRender(found.stored.rule)) return withLanguageVary(found, page(request));
          return withLanguageVary(
            found,
            rendered.respond(found, request, { open: page, rows: pageRows }),
          );
        }
        case 'page':
          return stored.respond(found, request);
        case 'asset':
          return assetReply(parts, found, request);
      }
    });
    // The reply of a breadcrumb has them already, before those of its branches.
    const hasFields = kind === 'breadcrumb' && isRead(request.method);
    return hasFields ? answer : withRuleHeaders(found.stored.rule, answer, request);
  };
}

/** The page rules of the kind content.fetch, and proxies, which may allow any method. */
export function fetchedSource({
  rules,
  fetch,
  access,
}: {
  readonly rules: RuleReader;
  readonly fetch: Fetcher;
  readonly access: AccessGuard | undefined;
}): ContentSource {
  return {
    name: 'content.fetch',
    respond(asked, depth) {
      const found = findRule('content.fetch', rules, asked);
      if (found === undefined) return undefined;
      const { rule } = found.stored;
      const fail = failWith(() => rule);
      return guardedRule(access, rule, { request: asked, depth }, (request) => {
        const answer = withRuleFailure(fail, () => {
          if (!isForwarded(rule, request.method)) return optionsReply(allowedMethods(rule));
          return withLanguageVary(found, fetch.respond(rule, request));
        });
        return withRuleHeaders(rule, answer, request);
      });
    },
    explain(request) {
      const ordered = candidatesOf('content.fetch', rules, request);
      const rule = winnerOf(ordered, rules, request)?.stored.rule;
      const silent = explainSilent(silentCandidatesOf('content.fetch', rules, request), rules);
      if (rule === undefined) return { candidates: silent, reply: undefined };
      const outcome = replyOrFailure((): ExpectedReply => {
        if (!isForwarded(rule, request.method)) return { status: 204 };
        return fetch.explain(rule, request);
      });
      const { candidates, ...omitted } = explainCandidates(ordered, request.fields);
      const proxy = proxyName(rule.id);
      const named = proxy === undefined ? { id: rule.id } : { proxy };
      const reply = {
        ...{ ...named, ...withHeaderNote(rule, outcome) },
        ...accessNamed(access, [rule], request),
      };
      return { candidates: [...candidates, ...silent], ...omitted, reply };
    },
  };
}

/** The part of an explained reply about the access sections that its page rules name. */
function accessNamed(
  guard: AccessGuard | undefined,
  rules: readonly Rule[],
  { visitor }: Parameters<ContentSource['explain']>[0],
): Pick<ExplainedReply, 'access'> {
  const access = explainRuleAccess(guard, rules, visitor);
  return access.length === 0 ? {} : { access };
}

function explainedReply(
  { stored }: FoundRule,
  expected: ExplainedReply,
  request: Parameters<ContentSource['explain']>[0],
): ExplainedReply {
  const renderWhen = renderWhenOf(stored);
  return {
    id: stored.rule.id,
    ...withHeaderNote(stored.rule, expected),
    ...(renderWhen && { branches: explainRender(renderWhen, stored, request) }),
  };
}

/** The asset that a rule refers to; undefined if it does not exist. */
function assetOf(
  { assets }: Pick<StoredParts, 'assets'>,
  { stored }: FoundRule,
): Asset | undefined {
  return assets.asset(stored.rule.asset ?? '');
}

function assetReply(parts: StoredParts, found: FoundRule, request: ContentRequest): ReplyOrPromise {
  return parts.assetPages.respondFor({ ...found, asset: assetOf(parts, found) }, request);
}

function explainAsset({ stored: { rule } }: FoundRule, asset: Asset | undefined): ExpectedReply {
  if (asset !== undefined) return { status: pageStatus(rule) };
  return { status: 404, notes: [`There is no asset ${JSON.stringify(rule.asset ?? '')}.`] };
}

/** Adds that the server renders a page; `enginedata.when` may decide otherwise for a visitor. */
function withRendering({ stored }: FoundRule, expected: ExpectedReply): ExpectedReply {
  if (stored.rule.engine !== 'template' || stored.rule.enginedata?.render !== 'server') {
    return expected;
  }
  return { ...expected, notes: [...(expected.notes ?? []), 'The server renders its template.'] };
}

/** A failure with the name of its rule as its source, as in a reply of the rule. */
export function failureOf({ id }: Rule, thrown: unknown): Failure {
  return failureFrom(thrown).of(ruleName(id));
}

/** Throws a failure as that of a rule. */
function failWith(rule: () => Rule): (thrown: unknown) => never {
  return (thrown) => {
    throw failureOf(rule(), thrown);
  };
}

/** The reply of a rule; a failure goes through `fail`. */
function withRuleFailure(
  fail: (thrown: unknown) => never,
  respond: () => ReplyOrPromise,
): ReplyOrPromise {
  try {
    const answer = respond();
    return answer instanceof Promise ? answer.catch(fail) : answer;
  } catch (thrown) {
    return fail(thrown);
  }
}

/** Adds Vary if Accept-Language has chosen the rule (RFC 9110 §12.5.5). */
function withLanguageVary(
  { variesByLanguage }: FoundRule,
  answer: Reply | Promise<Reply>,
): ReplyOrPromise {
  if (!variesByLanguage) return answer;
  return answer instanceof Promise ? answer.then(addLanguageVary) : addLanguageVary(answer);
}

function addLanguageVary(reply: Reply): Reply {
  return { ...reply, fields: withVary(reply.fields, 'Accept-Language') };
}

/** Requires access to the further keys that a breadcrumb leads over. */
function withHops(
  access: AccessGuard | undefined,
  resolved: ResolvedBreadcrumb | Promise<ResolvedBreadcrumb>,
  request: ContentRequest,
): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb> {
  if (resolved instanceof Promise) return resolved.then((one) => withHops(access, one, request));
  const [, ...others] = resolved.hops;
  const isOpen = others.every(({ stored: { rule } }) => accessOf(rule) === undefined);
  if (others.length === 0 || (access === undefined && isOpen)) return resolved;
  const { origin, visitor, accessRules, password } = request;
  const fields = password === undefined ? request.fields : withPassword(request.fields, password);
  const { client = { fields, visitor, isForeign: false } } = request;
  const over = { resolved, origin, isFirstAdmitted: true };
  return requireHops(access, over, client, accessRules).then(() => resolved);
}

/** The fields of a client, as it has sent them to this server. */
function withPassword(fields: Fields, authorization: string): Fields {
  const all = Object.create(null) as Record<string, string | undefined>;
  return Object.assign(all, fields, { authorization });
}

function replyTo(
  resolved: ResolvedBreadcrumb | Promise<ResolvedBreadcrumb>,
  request: ContentRequest,
  countVisit: CountVisit | undefined,
): Reply | Promise<Reply> {
  if (resolved instanceof Promise) return resolved.then((one) => replyTo(one, request, countVisit));
  if (request.method === 'GET') countVisit?.(resolved, request);
  return visitReply(resolved, request);
}

/**
 * How a rule replies: as a breadcrumb, with its own content, with the file of an asset, or, with an
 * engine or a record to edit and no content, with a generic page. A generic page cannot show
 * another generic page, because that could be endless.
 */
function replyKindOf(
  { rule }: StoredRule,
  depth: number,
): 'breadcrumb' | 'page' | 'asset' | 'generic' | 'none' {
  if (rule.kind === 'resolve') return 'breadcrumb';
  if (rule.content !== undefined) return 'page';
  if (rule.kind === 'content' && rule.asset !== undefined) return 'asset';
  if (rule.kind === 'content' && !usesEngine(rule)) return 'page';
  return depth > 0 ? 'none' : 'generic';
}

/** Whether a method is forwarded: this server answers OPTIONS itself, unless the rule lists it. */
function isForwarded(rule: Rule, method: string): boolean {
  return method !== 'OPTIONS' || forwardsMethod(rule, method);
}

/** Also true for an unknown engine: its generic page explains the mistake and is never blank. */
function usesEngine({ engine, _unknowns_ }: Rule): boolean {
  return engine !== undefined || typeof _unknowns_?.engine === 'string';
}
