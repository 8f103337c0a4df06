import { plainGetFields, withoutCaching } from '../../core/http/content/content.ts';
import { type Reply, changedReply, noBody, withVary } from '../../core/http/reply.ts';
import { type ContentRequest, type RequestTarget, isRead } from '../../core/http/request.ts';
import { type Visitor, needsLocation } from '../../core/http/visitor.ts';
import {
  type CandidateExplanation,
  type Explanation,
  type LossReason,
  explainCandidatesMax,
} from '../../core/pipeline/explanation.ts';
import type { InsidePaths, Step } from '../../core/pipeline/pipeline.ts';
import { explainSource } from '../../core/pipeline/source-step.ts';
import {
  type PageRequest,
  type ReplyOrPromise,
  type SourceExplanation,
  notFoundReply,
  readOnlyReply,
} from '../../core/pipeline/source.ts';
import { canonicalPath, requestPathOf } from '../../core/values/path.ts';
import { whenReady } from '../../core/values/when-ready.ts';
import { mayLeadTo } from '../breadcrumbs/resolve.ts';
import { findRule } from '../rules/find.ts';
import type { RuleReader } from '../rules/valid-rules.ts';
import type {
  MountRedirects,
  RedirectCandidate,
  RedirectList,
  RedirectsOfSite,
} from './redirect-lists.ts';

/**
 * The steps of the redirects of a site: those of the ini file and the forced lines of files, then
 * the other lines.
 */
export function redirectSteps({
  rules,
  redirects,
  mountRedirects,
  inside,
}: {
  readonly rules: RuleReader;
  /** Those of the ini file, in its order. */
  readonly redirects: readonly RedirectsOfSite[];
  /** Those beside the files of mounts. */
  readonly mountRedirects: readonly MountRedirects[];
  readonly inside: InsidePaths;
}): readonly Step[] {
  const forced = mountRedirects.flatMap(({ forced: list }) => list ?? []);
  const others = mountRedirects.flatMap(({ others: list }) => list ?? []);
  const before = [...redirects.map((listFor) => listFor(() => false)), ...forced];
  const answering = { rules, inside, others, before };
  const hasPage = (other: PageRequest, request: PageRequest): boolean =>
    answersOther(answering, other, request);
  const lists = [...redirects.map((listFor) => listFor(hasPage)), ...forced];
  const steps = [
    { at: 'redirect', lists },
    { at: 'lines', lists: others },
  ] as const;
  return steps
    .filter((step) => step.lists.length > 0)
    .map((step) => redirectStep({ ...step, inside }));
}

/** Where redirects stand in the list, and what they may lead to. */
interface RedirectParts {
  readonly at: 'redirect' | 'lines';
  readonly lists: readonly RedirectList[];
  readonly inside: Pick<InsidePaths, 'handle' | 'explain'>;
}

/**
 * Redirects of the ini file and of files beside a mount. The first one that applies to the request
 * and its visitor answers, whatever the method is. A path that a redirect leads to inside the
 * server is not redirected again by those of the same place or an earlier one.
 */
function redirectStep({ at, lists, inside: paths }: RedirectParts): Step {
  const isEarly = at === 'redirect';
  const way = isEarly ? 'rewrite' : 'line';
  const inside: ContentOfPath = {
    handle: (request) => paths.handle({ ...request, inside: way }),
    explain: (request) => paths.explain({ ...request, inside: way }),
  };
  const isAsked = ({ inside: led }: PageRequest): boolean =>
    led === undefined || (led === 'rewrite' && !isEarly);
  return {
    at,
    // Some are for visitors of a country or language.
    mayDiffer: true,
    handle(request, next) {
      const found = isAsked(request) ? candidatesFor(lists, request) : [];
      if (found.length === 0) return next(request);
      const answer = () => respondFor(found, request, { next, inside });
      const waiting = preparing(found, request);
      return waiting === undefined ? answer() : waiting.then(answer);
    },
    // The other protocol of what a redirect leads away from is no way around it.
    ...(isEarly && {
      async open(request, next) {
        const found = isAsked(request) ? candidatesFor(lists, request) : [];
        await preparing(found, request);
        const chosen = found.find((one) => lossFor(one, request.visitor) === undefined);
        const reply = chosen && (await replyOf(chosen, request, inside));
        return reply ?? next(request);
      },
    }),
    explain(request, next) {
      if (!isAsked(request)) return next(request);
      const found = lists.flatMap((list) => [...list(request)]);
      const name = isEarly ? 'redirect' : 'fallback';
      const explained = explainRedirects(found, request, inside);
      return explainSource({ name, explain: () => explained }, request, next);
    },
  };
}

