import { statusOf } from '../../core/http/reply.ts';
import { EvaluationContext } from '../../core/pipeline/conditions/condition.ts';
import { type Branch, firstFailing } from '../../core/pipeline/conditions/when.ts';
import type {
  BranchExplanation,
  BranchLossReason,
  ExplainedSource,
  Explanation,
} from '../../core/pipeline/explanation.ts';
import {
  type ExpectedReply,
  type ExplainedReply,
  replyOrFailure,
} from '../../core/pipeline/source.ts';
import { explainCandidates, explainSilent, withBranches } from '../rules/find.ts';
import { type StoredRule, isValidAt, unmatchableOrigin } from '../rules/rule.ts';
import type { RuleReader } from '../rules/valid-rules.ts';
import { chooseRenderBranch, renderWhenOf } from './branches.ts';
import {
  type BreadcrumbHop,
  type BreadcrumbStart,
  type BreadcrumbVisit,
  breadcrumbCandidates,
  breadcrumbStart,
  resolveVisit,
} from './resolve.ts';

/**
 * Explains a resolve rule: its branches, and the look-ups of the keys that it leads over. The id is
 * that of the rule that decides; the status is null if the visitor has not been prepared. Adds the
 * rules that it leads over to `steps`.
 */
export function explainHops(
  rules: RuleReader,
  start: BreadcrumbStart,
  visit: BreadcrumbVisit,
  steps: BreadcrumbHop[] = [],
): ExplainedReply {
  const outcome = replyOrFailure(() => {
    const resolved = resolveVisit(rules, start, visit, steps);
    if (resolved instanceof Promise) return resolvedLater(resolved);
    const { status, target, hops } = resolved;
    const fields = hops.flatMap(({ branch: { name, answer } }) =>
      answer.fields === undefined ? [] : [`${name} changes ${answer.fields.names.join(', ')}.`],
    );
    const leads = target === undefined ? [] : [`It leads to ${target}.`];
    return { status, notes: [...leads, ...fields] };
  });
  const last = steps.at(-1);
  const next = last?.branch.answer;
  const over = steps.slice(1).map(({ key = '', ...step }) => lookUp(rules, key, visit, step).tried);
  const missed =
    next?.kind === 'key' && !steps.some(({ key }) => key === next.key)
      ? [lookUp(rules, next.key, visit).tried]
      : [];
  return {
    id: (last?.stored ?? start.stored).rule.id,
    status: outcome.status,
    notes: outcome.notes ?? [],
    branches: steps[0] === undefined ? [] : branchesOf(steps[0].breadcrumb, steps[0]),
    hops: [...over, ...missed],
  };
}

/** The outcome of a rule whose conditions need facts about the visitor that take time. */
function resolvedLater(resolving: Promise<unknown>): ExpectedReply {
  resolving.catch(() => undefined);
  return { status: null, notes: ['It depends on facts about the visitor that are not known yet.'] };
}

/**
 * Explains what userinterface.link.htm answers for a key (docs/design/rendering.md#breadcrumbs).
 */
export function explainKey(
  rules: RuleReader,
  { key, ...visit }: BreadcrumbVisit & { readonly key: string },
  steps: BreadcrumbHop[] = [],
): Explanation {
  const { tried, winner } = lookUp(rules, key, visit);
  if (winner === undefined) {
    return { winner: null, status: statusOf.not_found, tried: [tried], notes: [] };
  }
  const path = key.startsWith('/') ? key : `/${key}`;
  const {
    id,
    status,
    notes = [],
    hops: over = [],
    branches = [],
  } = explainHops(rules, winner, { ...visit, path }, steps);
  return {
    winner: { source: 'stored', ...(id !== undefined && { id }), status },
    status,
    tried: [{ ...tried, candidates: withBranches(tried.candidates, branches) }, ...over],
    notes,
  };
}

function lookUp(
  rules: RuleReader,
  key: string,
  visit: BreadcrumbVisit,
  step?: Omit<BreadcrumbHop, 'key'>,
): { readonly tried: ExplainedSource; readonly winner: BreadcrumbStart | undefined } {
  const ordered = breadcrumbCandidates(rules, key, visit);
  const { candidates, ...omitted } = explainCandidates(ordered, visit.fields);
  const branches = step === undefined ? undefined : branchesOf(step.breadcrumb, step);
  const named = branches === undefined ? candidates : withBranches(candidates, branches);
  const nowMs = rules.nowMs();
  const waiting = rules.exactRules(unmatchableOrigin, key).filter(({ kind }) => kind === 'resolve');
  const all = breadcrumbCandidates(rules.anyTime, key, visit);
  const silent = [...waiting, ...all.filter((one) => !isValidAt(one, nowMs))];
  return {
    tried: {
      source: 'stored',
      key,
      candidates: [...named, ...explainSilent(silent, rules)],
      ...omitted,
    },
    winner: breadcrumbStart(rules, key, visit),
  };
}

/**
 * Explains which branch of a page's `enginedata.when` applies to the visitor; undefined without
 * such branches.
 */
export function explainRender(
  stored: StoredRule,
  visit: Pick<BreadcrumbVisit, 'visitor' | 'query'>,
): readonly BranchExplanation[] | undefined {
  const renderWhen = renderWhenOf(stored);
  if (renderWhen === undefined) return undefined;
  const context = new EvaluationContext(stored.rule.id, visit);
  return branchesOf(renderWhen, { context, branch: chooseRenderBranch(renderWhen, stored, visit) });
}

/** All branches in order, each with the reason why it was not taken. */
function branchesOf(
  all: { readonly when: readonly Branch<unknown>[]; readonly otherwise: Branch<unknown> },
  { context, branch: taken }: { context: EvaluationContext; branch: Branch<unknown> },
): readonly BranchExplanation[] {
  const branches = [...all.when, all.otherwise];
  const wonAt = branches.indexOf(taken);
  return branches.map((branch, at) => {
    if (at === wonAt) return { branch: branch.name };
    const lost = at > wonAt ? earlier(taken) : lossOf(branch, context);
    return { branch: branch.name, ...(lost && { lost }) };
  });
}

function earlier({ name }: Branch<unknown>): BranchLossReason {
  return {
    code: 'earlier_branch',
    says: `${name} comes before it, and its conditions hold.`,
  };
}

function lossOf(
  { problems, conditions }: Branch<unknown>,
  context: EvaluationContext,
): BranchLossReason | undefined {
  if (problems.length > 0) {
    return {
      code: 'invalid',
      says: `It is never taken: Waymark cannot read ${problems.join(', ')}.`,
    };
  }
  const failing = firstFailing(conditions, context);
  return failing && { code: failing.name, says: failing.explain(context) };
}
