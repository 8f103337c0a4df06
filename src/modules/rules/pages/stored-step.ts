import { type ContentRequest, isRead } from '../../../core/http/request.ts';
import type { BranchExplanation } from '../../../core/pipeline/explanation.ts';
import type { Step } from '../../../core/pipeline/pipeline.ts';
import type { PlaceAccess } from '../../../core/pipeline/place-access.ts';
import { sourceStep, withSlashRedirect } from '../../../core/pipeline/source-step.ts';
import {
  type ContentSource,
  type PageRequest,
  type ReplyOrPromise,
  explainReadOnly,
  readOnlyReply,
  replyOrFailure,
} from '../../../core/pipeline/source.ts';
import { whenReady } from '../../../core/values/when-ready.ts';
import {
  candidatesOf,
  explainCandidates,
  explainSilent,
  findRule,
  silentCandidatesOf,
  winnerOf,
  withBranches,
} from '../find.ts';
import { type FoundRule, type Rule, type StoredRule, accessOf } from '../rule.ts';
import type { RuleReader } from '../valid-rules.ts';
import type { PageKind } from './page-kind.ts';
import { withHeaderNote, withRuleHeaders } from './rule-headers.ts';
import { withRuleFailure } from './rule-replies.ts';

interface StoredParts {
  readonly rules: RuleReader;
  readonly access: PlaceAccess;
  /** The ways in which rules answer, in their order. */
  readonly kinds: readonly PageKind[];
  /** Explains the branches of a page that an engine renders; undefined for one without. */
  readonly explainBranches: (
    stored: StoredRule,
    request: PageRequest,
  ) => readonly BranchExplanation[] | undefined;
}

/**
 * All page rules except content.fetch. They answer for every method, so that a POST cannot reach
 * another page than the GET of the same URL.
 */
export function storedStep(parts: StoredParts): Step {
  const { rules, access } = parts;
  const isExact = (request: PageRequest): boolean => {
    const found = findRule('stored', rules, request);
    return found !== undefined && found.capture === undefined;
  };
  const source: ContentSource = {
    name: 'stored',
    respond(request) {
      const found = findRule('stored', rules, request);
      const kind = found && kindOf(parts, found, request);
      if (found === undefined || kind === undefined) return undefined;
      return access.admitted(accessOf(found.stored.rule), request, (admitted) =>
        respondAs(kind, found, admitted),
      );
    },
    explain(request) {
      const ordered = candidatesOf('stored', rules, request);
      const found = winnerOf(ordered, rules, request);
      const kind = found && kindOf(parts, found, request);
      const silent = explainSilent(silentCandidatesOf('stored', rules, request), rules);
      if (found === undefined || kind === undefined) {
        return { candidates: silent, reply: undefined };
      }
      const reply = explainAs(kind, found, request, parts);
      const { candidates, ...omitted } = explainCandidates(ordered, request.fields);
      const named = withBranches(candidates, reply.branches);
      return { candidates: [...named, ...silent], ...omitted, reply };
    },
  };
  const step = sourceStep(
    'stored',
    withSlashRedirect(source, (single, request) => isExact(single) && !isExact(request)),
  );
  return {
    ...step,
    // A page has no other protocol. One that leads or refuses visitors does so for it, too.
    open(request, next) {
      const page = findRule('stored', rules, request)?.stored.rule;
      if (page === undefined || !leadsOrRefuses(page)) return next(request);
      return whenReady(
        step.handle(request, () => undefined),
        (reply) => reply ?? next(request),
      );
    },
  };
}

/** Whether a page rule is there to keep visitors from what lies behind it. */
function leadsOrRefuses({ kind, httpresponse = 200 }: Rule): boolean {
  return kind === 'resolve' || httpresponse >= 300;
}

/** How a rule answers a request; undefined if it would be a page inside another one inside. */
function kindOf(
  { kinds }: StoredParts,
  { stored: { rule } }: FoundRule,
  { inside }: Pick<PageRequest, 'inside'>,
): PageKind | undefined {
  const kind = kinds.find((one) => one.takes(rule));
  return kind?.hasPageInside === true && inside === 'page' ? undefined : kind;
}

function respondAs(kind: PageKind, found: FoundRule, request: ContentRequest): ReplyOrPromise {
  const { rule } = found.stored;
  const isPage = isRead(request.method);
  if (isPage && kind.isComplete === true) return kind.respond(found, request);
  const answer = withRuleFailure(
    () => rule,
    () => (isPage ? kind.respond(found, request) : readOnlyReply(request.method)),
  );
  return withRuleHeaders(rule, answer, request);
}

function explainAs(
  kind: PageKind,
  found: FoundRule,
  request: PageRequest,
  { access, explainBranches }: StoredParts,
) {
  const { rule } = found.stored;
  const decide = (): ReturnType<PageKind['explain']> =>
    isRead(request.method) ? kind.explain(found, request) : explainReadOnly(request.method);
  const { over = [rule], ...expected }: ReturnType<PageKind['explain']> = replyOrFailure(decide);
  const branches = explainBranches(found.stored, request);
  const sections = access.explainSections([rule, ...over].map(accessOf), request.visitor);
  return {
    id: rule.id,
    ...withHeaderNote(rule, expected),
    ...(branches && { branches }),
    ...(sections.length > 0 && { access: sections }),
  };
}