/** Finds the country of a visitor for redirects that depend on it; undefined for others. */
function preparing(
  found: readonly RedirectCandidate[],
  { visitor }: ContentRequest,
): Promise<void> | undefined {
  return found.some(({ countries }) => countries.length > 0)
    ? visitor.prepare(needsLocation)
    : undefined;
}

/** The content of a path inside the server. */
type ContentOfPath = Pick<InsidePaths, 'handle' | 'explain'>;

function explainRedirects(
  found: readonly RedirectCandidate[],
  request: PageRequest,
  inside: ContentOfPath,
): SourceExplanation {
  const chosen = found.find((one) => lossFor(one, request.visitor) === undefined);
  const candidates = found.slice(0, explainCandidatesMax).map((one): CandidateExplanation => {
    const { named, origin, path } = one;
    const lost = lossFor(one, request.visitor) ?? (one === chosen ? undefined : earlier);
    return { ...named, origin, path, ...(lost && { lost }) };
  });
  const more = found.length - candidates.length;
  const shown = { candidates, ...(more > 0 && { omitted: more }) };
  if (chosen === undefined) return { ...shown, reply: undefined };
  const { named, line, status, location } = chosen;
  const isMoved = status >= 300 && status <= 399;
  const by = line === undefined ? 'It' : `Line ${line} of its file`;
  const notes = [`${by} ${isMoved ? 'redirects' : 'leads inside the server'} to ${location}.`];
  if (isMoved) return { ...shown, reply: { ...named, status, notes } };
  return { ...shown, reply: undefined, then: explainInside(chosen, request, { inside, notes }) };
}

const earlier: LossReason = {
  code: 'earlier_redirect',
  says: 'A redirect before it applies.',
};

/** What answers a path, for redirects that depend on that. */
interface AnsweringParts {
  readonly rules: RuleReader;
  /** The redirects before content, without those that depend on what answers a path. */
  readonly before: readonly RedirectList[];
  readonly inside: Pick<InsidePaths, 'explain'>;
  /** The redirects between page rules and the fallback. */
  readonly others: readonly RedirectList[];
}

/**
 * Whether a path has a page or leads on to another one, but not back to the request: a mount
 * redirects to the other form of its own paths. Whatever depends on the visitor may hold.
 */
function answersOther(
  { rules, before, inside, others }: AnsweringParts,
  other: PageRequest,
  request: PageRequest,
): boolean {
  const isBack = (location: string): boolean => isAt(location, request);
  const leadsOn = (found: readonly RedirectCandidate[]): boolean =>
    found.every(({ location }) => !isBack(location));
  const early = candidatesFor(before, other);
  if (early.length > 0) return leadsOn(early);
  // Files, page rules, and the fallback of a mount.
  const { winner } = inside.explain({ ...other, inside: 'line' });
  if (winner === null || winner.source === 'fallback') {
    const late = candidatesFor(others, other);
    return late.length > 0 ? leadsOn(late) : winner !== null;
  }
  if (winner.source === 'stored') {
    const found = findRule('stored', rules, other);
    const own = findRule('stored', rules, request);
    // A rule with a wildcard is no other form of a path that has a rule of its own.
    if (found?.capture !== undefined && (own ?? found).stored !== found.stored) return false;
    if (found?.stored.rule.kind === 'resolve') return !mayLeadTo(rules, found, other, isBack);
  }
  return winner.status === null || winner.status < 300 || winner.status > 399;
}

/** Whether a Location leads to the place of a request, whatever its query is. */
function isAt(location: string, { origin, path }: RequestTarget): boolean {
  const url = URL.parse(location, origin);
  return url?.origin === origin && canonicalPath(url.pathname) === path;
}

/** The redirects that may answer: up to the first one that is for every visitor. */
function candidatesFor(
  lists: readonly RedirectList[],
  request: PageRequest,
): readonly RedirectCandidate[] {
  const found: RedirectCandidate[] = [];
  for (const list of lists) {
    for (const one of list(request)) {
      found.push(one);
      if (one.countries.length === 0 && one.languages.length === 0) return found;
    }
  }
  return found;
}

/** Why a redirect is not for a visitor, whose location is prepared; undefined if it is. */
function lossFor(
  { countries, languages }: RedirectCandidate,
  visitor: Visitor,
): LossReason | undefined {
  const { country } = countries.length === 0 ? { country: '' } : visitor.location();
  if (countries.length > 0 && !countries.includes(country ?? '')) {
    return { code: 'other_country', says: `It is for visitors in ${countries.join(', ')}.` };
  }
  const language = languages.length === 0 ? '' : (visitor.language() ?? '');
  const isOne = (one: string): boolean => language === one || language.startsWith(`${one}-`);
  return languages.length === 0 || languages.some(isOne)
    ? undefined
    : { code: 'other_language', says: `It is for visitors who prefer ${languages.join(', ')}.` };
}

function respondFor(
  found: readonly RedirectCandidate[],
  request: ContentRequest,
  {
    next,
    inside,
  }: {
    readonly next: (request: ContentRequest) => ReplyOrPromise;
    readonly inside: ContentOfPath;
  },
): ReplyOrPromise {
  const at = found.findIndex((one) => lossFor(one, request.visitor) === undefined);
  const chosen = found[at];
  const seen = at === -1 ? found : found.slice(0, at + 1);
  const varied = (reply: Reply | undefined) =>
    reply && changedReply(reply, (one) => withConditions(one, seen));
  const reply = chosen === undefined ? next(request) : replyOf(chosen, request, inside);
  return whenReady(reply, varied);
}

/** A reply that depends on the countries and languages of redirects. */
function withConditions(reply: Reply, seen: readonly RedirectCandidate[]): Reply {
  const hasLanguage = seen.some(({ languages }) => languages.length > 0);
  const fields = hasLanguage ? withVary(reply.fields, 'Accept-Language') : reply.fields;
  if (seen.every(({ countries }) => countries.length === 0)) return { ...reply, fields };
  const { isReusable: _reusable, ...once } = reply;
  const isMoved = reply.status >= 300 && reply.status <= 399 && reply.status !== 304;
  // No field of a request names the country, so a shared cache cannot tell visitors apart.
  const caching = isMoved ? ['Cache-Control', 'private, no-store'] : [];
  return { ...once, fields: [...fields, ...caching] };
}

function replyOf(
  chosen: RedirectCandidate,
  request: ContentRequest,
  inside: ContentOfPath,
): ReplyOrPromise {
  const { named, status, location } = chosen;
  if (status >= 300 && status <= 399) {
    const source = 'redirect' in named ? `redirect:${named.redirect}` : `disk:${named.mount}`;
    const fields = ['Location', location, 'Content-Length', '0'];
    return { status, fields, body: noBody, source, isReusable: true };
  }
  const target = targetInside(location, request);
  if (status === 200) return contentAt(target, request, inside);
  if (!isRead(request.method)) return readOnlyReply(request.method);
  const fields = plainGetFields(request.fields);
  const content = contentAt(target, { ...request, fields }, inside);
  const failed = (reply: Reply): Reply => ({ ...withoutCaching(reply), status });
  return whenReady(content, failed);
}

/** The content at a path inside the server; throws or rejects with `not_found` without one. */
function contentAt(
  target: RequestTarget | undefined,
  request: ContentRequest,
  inside: ContentOfPath,
): Reply | Promise<Reply> {
  const reply = target && inside.handle({ ...request, ...target });
  const found = (one: Reply | undefined): Reply => one ?? notFoundReply(request.method);
  return whenReady(reply, found);
}

/** The target of a path inside the server; undefined if the values make no valid path. */
function targetInside(location: string, { origin }: RequestTarget): RequestTarget | undefined {
  const [, encoded = '', query = ''] = /^([^?#]*)(?:\?([^#]*))?/.exec(location) ?? [];
  const path = canonicalPath(encoded);
  return path && { origin, ...requestPathOf(path), query };
}

function explainInside(
  { status, location }: RedirectCandidate,
  request: PageRequest,
  { inside, notes }: { readonly inside: ContentOfPath; readonly notes: readonly string[] },
): Explanation {
  const target = targetInside(location, request);
  const explained: Explanation =
    target === undefined
      ? { winner: null, status: 404, tried: [], notes: [] }
      : inside.explain({ ...request, ...target });
  const { winner } = explained;
  const shown = status === 200 || winner === null ? explained.status : status;
  return {
    ...explained,
    winner: winner && { ...winner, status: shown },
    status: shown,
    notes: [...notes, ...explained.notes],
  };
}
